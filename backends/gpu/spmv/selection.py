"""Selects the kernel for a CSR matrix and a vector: a pure function of properties of the matrix."""

from __future__ import annotations

from functools import cache
from math import log2, sqrt
from typing import NamedTuple

from ....core.algorithm import Estimate, copy_pays
from ....core.statistics import RowStatistics
from ..constants import SPMV, SpmvConstants

#: Patterns that a byte can tell apart.
MOST_PATTERNS = 256
#: Lanes that share a row at most.
MOST_LANES = 32
#: Bytes of memory that finding row blocks takes for each row.
ROW_BYTES = 48
#: Bytes of a column in packed copies, by the kernel; that of few patterns has a byte for a row.
COLUMN_BYTES = {
    "sell-pattern": 0,
    "sell-near": 2,
    "sell": 4,
    "row-segments": 4,
    "row-segments-cached": 4,
}
#: Bytes of packed copies for each row, which products read, and which new values are copied by.
READ_BYTES, SOURCE_BYTES = 1, 12
#: The padding of rows that are not measured.
UNKNOWN = 9.9
#: Distance from the diagonal that a signed 16-bit step can tell (-32768 marks padding).
NEAR = 32767


class SpmvFacts(NamedTuple):
    """The inputs of a rule besides the lengths of rows.

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
    shared_share : float
        Share of the entries in the columns that fit shared memory.
    itemsize : int
        Bytes of a value.
    free_bytes : int
        Bytes of memory that are free.
    stored_bytes : int
        Bytes of a value as it is stored.
    index_bytes : int
        Bytes of an index.
    """

    padding: float
    sorted_padding: float
    patterns: int
    reach: int
    shared_share: float
    itemsize: int
    free_bytes: int
    stored_bytes: int
    index_bytes: int

    @property
    def is_measured(self) -> bool:
        """Whether the padding of packed rows is known."""
        return self.padding != UNKNOWN

    @property
    def reached_bytes(self) -> int:
        """Bytes of x as far from the diagonal as entries are."""
        return 2 * self.reach * self.itemsize


class SpmvChoice(NamedTuple):
    """A kernel and why."""

    kernel: str
    reason: str


def lanes_of(mean: float) -> int:
    """Return how many lanes share a row of ``mean`` entries that come from memory."""
    count = 1
    while count < MOST_LANES and count < mean / 2:
        count *= 2
    return count


