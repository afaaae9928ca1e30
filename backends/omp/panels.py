"""Panels: products that visit a few columns of the matrix at a time, and when they pay."""

from __future__ import annotations

from typing import NamedTuple

from ...core.devices import named
from ...core.statistics import RowStatistics

#: Columns of B that spmm processes at once. Without panels: four float32 registers of the widest
#: level; with panels: at least one register.
SPMM_TILE = 64
SPMM_LEAST_TILE = 16

FLOAT = 4

#: Upper bound of a panel's width: a 16-bit number identifies a column of a panel.
MOST_WIDTH = (1 << 16) - 1


class PanelConstants(NamedTuple):
    """Constants of the rules for panels, which cut rows into pieces.

    The width of a panel follows from the wanted size of a piece (a row's entries in one panel),
    within bounds on the bytes of the operand's rows in a panel.

    Attributes
    ----------
    spmm_columns : int
        Use panels for spmm from this many columns of B on. Narrower products spend most of the time
        on reading A, which panels do not read in order.
    spmm_piece_bytes, spmm_least_piece_bytes : float
        Wanted and minimum size of a piece, in bytes of products. spmm reads a panel's rows of B
        from the first-level cache; long pieces pay for slightly exceeding it.
    spmm_bytes : tuple of int
        Bounds on the bytes of a panel.
    spmm_uses : float
        Minimum average number of entries per column. With it, a part of a panel's rows uses each
        row of B eight times; shorter parts are too few to keep the threads balanced.
    spmm_tile_bytes : int
        Largest tile of B, in bytes, that counts as held by the second-level cache.
    spmm_large_bytes : tuple of int
        Bounds on the bytes of a panel for larger tiles.
    sddmm_piece, sddmm_entries, sddmm_fitting_entries : float
        Entries of a piece of sddmm: wanted, minimum, and minimum if B nearly fits into the cache.
    sddmm_bytes : tuple of int
        Bounds on the bytes of a panel.
    sddmm_fitting_bytes, sddmm_cached_bytes : int
        Sizes of B, in bytes: nearly fits into the cache; stays in the cache without panels.
    fusedmm_piece : float
        Wanted entries of a piece of fusedmm, which reads B and D; the row of E stays in memory.
    fusedmm_bytes : tuple of int
        Bounds on the bytes of a panel.
    fusedmm_least_piece_bytes : float
        Minimum size of a piece, in bytes of products.
    fusedmm_fitting_bytes : int
        Size of both operands, in bytes, up to which they stay in the cache without panels.
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


#: The constants of processors without a data file of their own.
PANELS = named("unknown-cpu").of(PanelConstants)


def _spmm_row_bytes(columns: int) -> int:
    """Return the bytes of one row of a column tile of B."""
    return FLOAT * min(max(columns, SPMM_LEAST_TILE), SPMM_TILE)


def width_of(
    product: str, statistics: RowStatistics, columns: int, rules: PanelConstants = PANELS
) -> int:
    """Return the number of the matrix's columns in a panel."""
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
    """Return the width for pieces of ``piece`` entries, within bounds on a panel's bytes."""
    least, most = (max(size // max(row_bytes, 1), 1) for size in panel_bytes)
    wanted = piece * statistics.columns / max(statistics.mean, 1.0)
    return int(min(max(wanted, least), most, MOST_WIDTH))


def entries_of_row(statistics: RowStatistics, width: int) -> float:
    """Return the average number of a row's entries in a panel."""
    return statistics.mean * min(width / max(statistics.columns, 1), 1.0)


def pay(
    product: str,
    statistics: RowStatistics,
    columns: int,
    width: int,
    rules: PanelConstants = PANELS,
) -> bool:
    """Return whether cutting rows at multiples of ``width`` outweighs the cost of shorter loops."""
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
