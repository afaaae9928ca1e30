"""Select the kernel for a CSR matrix and a vector: a pure function of the matrix's properties."""

from __future__ import annotations

from functools import cache
from math import log2, sqrt
from typing import NamedTuple

from ....core.algorithm import Estimate, copy_pays
from ....core.statistics import RowStatistics
from ..constants import SPMV, SpmvConstants

#: Patterns that a byte can distinguish.
MOST_PATTERNS = 256
#: Upper bound of lanes per row.
MOST_LANES = 32
#: Bytes of memory per row that finding row blocks needs.
ROW_BYTES = 48
#: Bytes per column index in packed copies, by kernel; ``sell-pattern`` has one byte per row.
COLUMN_BYTES = {
    "sell-pattern": 0,
    "sell-near": 2,
    "sell": 4,
    "row-segments": 4,
    "row-segments-cached": 4,
}
#: Bytes per row of packed copies: read by products, and kept for copying new values.
READ_BYTES, SOURCE_BYTES = 1, 12
#: The padding of rows that were not measured.
UNKNOWN = 9.9
#: Largest distance from the diagonal that a signed 16-bit offset can store (-32768 is padding).
NEAR = 32767


class SpmvFacts(NamedTuple):
    """The inputs of a rule besides the row statistics.

    Attributes
    ----------
    padding : float
        Packed entries (including padding) per entry, for rows in order.
    sorted_padding : float
        The same for rows sorted within windows.
    patterns : int
        Number of distinct rows, as offsets from the diagonal; 0 if there are too many.
    reach : int
        The largest distance of an entry from the diagonal.
    shared_share : float
        Fraction of the entries in the columns that fit into shared memory.
    itemsize : int
        Bytes per value.
    free_bytes : int
        Free memory in bytes.
    stored_bytes : int
        Bytes per stored value.
    index_bytes : int
        Bytes per index.
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
        """Bytes of x within the largest distance of entries from the diagonal."""
        return 2 * self.reach * self.itemsize


class SpmvChoice(NamedTuple):
    """A kernel, and the reason for it."""

    kernel: str
    reason: str


def lanes_of(mean: float) -> int:
    """Return the number of lanes per row with ``mean`` entries that are read from memory."""
    count = 1
    while count < MOST_LANES and count < mean / 2:
        count *= 2
    return count


@cache  # every product needs it
def lanes(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> int:
    """Return the number of lanes per row.

    With more lanes, the longest row ends earlier, but all rows together need more work-items. For a
    small matrix the sum of both times is minimized; for a large matrix, lanes read contiguously.

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
    """Return the microseconds of sub-warps on a small matrix, excluding the launch."""
    width = lanes(statistics, rules)
    return (
        rules.step * -(-statistics.longest // width)
        + rules.fill * statistics.rows * width / rules.threads
    )


def choose_small(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> SpmvChoice | None:
    """Return the kernel if the row lengths suffice to choose it, else None.

    Other kernels must beat sub-warps: an unpacked kernel by any margin, a packed one by a quarter.

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
    """Return the fastest kernel with a packed copy, or None if others are faster."""
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

    For matrices in caches, the time does not depend on bytes alone: stencils are 1.3 to 2.2 times
    as fast from copies, and the copies are small.
    """
    if statistics.nnz < rules.cached_entries:
        return True
    own = _csr_bytes(statistics, facts)
    extra = (_packed_bytes(kernel, statistics, facts) + SOURCE_BYTES * statistics.rows) / own
    return copy_pays(gain(kernel, statistics, facts, rules), extra)


def gain(
    kernel: str, statistics: RowStatistics, facts: SpmvFacts, rules: SpmvConstants = SPMV
) -> float:
    """Return the expected speedup of a packed copy over the unpacked arrays.

    A product with a matrix in memory takes the time of the bytes that it reads. The gain of copies
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
    """Return the expected cost of a kernel; None for a copy with unknown padding.

    A small matrix is bound by the latency of single loads (:func:`choose_small`) or by its bytes. A
    matrix in memory is bound by its bytes, or by its longest row if lanes load rows alone.

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
    """Return whether rows are similar, with little padding, and none takes a lane too long.

    A lane loads the entries of its row sequentially. If there are many rows, the memory transfers
    the bytes of all rows in the meantime.
    """
    longest = longest_packed(statistics.rows, statistics.nnz, facts.itemsize, rules)
    return (
        min(facts.padding, facts.sorted_padding) <= rules.most_padding
        and statistics.longest <= longest
    )


def longest_packed(rows: int, nnz: int, itemsize: int, rules: SpmvConstants = SPMV) -> float:
    """Return the largest row length for a packed copy; -1 if lanes take too long in any case.

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
    """Return whether long rows would delay adjacent rows, or most rows are empty."""
    return (
        statistics.longest > max(rules.uneven * statistics.mean, rules.many)
        or statistics.empty > 0.5
    )


def may_share_columns(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> bool:
    """Return whether sorting x for cached columns can pay."""
    return (
        is_uneven(statistics, rules)
        and statistics.nnz >= rules.shared_entries
        and statistics.nnz >= rules.shared_mean * statistics.columns
    )


def may_cut_rows(statistics: RowStatistics, rules: SpmvConstants = SPMV) -> bool:
    """Return whether rows have enough entries for sorted pieces of rows to pay."""
    long = statistics.mean >= rules.sorted_long
    many = rules.cached_entries if long else rules.sorted_entries
    return statistics.nnz >= many and statistics.mean >= rules.sorted_mean


def is_far(facts: SpmvFacts, rules: SpmvConstants = SPMV) -> bool:
    """Return whether adjacent rows use more of x than the first-level cache holds."""
    return facts.reached_bytes > rules.near_bytes


def unpacked(statistics: RowStatistics, free_bytes: int, rules: SpmvConstants = SPMV) -> SpmvChoice:
    """Return the kernel that reads the unpacked arrays.

    Parameters
    ----------
    free_bytes : int
        Free memory in bytes; finding row blocks needs some per row.

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
    counted = statistics.rows < 2**31  # CSR-stream has 32-bit row indices
    without = ROW_BYTES * statistics.rows > free_bytes
    if short and counted and (without or statistics.nnz >= rules.cached_entries):
        return SpmvChoice("stream", "short rows, loaded side by side")
    if without:
        width = lanes(statistics, rules)
        return SpmvChoice("subwarp", f"no memory for row blocks: {width} lanes a row")
    return SpmvChoice("csr-adaptive", "equal shares of entries for all blocks: long rows are cut")


def one_pass(rest: RowStatistics, itemsize: int, rules: SpmvConstants = SPMV) -> bool:
    """Return whether a lane may add a row's remainder (Coo part) to its Ell part.

    It loads the remaining entries sequentially. This must not take longer than a second launch,
    which would read all row pointers and write y again.

    Parameters
    ----------
    rest : RowStatistics
        Statistics of the Coo part.
    itemsize : int
        Bytes per value.

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
    """Return whether to multiply several vectors one by one with balanced shares.

    Sub-warps read the matrix once per four vectors, but wait for the longest row.

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
    """Return the bytes of the largest packed copy that may be chosen, including work space."""
    padding = min(facts.padding, facts.sorted_padding, rules.most_padding)
    return int(statistics.nnz * padding * (facts.itemsize + 4)) + 40 * statistics.rows
