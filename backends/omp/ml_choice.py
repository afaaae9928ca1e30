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

# All measured with 4096 x 4096 float32 on one thread of a Granite Rapids (L2 2 MB), milliseconds.

#: spmm cuts rows into pieces of this many entries, as far as a panel of B keeps within the bounds:
#: a first-level cache (48 KB) that the tile of C needs too. 32 columns, 10 %: without 3.63, 16 KB
#: 3.06, 32 KB 2.48, 64 KB 2.88; 20 %: 7.3, 5.1, 5.8, 5.9; 50 %: 18.4, 13.3, 13.4, 16.7. 128
#: columns, 10 %: 6.9, 9.5, 7.4, 6.3; 20 %: 13.7, 13.7, 11.6, 11.4; 50 %: 38.6, 31.1, 31.6, 32.0.
SPMM_PIECE = 28
SPMM_PANEL_BYTES = (1 << 14, 1 << 16)

#: Bytes of B in one panel of sddmm. 10 %, 32 columns: without 6.2, 64 KB 7.1, 256 KB 5.5, 512 KB
#: 6.2.
SDDMM_PANEL_BYTES = (1 << 18, 1 << 18)

#: A piece of a row ends in a branch that nobody predicts: fewer entries do not pay for it. spmm,
#: 128 columns: 13 entries 4.5 for 3.9, 26 entries 7.7 for 8.1.
PANEL_ENTRIES = 24

#: fusedmm reads B and D, and its row of E stays in memory anyway: shorter pieces pay. The width is
#: what makes pieces of this many entries, within bounds. 128 columns, in order 0.2, 0.5, 1, 2, 5,
#: 10 and 30 %: without 1.60, 2.94, 4.99, 9.6, 24, 50, 165; 512 KB 1.97, 2.50, 3.04, 4.86, 10.7,
#: 19.9, 55.6; 128 KB 3.15, 3.83, 3.86, 5.46, 10.3, 17.9, 51.2; 64 KB 4.26, 5.56, 4.82, 6.37, 10.8,
#: 18.4, 48.6.
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
    return _panels(statistics, _width(statistics, columns, PANEL_ENTRIES, SDDMM_PANEL_BYTES))


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

SHORTEST_PIECE = {"spmm": PANEL_ENTRIES, "sddmm": PANEL_ENTRIES, "fusedmm": FUSEDMM_ENTRIES}


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
    several = statistics.columns >= 2 * panels.width
    if several and _entries(statistics, panels.width) >= SHORTEST_PIECE[operation]:
        yield panels
    yield Choice("balanced", "equal shares of entries, long rows cut", "balanced")
