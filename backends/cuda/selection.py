"""Which kernel multiplies a CSR matrix with a vector: a pure function of what is known of it."""

from __future__ import annotations

from typing import NamedTuple

from ...core.statistics import RowStatistics

#: Padding of slices that a packed copy may have: it moves that much more than CSR. CSR-stream
#: reaches 92 % of copy bandwidth on a 7-point stencil, so a copy with more than that is no gain.
MOST_PADDING = 1.15
#: Below that many entries launches cost more than bytes, and a plan more than it brings.
FEW_ENTRIES = 20_000
#: Rows a block of CSR-stream holds in shared memory on average: 8 entries for each of its items.
STREAM_ENTRIES = 8.0
#: Patterns that a byte can tell apart.
MOST_PATTERNS = 256
#: Distance from the diagonal that a signed 16-bit step can tell (-32768 marks padding).
NEAR = 32767
#: A row this many times the mean (and of at least MANY entries) starves the lanes beside it.
UNEVEN = 8.0
MANY = 256
#: Rows that a single lane can do without being waited for long: with a quarter of an entry a row
#: that took 335 microseconds, cut and sorted rows 367 and cuSPARSE 389 (20 M rows, H200).
SHORT = 16
#: Share of the entries that hot columns must have to pay for sorting x: an R-MAT graph with 65 %
#: gains 1.24 times (H200, 24,000 columns of float64), a circuit with 20 % would lose.
HOT_SHARE = 0.4
HOT_ENTRIES = 4_000_000


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


def lanes(mean: float) -> int:
    """Return how many lanes share a row of ``mean`` entries.

    Four lanes were best for the 7 entries of a stencil: 248 microseconds at 200^3, two took 507.
    """
    count = 1
    while count < 32 and count < mean / 2:
        count *= 2
    return count


def choose(statistics: RowStatistics, facts: Facts) -> Choice:
    """Return the kernel of ``csr.spmv`` for one vector.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> stencil = RowStatistics(8_000_000, 8_000_000, 55_760_000, 6.97, 0.17, 7, 0.0)
    >>> choose(stencil, Facts(1.004, 1.001, 27, 40_000, 0.0, 8, 2**36)).kernel
    'sell-pattern'
    """
    if statistics.nnz < FEW_ENTRIES:
        return _plain(statistics, "small")
    if needs(statistics, facts) > facts.room // 2:
        return _plain(statistics, "no memory for a packed copy")
    padding = min(facts.padding, facts.sorted_padding)
    if padding <= MOST_PADDING:
        if 0 < facts.patterns <= MOST_PATTERNS:
            return Choice(
                "sell-pattern", f"regular rows of {facts.patterns} patterns: columns need no bytes"
            )
        if facts.reach <= NEAR:
            return Choice("sell-near", "regular rows near the diagonal: columns take two bytes")
        return Choice("sell", "regular rows")
    if statistics.longest <= SHORT and statistics.mean < 1:
        return Choice("subwarp", "almost all rows are empty and none is long: one lane a row")
    if statistics.longest > max(UNEVEN * statistics.mean, MANY) or statistics.empty > 0.5:
        if facts.hot_share >= HOT_SHARE and statistics.nnz >= HOT_ENTRIES:
            return Choice(
                "balanced-hot",
                f"uneven rows, and {facts.hot_share:.0%} of the entries in the columns that "
                "shared memory holds",
            )
        return Choice("balanced", "uneven rows: long ones are cut, equal ones work together")
    return _plain(statistics, "rows of moderate lengths")


def _plain(statistics: RowStatistics, why: str) -> Choice:
    uneven = statistics.longest > max(UNEVEN * statistics.mean, MANY)
    if statistics.mean <= STREAM_ENTRIES and not uneven:
        return Choice("stream", f"{why}: short rows, loaded side by side")
    return Choice("subwarp", f"{why}: {lanes(statistics.mean)} lanes a row")


def needs(statistics: RowStatistics, facts: Facts) -> int:
    """Return the bytes of the largest packed copy that may be chosen, work space included."""
    padding = min(facts.padding, facts.sorted_padding, MOST_PADDING)
    return int(statistics.nnz * padding * (facts.itemsize + 4)) + 40 * statistics.rows
