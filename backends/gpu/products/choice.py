"""Choose the algorithm of products of sparse and dense matrices on GPUs, from row statistics.

``row-split`` is the algorithm of Zubair and Bauinger (2023) with one wave per row, and
``row-segments`` cuts its long rows. ``row-team`` assigns all waves of a block to a row, for
matrices with so few rows that waves would be idle. Sums can also use the four algorithms of Huang
et al. (2021), see :mod:`.spmm_kernels`: they reduce in parallel for up to 4 columns, and balance
entries if row lengths differ. The constants belong to the device:
:class:`..constants.RowProductConstants`.
"""

from __future__ import annotations

from math import ceil, floor, log2
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....core.statistics import RowStatistics
from ..constants import ROW_PRODUCTS, RowProductConstants

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.executor import Array

#: Entries that a wave loads at a time, and vectors that a lane has in flight.
AT_ONCE, IN_FLIGHT = 32, 8
#: Upper bound of lanes per row, and bytes that each lane loads.
LANES, VECTOR_BYTES = 32, 16
#: Upper bounds of terms that a lane adds up sequentially: a soft limit and a hard limit. In single
#: precision, 512 equal terms drift by at most 1e-5, and 4096 by at most 6e-5.
FEW_TERMS, MOST_TERMS = 512, 4096
#: The kernels of Huang et al. that store the row of every entry.
SPLIT_BY_ENTRIES = ("eb-sr", "eb-pr")
#: The sum kernels that :func:`estimate` covers.
BY_ROWS = ("row-split", "row-team", "row-segments")


class RowChoice(NamedTuple):
    """An algorithm, the reason, and the entries per piece of rows (0: rows are whole)."""

    kernel: str
    reason: str
    piece: int