@cache  # every product asks
def lanes(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> int:
    """Return how many lanes share a row.

    With more of them the longest row ends earlier, and all rows together need more work-items:
    of a small matrix the sum of both times is least, of a large one lanes read side by side.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> lanes(RowStatistics(2003, 2003, 83_883, 41.9, 20.0, 95, 0.0))
    32
    """
    if statistics.nnz > rules.small_entries:
        return lanes_of(statistics.mean)
    rows = max(statistics.rows, 1)
    best = sqrt(rules.step * max(statistics.longest, 1) * rules.threads / (rules.fill * rows))
    wanted = max(best, statistics.mean / 8, 1.0)
    return min(2 ** round(log2(wanted)), MOST_LANES)


def _shared_rows(statistics: RowStatistics, rules: SpmvConstants) -> float:
    """Return the microseconds of sub-warps on a small matrix, above a launch."""
    width = lanes(statistics, rules)
    return (
        rules.step * -(-statistics.longest // width)
        + rules.fill * statistics.rows * width / rules.threads
    )


def choose_small(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> SpmvChoice | None:
    """Return the kernel where the lengths of the rows are enough to know it.

    A kernel that needs no packing has to be no worse; one that does has to be better by a quarter.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> choose_small(RowStatistics(2003, 2003, 83_883, 41.9, 20.0, 95, 0.0)).kernel
    'subwarp'
    """
    if statistics.nnz > rules.small_entries:
        return None
    mine = _shared_rows(statistics, rules)
    packed = rules.sell_step * (-(-statistics.longest // rules.sell_most) - 1)
    adaptive = rules.adaptive_launch + rules.adaptive_entry * statistics.nnz
    few = statistics.nnz < rules.few_entries
    if few or mine < min((rules.launch + packed) * 0.75 - rules.launch, adaptive):
        width = lanes(statistics, rules)
        return SpmvChoice("subwarp", f"small: {width} lanes a row end the longest row soon")
    return None


def choose(statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants = SPMV) -> SpmvChoice:
    """Return the kernel of ``csr.spmv`` for one vector.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> stencil = RowStatistics(8_000_000, 8_000_000, 55_760_000, 6.97, 0.17, 7, 0.0)
    >>> choose(stencil, SpmvFacts(1.004, 1.001, 27, 40_000, 0.0, 8, 2**36, 8, 4)).kernel
    'sell-pattern'
    """
    small = choose_small(statistics, rules)
    if small is not None:
        return small
    packed = _packed(statistics, facts, rules)
    if packed is None:
        return unpacked(statistics, facts.free_bytes, rules)
    if pays(packed.kernel, statistics, facts, rules):
        return packed
    kernel, reason = unpacked(statistics, facts.free_bytes, rules)
    gained = gain(packed.kernel, statistics, facts, rules)
    return SpmvChoice(
        kernel, f"{reason}; {packed.kernel} would gain {gained:.2f} x, and keep a copy"
    )


def _packed(statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants) -> SpmvChoice | None:
    """Return the fastest kernel with a packed copy, or None where others are faster."""
    if needs(statistics, facts, rules) <= facts.free_bytes // 2:
        if packs(statistics, facts, rules):
            if 0 < facts.patterns <= MOST_PATTERNS:
                return SpmvChoice(
                    "sell-pattern",
                    f"regular rows of {facts.patterns} patterns: columns need no bytes",
                )
            if facts.reach <= NEAR:
                return SpmvChoice(
                    "sell-near", "regular rows near the diagonal: columns take two bytes"
                )
            return SpmvChoice("sell", "regular rows")
        if facts.shared_share >= rules.shared_share and may_share_columns(statistics, rules):
            return SpmvChoice(
                "row-segments-cached",
                f"uneven rows, and {facts.shared_share:.0%} of the entries in the columns that "
                "shared memory holds",
            )
        if may_cut_rows(statistics, rules) and is_far(facts, rules):
            return SpmvChoice(
                "row-segments", "many entries a row: long rows are cut, equal ones together"
            )
    return None


def pays(
    kernel: str, statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants = SPMV
) -> bool:
    """Return whether a packed copy gains enough for the memory that it takes.

    In caches the time is not that of bytes: stencils are 1.3 to 2.2 times as fast from copies, and
    the copies are small.
    """
    if statistics.nnz < rules.cached_entries:
        return True
    own = _csr_bytes(statistics, facts)
    extra = (_packed_bytes(kernel, statistics, facts) + SOURCE_BYTES * statistics.rows) / own
    return copy_pays(gain(kernel, statistics, facts, rules), extra)


def gain(
    kernel: str, statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants = SPMV
) -> float:
    """Return how many times as fast a packed copy is expected to be as the arrays as they are.

    A product of a matrix from memory takes the time of the bytes that it reads. The gain of copies
    beyond that was measured: see :class:`..constants.SpmvConstants`.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> stencil = RowStatistics(8_000_000, 8_000_000, 55_760_000, 6.97, 0.17, 7, 0.0)
    >>> known = SpmvFacts(1.004, 1.001, 27, 40_000, 0.0, 8, 2**36, 8, 4)
    >>> round(gain("sell-pattern", stencil, known), 1), round(gain("sell", stencil, known), 1)
    (1.5, 1.1)
    """
    s = statistics
    vectors = _vector_bytes(s, facts)
    moved = _csr_bytes(s, facts) + vectors
    packed = _packed_bytes(kernel, s, facts) + vectors
    if kernel == "row-segments-cached":
        beyond = rules.cached_gain
    elif kernel == "row-segments":
        long = s.mean >= rules.sorted_long
        beyond = rules.long_gain if long else rules.segments_gain
    elif kernel == "sell":
        named = min(s.columns * facts.itemsize, facts.reached_bytes)
        long = s.mean >= rules.long_slices and named <= rules.slices_bytes
        beyond = rules.long_slices_gain if long else rules.slices_gain
    else:
        beyond = rules.near_gain if kernel == "sell-near" else rules.slices_gain
    return beyond * moved / max(packed, 1)


def estimate(
    kernel: str, statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants = SPMV
) -> Estimate | None:
    """Return the expected cost of a kernel; None for a copy with padding that is not known.

    A small matrix waits for single loads (:func:`choose_small`) or for its bytes, one from memory
    for its bytes, and for the longest row if its lanes load it by themselves.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> stencil = RowStatistics(8_000_000, 8_000_000, 55_760_000, 6.97, 0.17, 7, 0.0)
    >>> known = SpmvFacts(1.004, 1.001, 27, 40_000, 0.0, 8, 2**36, 8, 4)
    >>> print(estimate("stream", stencil, known))
    about 199 microseconds for 791 MiB
    >>> print(estimate("sell-pattern", stencil, known))
    about 130 microseconds for 556 MiB
    """
    s, packed = statistics, kernel in COLUMN_BYTES
    if packed and not kernel.startswith("row-segments") and not facts.is_measured:
        return None
    moved = _csr_bytes(s, facts) + _vector_bytes(s, facts)
    nbytes = _packed_bytes(kernel, s, facts) + _vector_bytes(s, facts) if packed else moved
    if s.nnz <= rules.small_entries:
        if packed:
            waits = rules.sell_step * (-(-s.longest // rules.sell_most) - 1)
        elif kernel == "csr-adaptive":
            waits = rules.adaptive_launch + rules.adaptive_entry * s.nnz
        else:
            waits = _shared_rows(s, rules)
        waits = max(waits, nbytes / rules.bandwidth)
    else:
        waits = moved / rules.bandwidth
        if packed:
            waits /= gain(kernel, s, facts, rules)
        elif kernel == "subwarp":
            waits = max(waits, rules.wait * s.longest / lanes(s, rules))
    return Estimate(rules.launch + waits, int(nbytes))


def _vector_bytes(statistics: RowStatistics, facts: SpmvFacts) -> int:
    return facts.itemsize * (statistics.rows + min(statistics.columns, statistics.nnz))


def _csr_bytes(statistics: RowStatistics, facts: SpmvFacts) -> float:
    each = facts.stored_bytes + facts.index_bytes
    return statistics.nnz * each + facts.index_bytes * (statistics.rows + 1)


def _packed_bytes(kernel: str, statistics: RowStatistics, facts: SpmvFacts) -> float:
    segments = kernel.startswith("row-segments")
    padding = 1.0 if segments else min(facts.padding, facts.sorted_padding)
    each = facts.stored_bytes + COLUMN_BYTES[kernel]
    return statistics.nnz * padding * each + READ_BYTES * statistics.rows


def packs(statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants = SPMV) -> bool:
    """Return whether rows are alike, with little padding, and none takes a lane too long.

    A lane loads the entries of its row one after the other. While it does, the memory has time for
    the bytes of all rows, if they are many.
    """
    longest = longest_packed(statistics.rows, statistics.nnz, facts.itemsize, rules)
    return (
        min(facts.padding, facts.sorted_padding) <= rules.most_padding
        and statistics.longest <= longest
    )


def longest_packed(rows: int, nnz: int, itemsize: int, rules: SpmvConstants = SPMV) -> float:
    """Return how long a row of a packed copy may be; -1 if lanes take too long in any case.

    Examples
    --------
    >>> longest_packed(8_000_000, 55_760_000, 8) > 400, longest_packed(10, 5_000_000, 8)
    (True, -1.0)
    """
    mean, moved = nnz / max(rows, 1), nnz * (itemsize + 4) / rules.bandwidth
    load = rules.sell_step
    if nnz >= rules.cached_entries:
        load = rules.sell_wait + rules.sell_byte * itemsize
    if load * mean / rules.sell_most > rules.most_loading * moved + rules.slack:
        return -1.0
    further = (rules.most_waiting * moved + rules.slack) / rules.sell_step
    return mean + rules.sell_most * further


def is_uneven(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> bool:
    """Return whether long rows would starve adjacent rows, or most rows are empty."""
    return (
        statistics.longest > max(rules.uneven * statistics.mean, rules.many)
        or statistics.empty > 0.5
    )


def may_share_columns(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> bool:
    """Return whether sorting x, to have cached columns at hand, can pay."""
    return (
        is_uneven(statistics, rules)
        and statistics.nnz >= rules.shared_entries
        and statistics.nnz >= rules.shared_mean * statistics.columns
    )


def may_cut_rows(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> bool:
    """Return whether rows have enough entries for pieces of them, sorted by length, to pay."""
    long = statistics.mean >= rules.sorted_long
    many = rules.cached_entries if long else rules.sorted_entries
    return statistics.nnz >= many and statistics.mean >= rules.sorted_mean


def is_far(facts: SpmvFacts, rules: SpmvConstants = SPMV) -> bool:
    """Return whether adjacent rows name more of x than the first-level cache holds."""
    return facts.reached_bytes > rules.near_bytes


def unpacked(statistics: RowStatistics, free_bytes: int, rules: SpmvConstants = SPMV) -> SpmvChoice:
    """Return the kernel that reads the arrays as they are.

    Parameters
    ----------
    free_bytes : int
        Bytes of memory that are free: finding row blocks takes some for each row.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> unpacked(RowStatistics(373_376, 373_376, 3_313_614, 8.9, 600.0, 289_063, 0.0), 2**36).kernel
    'csr-adaptive'
    """
    small = choose_small(statistics, rules)
    if small is not None:
        return small
    short = statistics.mean <= rules.stream_entries and not is_uneven(statistics, rules)
    counted = statistics.rows < 2**31  # by the kernel of CSR-stream, with 32-bit indices
    without = ROW_BYTES * statistics.rows > free_bytes
    if short and counted and (without or statistics.nnz >= rules.cached_entries):
        return SpmvChoice("stream", "short rows, loaded side by side")
    if without:
        width = lanes(statistics, rules)
        return SpmvChoice("subwarp", f"no memory for row blocks: {width} lanes a row")
    return SpmvChoice("csr-adaptive", "equal shares of entries for all blocks: long rows are cut")


def one_pass(rest: RowStatistics, itemsize: int, rules: SpmvConstants = SPMV) -> bool:
    """Return whether a lane may add up the rest of a row with its part of an Ell.

    It loads these entries one after the other. That must not take longer than a second launch,
    which reads where all rows begin and writes y again.

    Parameters
    ----------
    rest : RowStatistics
        Of the Coo part.
    itemsize : int
        Bytes of a value.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> one_pass(RowStatistics(500_000, 500_000, 400_000, 0.8, 1.5, 17, 0.7), 8)
    True
    >>> one_pass(RowStatistics(500_000, 500_000, 400_000, 0.8, 90.0, 20_000, 0.7), 8)
    False
    """
    saved = rules.launch + rest.rows * (2 * itemsize + 4) / rules.bandwidth
    return rules.wait * rest.longest <= saved


def one_by_one(statistics: RowStatistics, columns: int, rules: SpmvConstants = SPMV) -> bool:
    """Return whether several vectors are better multiplied one after the other, by shares.

    Sub-warps read the matrix once for four of them, and wait for the longest row.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> one_by_one(RowStatistics(373_376, 373_376, 3_313_614, 8.9, 600.0, 289_063, 0.0), 4)
    True
    """
    waits = rules.wait * statistics.longest / lanes(statistics, rules)
    alone = rules.launch + 16 * statistics.nnz / rules.bandwidth
    return waits * -(-columns // 4) > 2 * columns * alone


def needs(statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants = SPMV) -> int:
    """Return the bytes of the largest packed copy that may be chosen, work space included."""
    padding = min(facts.padding, facts.sorted_padding, rules.most_padding)
    return int(statistics.nnz * padding * (facts.itemsize + 4)) + 40 * statistics.rows
