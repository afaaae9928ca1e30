"""Which algorithm products of sparse and dense matrices run on GPUs, from the rows of the matrix.

``row-split`` is that of Zubair and Bauinger (2023) with a wave for a row; ``balanced`` cuts long
rows for it, and ``subwarp`` does the same for samples. Sums have the four of Huang et al. (2021)
besides, see :mod:`.spmm_kernels`. Their rule is to reduce in parallel up to 4 columns, and to
balance entries where rows differ; :func:`of_space` is what came of it by measurement.
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
#: Sums of R-MAT 2^20, 24 million edges: 128 entries 1559, 256 1545, 512 1535.
SAMPLED_PIECE = 64
SUMMED_PIECE = 256

#: No row of fewer entries is cut: as many as a wave multiplies in a few microseconds.
LONG = 512

#: Rows are cut where the longest has more entries than this many fair shares of a wave: it would
#: still run when all others are done. R-MAT has 19 shares there: whole rows 5930, cut 2081. A
#: uniform matrix has one: whole rows 226, cut 343.
FAIR_SHARES = 2

# Of sums, in float32; microseconds of R-MAT 2^14, 2^16 and 2^18 (12 to 15 entries a row, up to
# 1838, 5431 and 13478), uniform matrices of 10 entries a row and 20,000 and 200,000 rows, and
# pruned weights (205 a row, up to 1141). On them the rule loses 1 % on average against the best
# kernel of the space, 12 % at most.

#: Columns up to which a scan over the segments of a wave costs less than it saves. R-MAT 2^16 and
#: 2^18, 8 columns: eb-pr 24 and 64, balanced 27 and 108; 32 columns: eb-pr 42 and 117, eb-sr 30 and
#: 106.
SCANNED_COLUMNS = 8
#: Columns from which a wave has no more than one row at a time, and balanced cuts better: R-MAT
#: 2^18, 64 columns: eb-sr 174, balanced 207; 128 columns: 328 and 308.
WIDE_COLUMNS = 128
#: Entries up to which a matrix is small: launches count. R-MAT 2^14, 2 columns: balanced 8.7, eb-pr
#: 8.3; 2^16: 24.5 and 15.7. 128 columns: balanced 26 and 83, eb-sr 22 and 86.
FEW = 500_000
#: Entries from which shares for groups of lanes grow, and are better for wide rows than rows of
#: their own. Uniform, 2,000,000 entries, 64 columns: eb-sr 102, rb-sr 110, row-split 135.
MANY = 2_000_000
#: Entries of a row on average up to which groups of lanes have rows of their own: uniform, 10
#: entries, 32 columns: rb-sr 50, row-split 110; 164 entries: 23.5 and 16.7.
SHORT = 32
#: How many times as long as the average a row may be for that: a wave stays until the longest of
#: its rows is done.
UNLIKE = 8

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


def choose(operation: str, statistics: RowStatistics, waves: int, columns: int = 128) -> Choice:
    """Return what ``operation`` runs on a device that holds so many waves.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        What is computed.
    statistics : RowStatistics
        Of the sparse matrix.
    waves : int
        That the device holds.
    columns : int
        Of the dense operand.

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
    named = of_space(statistics, waves, columns) if operation == "spmm" else None
    if named:
        return named
    if statistics.longest > max(LONG, FAIR_SHARES * fair):
        return Choice(
            "balanced",
            f"the longest row has {statistics.longest} entries and a wave's share is {fair:.0f}: "
            f"rows are cut into pieces of {SUMMED_PIECE}",
            SUMMED_PIECE,
        )
    return Choice("row-split", "no row is long: a wave has one", 0)


def of_space(statistics: RowStatistics, waves: int, columns: int) -> Choice | None:
    """Return the kernel of Huang et al. that sums should take, or None for those of ours.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> graph = RowStatistics(200_000, 200_000, 2_000_000, 10.0, 3.2, 28, 0.0)
    >>> [of_space(graph, 8448, columns).kernel for columns in (2, 32, 64)]
    ['eb-pr', 'rb-sr', 'eb-sr']
    """
    nnz, mean = statistics.nnz, statistics.mean
    skewed = statistics.longest > max(LONG, FAIR_SHARES * nnz / waves)
    if mean > SHORT:
        return None
    rows = f"rows have {mean:.0f} entries on average"
    if columns < SCANNED_COLUMNS or (skewed and columns == SCANNED_COLUMNS):
        if nnz < FEW:
            return None
        return Choice("eb-pr", f"{rows}, columns are few: waves have equal shares of entries", 0)
    if skewed:
        if columns <= SCANNED_COLUMNS or (columns >= WIDE_COLUMNS and nnz >= FEW):
            return None
        return Choice("eb-sr", f"{rows}, and differ: groups of lanes have equal shares", 0)
    if columns >= WIDE_COLUMNS // 2 and nnz >= MANY:
        return Choice(
            "eb-sr", f"{rows} and {columns} columns: groups of lanes have equal shares", 0
        )
    if statistics.longest > UNLIKE * mean:
        return None
    return Choice("rb-sr", f"{rows}: groups of lanes have rows of their own", 0)


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