def choose(
    operation: str,
    statistics: RowStatistics,
    waves: int,
    columns: int = 128,
    itemsize: int = 4,
    rules: RowProductConstants = ROW_PRODUCTS,
    *,
    lean: bool = False,
) -> RowChoice:
    """Return the kernel of ``operation`` for a device that holds ``waves`` waves.

    Parameters
    ----------
    operation : {"spmm", "sddmm", "fusedmm"}
        The operation.
    statistics : RowStatistics
        Statistics of the sparse matrix.
    waves : int
        Waves that the device can hold.
    columns, itemsize : int
        Columns of the dense operand, and bytes per element.
    rules : RowProductConstants
        The constants of the device.
    lean : bool
        Whether to avoid storing a number per entry, such as its row.

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
        if statistics.longest <= max(rules.sampled_piece, rules.fair_shares * fair):
            return RowChoice("row-split", "no row is long: a wave has one", 0)
        return RowChoice(
            "row-segments",
            f"the longest row has {statistics.longest} entries and a wave's share is {fair:.0f}: "
            f"a wave has up to {rules.sampled_piece} of a row",
            rules.sampled_piece,
        )
    if operation == "spmm":
        few = of_few_rows(statistics, waves, columns, itemsize, rules)
        named = few or of_space(statistics, waves, columns, rules)
        if lean and named is not None and named.kernel in SPLIT_BY_ENTRIES:
            named = None
        made = named or of_waves(
            statistics, waves, summed_piece(statistics, columns, rules), columns, rules
        )
        return _cut_if_long(made, statistics, waves, columns, itemsize, rules)
    return of_waves(statistics, waves, rules.summed_piece, rules=rules)


def _cut_if_long(
    choice: RowChoice,
    statistics: RowStatistics,
    waves: int,
    columns: int,
    itemsize: int,
    rules: RowProductConstants,
) -> RowChoice:
    """Return row segments if lanes would add up too many terms sequentially.

    In single precision, a sum of equal terms drifts with their number; the sums of segments are
    added with their rounding errors. Segments are also faster if the largest teams leave waves
    idle.
    """
    if choice.kernel not in ("row-split", "row-team"):
        return choice
    alone = choice.kernel == "row-split"
    team = 1 if alone else team_of(statistics, waves, columns, itemsize, rules)
    units = statistics.rows * tiles_of(columns, itemsize)
    idle = team == rules.most_team and 2 * units * team <= waves // 2
    terms = statistics.longest * lanes_of(columns, itemsize) // (LANES * team)
    if terms <= (FEW_TERMS if idle else MOST_TERMS):
        return choice
    piece = summed_piece(statistics, columns, rules)
    return RowChoice(
        "row-segments",
        f"the longest row has {statistics.longest} entries, too many for one sum: "
        f"rows are cut into pieces of {piece}",
        piece,
    )


def of_waves(
    statistics: RowStatistics,
    waves: int,
    piece: int,
    columns: int = 128,
    rules: RowProductConstants = ROW_PRODUCTS,
) -> RowChoice:
    """Choose whole rows per wave, or segments of at most ``piece`` entries."""
    fair = statistics.nnz / waves
    long = rules.long * min(1.0, rules.wide_columns / max(columns, 1))
    if statistics.longest <= max(long, rules.fair_shares * fair):
        return RowChoice("row-split", "no row is long: a wave has one", 0)
    return RowChoice(
        "row-segments",
        f"the longest row has {statistics.longest} entries and a wave's share is {fair:.0f}: "
        f"rows are cut into pieces of {piece}",
        piece,
    )


def summed_piece(
    statistics: RowStatistics, columns: int, rules: RowProductConstants = ROW_PRODUCTS
) -> int:
    """Return the number of entries per piece of a long row."""
    if columns < rules.pieced_columns:
        return rules.summed_piece
    pieces = reversed(rules.summed_pieces.items())
    return next(piece for least, piece in pieces if statistics.nnz >= least)


def lanes_of(columns: int, itemsize: int) -> int:
    """Return the number of lanes per row of the dense operand."""
    vectors = -(-columns * itemsize // VECTOR_BYTES)
    return min(LANES, 1 << max(vectors - 1, 0).bit_length())


def tiles_of(columns: int, itemsize: int) -> int:
    """Return the number of column tiles if each lane has one vector."""
    return -(-columns * itemsize // (lanes_of(columns, itemsize) * VECTOR_BYTES))


def team_of(
    statistics: RowStatistics,
    waves: int,
    columns: int,
    itemsize: int,
    rules: RowProductConstants = ROW_PRODUCTS,
) -> int:
    """Return the number of waves per row: as many as run at once.

    A wave takes ``AT_ONCE`` entries at a time, so a row needs no more waves than such groups of
    entries. With the 64 registers of these kernels, half of the waves that a device can hold are
    resident.
    """
    units = statistics.rows * tiles_of(columns, itemsize)
    resident = waves // 2
    if not 0 < units <= resident:
        return 1
    team: int = 2 ** floor(log2(resident / units))
    if statistics.longest > rules.uneven * statistics.mean:
        team = max(team, rules.uneven_team)
    most = 1 << max(ceil(statistics.longest / AT_ONCE) - 1, 0).bit_length()
    return min(team, rules.most_team, most)


def _steps(statistics: RowStatistics, team: int, columns: int, itemsize: int) -> int:
    """Return how often the longest row's waves wait for rows of the dense operand."""
    turns = ceil(statistics.longest / (AT_ONCE * team))
    return turns * ceil(lanes_of(columns, itemsize) / IN_FLIGHT)


def of_few_rows(
    statistics: RowStatistics,
    waves: int,
    columns: int,
    itemsize: int,
    rules: RowProductConstants = ROW_PRODUCTS,
) -> RowChoice | None:
    """Return the sum kernel if there are fewer rows and tiles than waves, else None."""
    units = statistics.rows * tiles_of(columns, itemsize)
    if units > waves // 2:
        return None
    team = team_of(statistics, waves, columns, itemsize, rules)
    cut = 2 * ceil(lanes_of(columns, itemsize) / IN_FLIGHT)
    uneven = statistics.longest > rules.uneven * statistics.mean
    if uneven and _steps(statistics, team, columns, itemsize) - cut > rules.most_steps:
        piece = summed_piece(statistics, columns, rules)
        return RowChoice(
            "row-segments",
            f"the longest row has {statistics.longest} entries, {statistics.mean:.0f} are average: "
            f"rows are cut into pieces of {piece}",
            piece,
        )
    if team == 1:
        return RowChoice("row-split", "no row is long: a wave has one", 0)
    return RowChoice(
        "row-team",
        f"{statistics.rows} rows are few for {waves} waves: {team} waves have one together",
        0,
    )


def is_skewed(
    statistics: RowStatistics, waves: int, rules: RowProductConstants = ROW_PRODUCTS
) -> bool:
    """Return whether one wave would still process the longest row after all others finish."""
    return statistics.longest > max(rules.long, rules.fair_shares * statistics.nnz / waves)


