"""Which algorithm products of sparse and dense matrices run on GPUs, from the rows of the matrix.

``row-split`` is that of Zubair and Bauinger (2023) with a wave for a row; ``balanced`` is the one
of Huang et al. (2021) that gives waves equal shares of entries, and ``subwarp`` the same for
samples. Of their other axis (lanes are columns or entries) there is no choice to make: as many
lanes have a row of the dense operand as it has vectors, and with a single column lanes are entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidArgument
from ...core.statistics import RowStatistics

# Measured on an H200 with float32 and 128 columns where not said otherwise; microseconds.

#: Entries of a piece of a cut row. Samples of R-MAT 2^20: 32 entries 1350, 64 1333, 256 1347, whole
#: rows 6960; of a uniform matrix, 2 % and 5 %: 64 entries 67 and 168, whole rows 58 and 127.
#: Sums of R-MAT 2^20, 24 million edges: 128 entries 2052, 256 2081, 512 2083; the more entries, the
#: fewer lines in memory.
SAMPLED_PIECE = 64
SUMMED_PIECE = 256

#: No row of fewer entries is cut: as many as a wave multiplies in a few microseconds.
LONG = 512

#: Rows are cut where the longest has more entries than this many fair shares of a wave: it would
#: still run when all others are done. R-MAT has 19 shares there: whole rows 5930, cut 2081. A
#: uniform matrix has one: whole rows 226, cut 343.
FAIR_SHARES = 2

KERNELS = {
    "spmm": ("row-split", "balanced"),
    "sddmm": ("row-split", "subwarp"),
    "fusedmm": ("row-split", "balanced"),
}


class Choice(NamedTuple):
    """An algorithm, why, and how many entries its pieces of rows have (0: rows are whole)."""

    kernel: str
    reason: str
    piece: int


def choose(operation: str, statistics: RowStatistics, waves: int) -> Choice:
    """Return what ``operation`` runs on a device that holds so many waves.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> weights = RowStatistics(8192, 8192, 6_710_886, 819.2, 27.0, 930, 0.0)
    >>> choose("spmm", weights, 8448).kernel
    'row-split'
    """
    fair = statistics.nnz / waves
    if operation == "sddmm":
        if statistics.longest <= max(SAMPLED_PIECE, FAIR_SHARES * fair):
            return Choice("row-split", "no row is long: a wave has one", 0)
        return Choice(
            "subwarp",
            f"the longest row has {statistics.longest} entries and a wave's share is {fair:.0f}: "
            f"a wave has up to {SAMPLED_PIECE} of a row",
            SAMPLED_PIECE,
        )
    if statistics.longest > max(LONG, FAIR_SHARES * fair):
        return Choice(
            "balanced",
            f"the longest row has {statistics.longest} entries and a wave's share is {fair:.0f}: "
            f"rows are cut into pieces of {SUMMED_PIECE}",
            SUMMED_PIECE,
        )
    return Choice("row-split", "no row is long: a wave has one", 0)


def asked(operation: str, kernel: str, executor: str, extra: Sequence[str] = ()) -> Choice:
    """Return the algorithm of that name.

    Parameters
    ----------
    operation, kernel, executor : str
        What was asked for, and of whom.
    extra : sequence of str
        What the executor has besides.

    Raises
    ------
    InvalidArgument
        If there is none; names those that there are.
    """
    if kernel not in KERNELS[operation]:
        have = ", ".join(("auto", *KERNELS[operation], *extra))
        raise InvalidArgument(f"{operation} has no kernel {kernel!r} on {executor}; it has: {have}")
    piece = {"row-split": 0, "balanced": SUMMED_PIECE, "subwarp": SAMPLED_PIECE}[kernel]
    return Choice(kernel, "asked for", piece)


class Pieces(NamedTuple):
    """The list that waves work through; see ``spmm.hpp``. Without one, items are the rows.

    Attributes
    ----------
    items : int
        How long it is.
    bounds : array, shape (items + 1,)
        The first entry of each item, and the end.
    target : array, shape (items + lines,), or None
        The row of each item, or -1 - line for a piece of a row that was cut; then, for each line,
        the row that it is of.
    lines : int
        How many pieces of cut rows there are.
    cut_rows, first_line : array or None
        The rows that were cut, and the first line of each, and the end.
    """

    items: int
    bounds: Any
    target: Any = None
    lines: int = 0
    cut_rows: Any = None
    first_line: Any = None


def cut_rows(xp: Any, indptr: Any, piece: int, *, sampled: bool) -> Pieces:
    """Return the list of pieces of up to ``piece`` entries.

    Parameters
    ----------
    xp : module
        NumPy, or what has its functions for the arrays of a device.
    indptr : array
        Where rows begin.
    sampled : bool
        Whether pieces leave nothing to be added up: then rows without entries are left out.
    """
    kind = indptr.dtype
    rows = int(indptr.size) - 1
    begin = indptr[:-1].astype(np.int64)
    length = indptr[1:].astype(np.int64) - begin
    count = (length + piece - 1) // piece
    if not sampled:
        count = xp.maximum(count, 1)
    ends = xp.cumsum(count)
    items = int(ends[-1]) if rows else 0
    place = xp.arange(items)
    row = xp.searchsorted(ends, place, side="right")
    start = begin[row] + (place - (ends - count)[row]) * piece
    bounds = xp.concatenate([start, indptr[-1:].astype(np.int64)]).astype(kind)
    if sampled:
        return Pieces(items, bounds, row.astype(kind))
    is_piece = count[row] > 1
    line = xp.cumsum(is_piece) - 1
    of_line = row[is_piece]
    target = xp.concatenate([xp.where(is_piece, -1 - line, row), of_line]).astype(kind)
    cut = xp.flatnonzero(count > 1)
    first = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(count[cut])]).astype(kind)
    return Pieces(items, bounds, target, int(of_line.size), cut.astype(kind), first)
