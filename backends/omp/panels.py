"""Panels: products that go through the columns of the matrix a few at a time, and when they pay."""

from __future__ import annotations

from typing import NamedTuple

from ...core.devices import named
from ...core.statistics import RowStatistics

#: Columns of B that spmm works on at once: four registers of float32 at the widest level, and with
#: panels at least one.
SPMM_TILE = 64
SPMM_LEAST_TILE = 16

FLOAT = 4

#: A column of a panel is known by 16 bits.
MOST_WIDTH = (1 << 16) - 1


class PanelConstants(NamedTuple):
    """The constants of panels, which cut rows into pieces.

    A width gives each piece a number of bytes of products or entries, within bounds on the bytes
    of an operand's rows in a panel.

    Attributes
    ----------
    spmm_columns : int
        Columns of B from which spmm takes panels: narrower products read A most of the time, and
        panels do not read it in order.
    spmm_piece_bytes, spmm_least_piece_bytes : float
        Bytes of products of a piece, wanted and at least: spmm reads a panel's rows from the
        first-level cache, and long pieces pay for leaving it a little.
    spmm_bytes : tuple of int
        Bounds on the bytes of a panel.
    spmm_uses : float
        Entries of a column at least: a part of a panel's rows uses each row of B eight times, and
        shorter ones are too few to keep threads even.
    spmm_tile_bytes : int
        Bytes of a tile of B up to which the second-level cache holds it.
    spmm_large_bytes : tuple of int
        Bounds on the bytes of a panel where it does not.
    sddmm_piece, sddmm_entries, sddmm_fitting_entries : float
        Entries of a piece of sddmm: wanted, at least, and at least where B nearly fits the cache.
    sddmm_bytes : tuple of int
        Bounds on the bytes of a panel.
    sddmm_fitting_bytes, sddmm_cached_bytes : int
        Bytes of B that nearly fit, and that stay in the cache without panels.
    fusedmm_piece : float
        Entries of a piece of fusedmm, which reads B and D; the row of E stays in memory.
    fusedmm_bytes : tuple of int
        Bounds on the bytes of a panel.
    fusedmm_least_piece_bytes : float
        Bytes of products of a piece at least.
    fusedmm_fitting_bytes : int
        Bytes of both operands that stay in the cache without panels.
    """

    spmm_columns: int
    spmm_piece_bytes: float
    spmm_bytes: tuple[int, int]
    spmm_least_piece_bytes: float
    spmm_uses: float
    spmm_tile_bytes: int
    spmm_large_bytes: tuple[int, int]
    sddmm_piece: float
    sddmm_bytes: tuple[int, int]
    sddmm_fitting_bytes: int
    sddmm_fitting_entries: float
    sddmm_entries: float
    sddmm_cached_bytes: int
    fusedmm_piece: float
    fusedmm_bytes: tuple[int, int]
    fusedmm_least_piece_bytes: float
    fusedmm_fitting_bytes: int


#: The constants of processors without a file of their own.
PANELS = named("unknown-cpu").of(PanelConstants)


def _spmm_row_bytes(columns: int) -> int:
    """Return the bytes of a row of a column tile of B."""
    return FLOAT * min(max(columns, SPMM_LEAST_TILE), SPMM_TILE)


def width_of(
    product: str, statistics: RowStatistics, columns: int, rules: PanelConstants = PANELS
) -> int:
    """Return how many columns of the matrix a panel has."""
    if product == "spmm":
        row = _spmm_row_bytes(columns)
        fits = row * statistics.columns <= rules.spmm_tile_bytes
        bounds = rules.spmm_bytes if fits else rules.spmm_large_bytes
        return _width(statistics, row, rules.spmm_piece_bytes / row, bounds)
    if product == "sddmm":
        return _width(statistics, FLOAT * columns, rules.sddmm_piece, rules.sddmm_bytes)
    return _width(statistics, FLOAT * columns, rules.fusedmm_piece, rules.fusedmm_bytes)


def _width(
    statistics: RowStatistics, row_bytes: int, piece: float, panel_bytes: tuple[int, int]
) -> int:
    """Return the width for segments of a number of entries, within bounds on a panel's bytes."""
    least, most = (max(size // max(row_bytes, 1), 1) for size in panel_bytes)
    wanted = piece * statistics.columns / max(statistics.mean, 1.0)
    return int(min(max(wanted, least), most, MOST_WIDTH))


def entries_of_row(statistics: RowStatistics, width: int) -> float:
    """Return how many entries a row has in a panel, on average."""
    return statistics.mean * min(width / max(statistics.columns, 1), 1.0)


def pay(
    product: str,
    statistics: RowStatistics,
    columns: int,
    width: int,
    rules: PanelConstants = PANELS,
) -> bool:
    """Return whether cutting rows at multiples of ``width`` is worth the shorter loops."""
    s = statistics
    if s.columns < 2 * width:
        return False
    entries = entries_of_row(s, width)
    if product == "spmm":
        used = columns >= rules.spmm_columns and s.nnz >= rules.spmm_uses * s.columns
        return used and entries * _spmm_row_bytes(columns) >= rules.spmm_least_piece_bytes
    if product == "sddmm":
        size = FLOAT * s.columns * columns
        least = (
            rules.sddmm_fitting_entries
            if size <= rules.sddmm_fitting_bytes
            else rules.sddmm_entries
        )
        return size > rules.sddmm_cached_bytes and entries >= least
    fits = 2 * FLOAT * s.columns * columns <= rules.fusedmm_fitting_bytes
    return not fits and entries * FLOAT * columns >= rules.fusedmm_least_piece_bytes