def of_space(
    statistics: RowStatistics,
    waves: int,
    columns: int,
    rules: RowProductConstants = ROW_PRODUCTS,
) -> RowChoice | None:
    """Return the kernel of Huang et al. for sums, or None for wollemi's own kernels.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> graph = RowStatistics(200_000, 200_000, 2_000_000, 10.0, 3.2, 28, 0.0)
    >>> [of_space(graph, 8448, columns).kernel for columns in (2, 32, 64)]
    ['eb-pr', 'rb-sr', 'eb-sr']
    """
    nnz, mean = statistics.nnz, statistics.mean
    skewed = is_skewed(statistics, waves, rules)
    if mean > rules.short:
        return None
    rows = f"rows have {mean:.0f} entries on average"
    unlike = statistics.longest > rules.unlike * mean
    few = columns < rules.scanned_columns and (columns <= rules.kept_columns or skewed or unlike)
    if few or (skewed and columns == rules.scanned_columns):
        if not skewed and statistics.rows <= waves:
            return None
        return RowChoice("eb-pr", f"{rows}, columns are few: waves have equal shares of entries", 0)
    if skewed:
        if columns <= rules.scanned_columns or columns >= rules.wide_columns or nnz < rules.few:
            return None
        return RowChoice("eb-sr", f"{rows}, and differ: groups of lanes have equal shares", 0)
    if columns >= rules.wide_columns // 2 and nnz >= rules.many:
        return RowChoice(
            "eb-sr", f"{rows} and {columns} columns: groups of lanes have equal shares", 0
        )
    if unlike or statistics.rows <= waves:
        return None
    return RowChoice("rb-sr", f"{rows}: groups of lanes have rows of their own", 0)


def estimate(
    statistics: RowStatistics,
    waves: int,
    columns: int,
    itemsize: int,
    rules: RowProductConstants = ROW_PRODUCTS,
) -> float:
    """Return the estimated microseconds of sums, with rows per wave, per team, or cut.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> weights = RowStatistics(512, 512, 26_215, 51.2, 38.0, 192, 0.0)
    >>> round(estimate(weights, 8448, 256, 4), 1)
    6.4
    """
    tiles, nnz = tiles_of(columns, itemsize), statistics.nnz
    few = of_few_rows(statistics, waves, columns, itemsize, rules)
    choice = few or of_waves(
        statistics, waves, summed_piece(statistics, columns, rules), columns, rules
    )
    team = team_of(statistics, waves, columns, itemsize, rules) if few else 1
    items, steps, cut = statistics.rows, _steps(statistics, team, columns, itemsize), 0.0
    if choice.piece:
        team, cut = 1, rules.cut
        items += nnz // choice.piece
        steps = ceil(choice.piece / AT_ONCE) * ceil(lanes_of(columns, itemsize) / IN_FLIGHT)
    megabytes = nnz * tiles * lanes_of(columns, itemsize) * VECTOR_BYTES / 1e6
    differ = min(1.0, statistics.deviation / max(statistics.mean, 1e-9))
    small = (
        rules.launch
        + cut
        + rules.step * steps
        + rules.round * items * tiles * team / (waves / 2)
        + megabytes * (rules.megabyte + rules.differing * differ)
        + rules.entries * nnz * tiles / 1e6
    )
    small *= rules.widening if itemsize == 2 else 1.0
    of_entry, of_column = rules.large[itemsize]
    return max(small, rules.launch + nnz * (of_entry + of_column * columns))


class Pieces(NamedTuple):
    """The list of work items of waves; see ``spmm.hpp``. Without a list, the items are the rows.

    Attributes
    ----------
    items : int
        Length of the list.
    bounds : array, shape (items + 1,)
        The first entry of each item, and the end.
    target : array, shape (items + lines,), or None
        The row of each item, or -1 - line for a piece of a cut row. After the items: the row of
        each line.
    lines : int
        Number of pieces of cut rows.
    cut_rows, first_line : array or None
        The cut rows, and the first line of each of them, with the end.
    """

    items: int
    bounds: Array
    target: Array | None = None
    lines: int = 0
    cut_rows: Array | None = None
    first_line: Array | None = None


def cut_rows(xp: ModuleType, indptr: Array, piece: int, *, sampled: bool) -> Pieces:
    """Return the list of row pieces of at most ``piece`` entries.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    indptr : array
        Row pointers.
    sampled : bool
        Whether pieces leave no sums to add up; rows without entries are then omitted.
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
