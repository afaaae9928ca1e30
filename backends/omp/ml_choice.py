"""Which algorithm spmm, sddmm and fusedmm run for a pattern, from its rows and the columns.

The names are those of the literature: explicit-SIMD ``row-split`` of Zubair and Bauinger (2023),
and the space of Huang et al. (2021): rows or equal shares of entries (``balanced``), times lanes
that are columns or entries (``parallel-reduction``). ``panels`` is ``balanced`` with B in tiles of
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...core.statistics import RowStatistics

#: Up to this many columns the lanes of a register are entries instead of columns.
REDUCTION_COLUMNS = 1

#: Columns of B that spmm works on at once: four registers of float32 at the widest level.
SPMM_TILE = 64

# Measured with float32 on one thread of a Granite Rapids (L1 48 KB, L2 2 MB), operands on huge
# pages, milliseconds. Panels cut rows into pieces; the width is what makes pieces of PIECE entries,
# within bounds on the bytes of an operand's rows in a panel.

#: spmm gains where a column tile of B leaves the second-level cache. n = 16384, 128 columns; 0.4, 1
#: and 3 %: without 17.7, 46, 134; 256 KB 20.5, 24.5, 53.9; 1 MB 9.9, 21.9, 59.3. 32 columns (2 MB):
#: 1 MB gains 4 to 13 %. n = 4096 (0.5 and 1 MB): from 10 % more to 16 % less, so without.
SPMM_PIECE = 28
SPMM_PANEL_BYTES = (1 << 17, 1 << 20)
SPMM_TILE_BYTES = 3 << 19
SPMM_ENTRIES = 6

#: sddmm: n = 16384, 128 columns, 0.4 and 1 %: without 20.5, 50.8; 256 KB 21.1, 29.7; 1 MB 11.8,
#: 26.7. n = 4096, 32 columns, 5, 10, 30 %: without 2.47, 4.89, 13.4; 64 KB 2.38, 6.63, 18.5; 256 KB
#: 2.08, 4.49, 12.5. 128 columns (2 MB): 6.2, 11.8, 34.8; 256 KB 6.7, 12.5, 32.1: where B nearly
#: fits, only long pieces pay.
SDDMM_PIECE = 48
SDDMM_PANEL_BYTES = (1 << 18, 1 << 20)
SDDMM_FITTING_BYTES = 1 << 21
SDDMM_FITTING_ENTRIES = 64
SDDMM_ENTRIES = 6

#: fusedmm reads B and D, and its row of E stays in memory anyway: shorter pieces pay. n = 4096, 128
#: columns, in order 0.2, 0.5, 1, 2, 5, 10 and 30 %: without 1.60, 2.94, 4.99, 9.6, 22.5, 46.5, 156;
#: 512 KB 1.97, 2.50, 3.04, 4.86, 10.0, 18.8, 54.6; 128 KB 3.15, 3.83, 3.86, 5.46, 9.7, 17.2, 50.8;
#: 64 KB 4.26, 5.56, 4.82, 6.37, 10.2, 17.4, 48.5.
FUSEDMM_PIECE = 16
FUSEDMM_PANEL_BYTES = (1 << 16, 1 << 19)
FUSEDMM_ENTRIES = 4

FLOAT = 4


@dataclass(frozen=True)
class Choice:
    """An algorithm, how it deals out rows, and how many columns its panels have."""

    kernel: str
    reason: str
    partition: str
    width: int = 0
    lanes: str = "columns"


def _asked(kernel: str, partition: str, lanes: str = "columns") -> Callable[..., Choice]:
    return lambda statistics, columns: Choice(kernel, "asked for", partition, lanes=lanes)


def spmm_panels(statistics: RowStatistics, columns: int) -> Choice:
    """Return panels for a column tile of B."""
    tile = min(max(columns, 1), SPMM_TILE)
    return _panels(statistics, _width(statistics, tile, SPMM_PIECE, SPMM_PANEL_BYTES))


def sddmm_panels(statistics: RowStatistics, columns: int) -> Choice:
    """Return panels of whole rows of B."""
    return _panels(statistics, _width(statistics, columns, SDDMM_PIECE, SDDMM_PANEL_BYTES))


def fusedmm_panels(statistics: RowStatistics, columns: int) -> Choice:
    """Return panels of whole rows of B."""
    return _panels(statistics, _width(statistics, columns, FUSEDMM_PIECE, FUSEDMM_PANEL_BYTES))


def _width(
    statistics: RowStatistics, columns: int, piece: int, panel_bytes: tuple[int, int]
) -> int:
    """Return the width that makes pieces of so many entries, within bounds on a panel's bytes."""
    least, most = (max(size // (FLOAT * max(columns, 1)), 1) for size in panel_bytes)
    wanted = piece * statistics.columns / max(statistics.mean, 1.0)
    return int(min(max(wanted, least), most))


def _panels(statistics: RowStatistics, width: int) -> Choice:
    return Choice(
        "panels",
        f"{width} columns at a time, about {_entries(statistics, width):.0f} entries of a row: "
        "their rows of B stay in cache",
        "panels",
        width,
    )


def _entries(statistics: RowStatistics, width: int) -> float:
    return statistics.mean * min(width / max(statistics.columns, 1), 1.0)


KERNELS: dict[str, dict[str, Callable[[RowStatistics, int], Choice]]] = {
    "spmm": {
        "row-split": _asked("row-split", "even"),
        "balanced": _asked("balanced", "balanced"),
        "parallel-reduction": _asked("parallel-reduction", "even", "entries"),
        "balanced-parallel-reduction": _asked("balanced-parallel-reduction", "balanced", "entries"),
        "panels": spmm_panels,
    },
    "sddmm": {
        "row-split": _asked("row-split", "even"),
        "balanced": _asked("balanced", "balanced"),
        "panels": sddmm_panels,
    },
    "fusedmm": {
        "row-split": _asked("row-split", "even"),
        "balanced": _asked("balanced", "balanced"),
        "panels": fusedmm_panels,
    },
}


def panels_pay(operation: str, statistics: RowStatistics, columns: int, width: int) -> bool:
    """Return whether cutting rows at multiples of ``width`` is worth the shorter loops."""
    s = statistics
    if s.columns < 2 * width:
        return False
    entries = _entries(s, width)
    if operation == "spmm":
        tile = FLOAT * s.columns * min(columns, SPMM_TILE)
        return tile > SPMM_TILE_BYTES and entries >= SPMM_ENTRIES
    if operation == "sddmm":
        fits = FLOAT * s.columns * columns <= SDDMM_FITTING_BYTES
        return entries >= (SDDMM_FITTING_ENTRIES if fits else SDDMM_ENTRIES)
    return entries >= FUSEDMM_ENTRIES


def choose(operation: str, statistics: RowStatistics, columns: int) -> Iterator[Choice]:
    """Yield the algorithms to try, best first; the last one suits every pattern."""
    if operation == "spmm" and columns <= REDUCTION_COLUMNS:
        yield Choice(
            "balanced-parallel-reduction",
            f"{columns} columns fill no register: lanes are entries",
            "balanced",
            lanes="entries",
        )
    panels = KERNELS[operation]["panels"](statistics, columns)
    if panels_pay(operation, statistics, columns, panels.width):
        yield panels
    yield Choice("balanced", "equal shares of entries, long rows cut", "balanced")
