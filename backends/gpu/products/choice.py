"""Which algorithm products of sparse and dense matrices run on GPUs, from the rows of the matrix.

``row-split`` is that of Zubair and Bauinger (2023) with a wave for a row; ``row-segments``
cuts long rows for it. ``row-team`` gives the waves of a block a
row, where rows are so few that waves would be idle. Sums have the four of Huang et al. (2021)
besides, see :mod:`.spmm_kernels`. They reduce in parallel up to 4 columns, and balance entries
where rows differ; :func:`of_space` holds the measured rule.
"""

from __future__ import annotations

from math import ceil, floor, log2
from typing import Any, NamedTuple

import numpy as np

from ....core.statistics import RowStatistics

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

#: Entries of a row segment for sums, by the number of entries of the matrix: short ones where there
#: would be too few. 128 columns, pieces of 64 / 128 / 256: R-MAT 2^14 19 / 21 / 26, 2^16 77 / 75 /
#: 79, 2^17 150 / 144 / 148; pruned 2048^2, 95 %, 256 columns: 64 25, 256 36.
SUMMED_PIECES = {0: 64, 750_000: 128, 4_000_000: SUMMED_PIECE}
#: Columns from which that is so. R-MAT 2^15, 8 columns: 17.6 / 16.4 / 16.3.
PIECED_COLUMNS = 16

#: Waves that have a row together, at most, and at least where the longest row has more than
#: ``UNEVEN`` times as many entries as the average: 2048 x 512, 90 %, 64 columns: four 6.6, two 7.0.
MOST_TEAM, UNEVEN_TEAM, UNEVEN = 8, 4, 2.0
#: Steps, in vectors that a lane has in flight, by which a team may take longer than segments of
#: ``SUMMED_PIECES``: the time of their final sum. 512 x 2048, 98 %, 256 columns: 11.5 and 9.7.
MOST_STEPS = 10
#: Entries that a wave loads at a time, and vectors that a lane has in flight.
AT_ONCE, IN_FLIGHT = 32, 8
#: Lanes of a row at most, and bytes of each.
LANES, VECTOR_BYTES = 32, 16

# Of sums, in float32; microseconds of R-MAT 2^14, 2^16 and 2^18 (12 to 15 entries a row, up to
# 1838, 5431 and 13478), uniform matrices of 10 entries a row and 20,000 and 200,000 rows, and
# pruned weights (205 a row, up to 1141). On them the rule loses 1 % on average against the best
# kernel of the space, 12 % at most.

#: Columns up to which a scan over the segments of a wave costs less than it saves. R-MAT 2^16 and
#: 2^18, 8 columns: eb-pr 24 and 64, balanced 27 and 108; 32 columns: eb-pr 42 and 117, eb-sr 30 and
#: 106.
SCANNED_COLUMNS = 8
#: Columns up to which that is so where rows are alike. 7-point stencil of 80^3, float64, 5, 6 and 7
#: columns: eb-pr 119, 123 and 120, rb-sr 64, 42 and 65; 10 entries a row: 10.3 and 6.4.
KEPT_COLUMNS = 4
#: Columns from which a wave has no more than one row at a time, and balanced cuts better: R-MAT
#: 2^18, 64 columns: eb-sr 174, balanced 207; 128 columns: 328 and 308; 2^14: 21 and 19.
WIDE_COLUMNS = 128
#: Entries up to which groups of lanes have too few shares: R-MAT 2^13 (0.1 M), 32 columns: eb-sr
#: 11.9, balanced 8.9; 2^14 (0.2 M): 12.6 and 13.2.
FEW = 150_000
#: Entries from which shares for groups of lanes grow, and are better for wide rows than rows of
#: their own. Uniform, 2,000,000 entries, 64 columns: eb-sr 102, rb-sr 110, row-split 135.
MANY = 1_900_000
#: Entries of a row on average up to which groups of lanes have rows of their own: uniform, 10
#: entries, 32 columns: rb-sr 50, row-split 110; 164 entries: 23.5 and 16.7.
SHORT = 32
#: How many times as long as the average a row may be for that: a wave stays until the longest of
#: its rows is done.
UNLIKE = 8
#: The kernels of the space that keep the row of every entry.
SPLIT_BY_ENTRIES = ("eb-sr", "eb-pr")


class Choice(NamedTuple):
    """An algorithm, why, and how many entries its pieces of rows have (0: rows are whole)."""

    kernel: str
    reason: str
    piece: int


