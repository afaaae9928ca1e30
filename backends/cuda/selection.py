"""Which kernel multiplies a CSR matrix with a vector: a pure function of what is known of it."""

from __future__ import annotations

from functools import cache
from math import log2, sqrt
from typing import NamedTuple

from ...core.statistics import RowStatistics
from .thresholds import NVIDIA, Thresholds

#: Patterns that a byte can tell apart.
MOST_PATTERNS = 256
#: Lanes that share a row at most.
MOST_LANES = 32
#: Microseconds of a launch that does next to nothing.
LAUNCH = 2.0
#: Distance from the diagonal that a signed 16-bit step can tell (-32768 marks padding).
NEAR = 32767


class Facts(NamedTuple):
    """What a rule knows of a matrix besides the lengths of its rows.

    Attributes
    ----------
    padding : float
        Packed entries per entry, rows as they are.
    sorted_padding : float
        The same with rows sorted within windows.
    patterns : int
        Distinct rows, as offsets from the diagonal; 0 if there are too many.
    reach : int
        The largest distance of an entry from the diagonal.
    hot_share : float
        Share of the entries in the columns that fit shared memory.
    itemsize : int
        Bytes of a value.
    room : int
        Bytes of memory that are free.
    """

    padding: float
    sorted_padding: float
    patterns: int
    reach: int
    hot_share: float
    itemsize: int
    room: int


class Choice(NamedTuple):
    """A kernel and why."""

    kernel: str
    reason: str


def lanes_of(mean: float) -> int:
    """Return how many lanes share a row of ``mean`` entries that come from memory.

    Four lanes were best for the 7 entries of a stencil: 248 microseconds at 200^3, two took 507.
    """
    count = 1
    while count < MOST_LANES and count < mean / 2:
        count *= 2
    return count


@cache  # every product asks
def lanes(statistics: RowStatistics, thresholds: Thresholds = NVIDIA) -> int:
    """Return how many lanes share a row.

    With more of them the longest row ends earlier, and all rows together need more work-items:
    of a small matrix the sum of both times is least, of a large one lanes read side by side.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> lanes(RowStatistics(2003, 2003, 83_883, 41.9, 20.0, 95, 0.0))
    32
    """
    if statistics.nnz > thresholds.small_entries:
        return lanes_of(statistics.mean)
    rows = max(statistics.rows, 1)
    best = sqrt(
        thresholds.step * max(statistics.longest, 1) * thresholds.threads / (thresholds.fill * rows)
    )
    wanted = max(best, statistics.mean / 8, 1.0)
    return min(2 ** round(log2(wanted)), MOST_LANES)


def _shared_rows(statistics: RowStatistics, thresholds: Thresholds) -> float:
    """Return the microseconds of sub-warps on a small matrix, above those of any launch."""
    width = lanes(statistics, thresholds)
    return (
        thresholds.step * -(-statistics.longest // width)
        + thresholds.fill * statistics.rows * width / thresholds.threads
    )


def choose_small(statistics: RowStatistics, thresholds: Thresholds = NVIDIA) -> Choice | None:
    """Return the kernel where the lengths of the rows are enough to know it.

    A kernel that needs no packing has to be no worse; one that does has to be better by a quarter.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> choose_small(RowStatistics(17_758, 17_758, 126_150, 7.1, 20.0, 574, 0.0)).kernel
    'subwarp'
    """
    if statistics.nnz > thresholds.small_entries:
        return None
    mine = _shared_rows(statistics, thresholds)
    packed = thresholds.sell_step * (-(-statistics.longest // thresholds.sell_most) - 1)
    few = statistics.nnz < thresholds.few_entries
    if few or mine < min(LAUNCH + packed, LAUNCH + thresholds.balanced) * 0.75 - LAUNCH:
        width = lanes(statistics, thresholds)
        return Choice("subwarp", f"small: {width} lanes a row end the longest row soon")
    return None


def choose(statistics: RowStatistics, facts: Facts, thresholds: Thresholds = NVIDIA) -> Choice:
    """Return the kernel of ``csr.spmv`` for one vector.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> stencil = RowStatistics(8_000_000, 8_000_000, 55_760_000, 6.97, 0.17, 7, 0.0)
    >>> choose(stencil, Facts(1.004, 1.001, 27, 40_000, 0.0, 8, 2**36)).kernel
    'sell-pattern'
    """
    small = choose_small(statistics, thresholds)
    if small is not None:
        return small
    if needs(statistics, facts, thresholds) > facts.room // 2:
        return _plain(statistics, thresholds, "no memory for a packed copy")
    padding = min(facts.padding, facts.sorted_padding)
    if padding <= thresholds.most_padding:
        if 0 < facts.patterns <= MOST_PATTERNS:
            return Choice(
                "sell-pattern", f"regular rows of {facts.patterns} patterns: columns need no bytes"
            )
        if facts.reach <= NEAR:
            return Choice("sell-near", "regular rows near the diagonal: columns take two bytes")
        return Choice("sell", "regular rows")
    if statistics.longest <= thresholds.short and statistics.mean < 1:
        return Choice("subwarp", "almost all rows are empty and none is long: one lane a row")
    if (
        statistics.longest > max(thresholds.uneven * statistics.mean, thresholds.many)
        or statistics.empty > 0.5
    ):
        if facts.hot_share >= thresholds.hot_share and statistics.nnz >= thresholds.hot_entries:
            return Choice(
                "balanced-hot",
                f"uneven rows, and {facts.hot_share:.0%} of the entries in the columns that "
                "shared memory holds",
            )
        return Choice("balanced", "uneven rows: long ones are cut, equal ones work together")
    return _plain(statistics, thresholds, "rows of moderate lengths")


def _plain(statistics: RowStatistics, thresholds: Thresholds, why: str) -> Choice:
    uneven = statistics.longest > max(thresholds.uneven * statistics.mean, thresholds.many)
    counted = statistics.rows < 2**31  # by the kernel, with 32-bit indices
    if statistics.mean <= thresholds.stream_entries and not uneven and counted:
        return Choice("stream", f"{why}: short rows, loaded side by side")
    return Choice("subwarp", f"{why}: {lanes(statistics, thresholds)} lanes a row")


def needs(statistics: RowStatistics, facts: Facts, thresholds: Thresholds = NVIDIA) -> int:
    """Return the bytes of the largest packed copy that may be chosen, work space included."""
    padding = min(facts.padding, facts.sorted_padding, thresholds.most_padding)
    return int(statistics.nnz * padding * (facts.itemsize + 4)) + 40 * statistics.rows