def choose(
    operation: str,
    statistics: RowStatistics,
    waves: int,
    columns: int = 128,
    itemsize: int = 4,
    *,
    lean: bool = False,
) -> Choice:
    """Return the kernel of ``operation`` on a device that holds ``waves`` waves.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        The operation.
    statistics : RowStatistics
        Of the sparse matrix.
    waves : int
        That the device holds.
    columns, itemsize : int
        Of the dense operand: how many, and the bytes of an element.
    lean : bool
        Whether nothing is to be kept for every entry: its row, where entries are split.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> weights = RowStatistics(8192, 8192, 6_710_886, 819.2, 27.0, 930, 0.0)
    >>> choose("spmm", weights, 8448).kernel
    'row-split'
    >>> choose("spmm", RowStatistics(512, 512, 26_000, 51.0, 40.0, 192, 0.0), 8448).kernel
    'row-team'
    """
    if operation == "sddmm":
        fair = statistics.nnz / waves
        if statistics.longest <= max(SAMPLED_PIECE, FAIR_SHARES * fair):
            return Choice("row-split", "no row is long: a wave has one", 0)
        return Choice(
            "row-segments",
            f"the longest row has {statistics.longest} entries and a wave's share is {fair:.0f}: "
            f"a wave has up to {SAMPLED_PIECE} of a row",
            SAMPLED_PIECE,
        )
    if operation == "spmm":
        few = of_few_rows(statistics, waves, columns, itemsize)
        named = few or of_space(statistics, waves, columns)
        if lean and named is not None and named.kernel in SPLIT_BY_ENTRIES:
            named = None
        return named or of_waves(statistics, waves, summed_piece(statistics, columns), columns)
    return of_waves(statistics, waves, SUMMED_PIECE)


def of_waves(statistics: RowStatistics, waves: int, piece: int, columns: int = 128) -> Choice:
    """Return whether waves have rows, or segments of at most ``piece`` entries."""
    fair = statistics.nnz / waves
    # 4096 x 1024, 95 %, up to 440 a row, 256 columns: whole rows 48, pieces of 64 24.
    long = LONG * min(1.0, WIDE_COLUMNS / max(columns, 1))
    if statistics.longest <= max(long, FAIR_SHARES * fair):
        return Choice("row-split", "no row is long: a wave has one", 0)
    return Choice(
        "row-segments",
        f"the longest row has {statistics.longest} entries and a wave's share is {fair:.0f}: "
        f"rows are cut into pieces of {piece}",
        piece,
    )


def summed_piece(statistics: RowStatistics, columns: int) -> int:
    """Return how many entries of a long row are a piece of it."""
    if columns < PIECED_COLUMNS:
        return SUMMED_PIECE
    pieces = reversed(SUMMED_PIECES.items())
    return next(piece for least, piece in pieces if statistics.nnz >= least)


def lanes_of(columns: int, itemsize: int) -> int:
    """Return how many lanes share a row of the dense operand."""
    vectors = -(-columns * itemsize // VECTOR_BYTES)
    return min(LANES, 1 << max(vectors - 1, 0).bit_length())


def tiles_of(columns: int, itemsize: int) -> int:
    """Return how many tiles of columns there are if a lane has one vector."""
    return -(-columns * itemsize // (lanes_of(columns, itemsize) * VECTOR_BYTES))


def team_of(statistics: RowStatistics, waves: int, columns: int, itemsize: int) -> int:
    """Return how many waves should have a row together: as many as run at once.

    1280 and 2560 rows of 154 and 96 entries, 32 columns: four and two waves 6.2 and 6.0, one 5.6
    and 5.3.

    A wave has ``AT_ONCE`` entries at a time, so that more than a row has of these have nothing to
    do. Half of the waves that a device holds are resident at the 64 registers of these kernels.
    """
    units = statistics.rows * tiles_of(columns, itemsize)
    resident = waves // 2
    if not 0 < units <= resident:
        return 1
    team: int = 2 ** floor(log2(resident / units))
    if statistics.longest > UNEVEN * statistics.mean:
        team = max(team, UNEVEN_TEAM)
    most = 1 << max(ceil(statistics.longest / AT_ONCE) - 1, 0).bit_length()
    return min(team, MOST_TEAM, most)


def _steps(statistics: RowStatistics, team: int, columns: int, itemsize: int) -> int:
    """Return how often the waves of the longest row wait for rows of the dense operand."""
    turns = ceil(statistics.longest / (AT_ONCE * team))
    return turns * ceil(lanes_of(columns, itemsize) / IN_FLIGHT)


def of_few_rows(
    statistics: RowStatistics, waves: int, columns: int, itemsize: int
) -> Choice | None:
    """Return the kernel for sums where there are fewer rows and tiles than waves.

    Measured on an H200 on 58 pruned and uniform weights of 256 to 8192 rows, 70 to 98 % sparse, 32
    to 256 columns (2026-11-21).
    """
    units = statistics.rows * tiles_of(columns, itemsize)
    if units > waves // 2:
        return None
    team = team_of(statistics, waves, columns, itemsize)
    cut = 2 * ceil(lanes_of(columns, itemsize) / IN_FLIGHT)
    uneven = statistics.longest > UNEVEN * statistics.mean
    if uneven and _steps(statistics, team, columns, itemsize) - cut > MOST_STEPS:
        piece = summed_piece(statistics, columns)
        return Choice(
            "row-segments",
            f"the longest row has {statistics.longest} entries, {statistics.mean:.0f} are average: "
            f"rows are cut into pieces of {piece}",
            piece,
        )
    if team == 1:
        return Choice("row-split", "no row is long: a wave has one", 0)
    return Choice(
        "row-team",
        f"{statistics.rows} rows are few for {waves} waves: {team} waves have one together",
        0,
    )


def is_skewed(statistics: RowStatistics, waves: int) -> bool:
    """Return whether a wave would still have the longest row when all others are done."""
    return statistics.longest > max(LONG, FAIR_SHARES * statistics.nnz / waves)


def of_space(statistics: RowStatistics, waves: int, columns: int) -> Choice | None:
    """Return the kernel of Huang et al. for sums, or None for wollemi's own.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> graph = RowStatistics(200_000, 200_000, 2_000_000, 10.0, 3.2, 28, 0.0)
    >>> [of_space(graph, 8448, columns).kernel for columns in (2, 32, 64)]
    ['eb-pr', 'rb-sr', 'eb-sr']
    """
    nnz, mean = statistics.nnz, statistics.mean
    skewed = is_skewed(statistics, waves)
    if mean > SHORT:
        return None
    rows = f"rows have {mean:.0f} entries on average"
    unlike = statistics.longest > UNLIKE * mean
    few = columns < SCANNED_COLUMNS and (columns <= KEPT_COLUMNS or skewed or unlike)
    if few or (skewed and columns == SCANNED_COLUMNS):
        # 5,000 rows of 20: row-split 3.9, eb-pr 6.2; 20,000 and 50,000 of 10 and 5: 8.2 and 6.9,
        # 17.3 and 7.6.
        if not skewed and statistics.rows <= waves:
            return None
        return Choice("eb-pr", f"{rows}, columns are few: waves have equal shares of entries", 0)
    if skewed:
        if columns <= SCANNED_COLUMNS or columns >= WIDE_COLUMNS or nnz < FEW:
            return None
        return Choice("eb-sr", f"{rows}, and differ: groups of lanes have equal shares", 0)
    if columns >= WIDE_COLUMNS // 2 and nnz >= MANY:
        return Choice(
            "eb-sr", f"{rows} and {columns} columns: groups of lanes have equal shares", 0
        )
    # 5,000 rows, 8 and 32 columns: row-split 3.8 and 4.9, rb-sr 8.0 and 5.4.
    if unlike or statistics.rows <= waves:
        return None
    return Choice("rb-sr", f"{rows}: groups of lanes have rows of their own", 0)


# The time of sums, in microseconds: fitted to 2,000 products of the weights that are named above
# (mean error 8 %), and for large matrices to 8192 x 8192 of 2 to 30 %.
#: A launch; a step of a wave; each time that all waves of the device are filled; cutting rows.
LAUNCH, STEP, ROUND, CUT = 2.0, 0.26, 0.57, 3.6
#: Megabytes of rows of the dense operand, and how much longer if rows differ by their average.
MEGABYTE, DIFFERING = 0.033, 0.038
#: A million entries, for each tile of columns.
ENTRIES = 3.3
#: How much longer all this takes with 16-bit numbers, which are widened (27 products: 1.0 to 1.3).
WIDENING = 1.2
#: Of large matrices, every entry, and besides that for every column, by the bytes of an element.
LARGE = {2: (2.4e-6, 1.4e-7), 4: (3.1e-6, 1.9e-7), 8: (3.1e-6, 3.8e-7), 16: (3.1e-6, 7.6e-7)}


def estimate(statistics: RowStatistics, waves: int, columns: int, itemsize: int) -> float:
    """Return how many microseconds sums should take with rows one by one, in teams, or cut.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> weights = RowStatistics(512, 512, 26_215, 51.2, 38.0, 192, 0.0)
    >>> round(estimate(weights, 8448, 256, 4), 1)
    6.4
    """
    tiles, nnz = tiles_of(columns, itemsize), statistics.nnz
    few = of_few_rows(statistics, waves, columns, itemsize)
    choice = few or of_waves(statistics, waves, summed_piece(statistics, columns), columns)
    team = team_of(statistics, waves, columns, itemsize) if few else 1
    items, steps, cut = statistics.rows, _steps(statistics, team, columns, itemsize), 0.0
    if choice.piece:
        team, cut = 1, CUT
        items += nnz // choice.piece
        steps = ceil(choice.piece / AT_ONCE) * ceil(lanes_of(columns, itemsize) / IN_FLIGHT)
    megabytes = nnz * tiles * lanes_of(columns, itemsize) * VECTOR_BYTES / 1e6
    differ = min(1.0, statistics.deviation / max(statistics.mean, 1e-9))
    small = (
        LAUNCH
        + cut
        + STEP * steps
        + ROUND * items * tiles * team / (waves / 2)
        + megabytes * (MEGABYTE + DIFFERING * differ)
        + ENTRIES * nnz * tiles / 1e6
    )
    small *= WIDENING if itemsize == 2 else 1.0
    of_entry, of_column = LARGE[itemsize]
    return max(small, LAUNCH + nnz * (of_entry + of_column * columns))


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
        NumPy, or a module with its functions for the arrays of a device.
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
