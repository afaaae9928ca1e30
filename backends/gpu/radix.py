"""Sort the entries of a matrix by one of their indices with a radix sort.

Random keys, such as the columns of a random matrix, are moved into buckets by their upper bits in
one or two passes; then, a block sorts each bucket in shared memory. If a bucket has too many
entries for this, or if keys have many entries each, passes move the entries by all bits, lowest
digit first. Until the final gather of values, no launch accesses scattered addresses. The result
equals the result of a stable sort.

A pass consists of three kernels: each block counts the digits of its tiles, a scan sums the counts
before each tile, and each block moves its tiles. The host requests the size of the largest bucket
and submits the pass before it waits for the answer.

Besides the result, the sort needs one or two 64-bit words per entry. Sorting the entries of one key
at a time needs two indices and 32 bits per entry. A word contains the key, the number of the entry
and its other index, or only the first two if 64 bits are too few for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.executor import Array
from ..simt import radix_kernels as simt
from . import launch
from .base import GpuExecutor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

    from ..unified.wrappers import SimtKernel
    from .types import LaunchOperand

#: Smallest number of entries for which passes pay; fewer entries are sorted one key at a time.
#: Below a million entries, both consist mostly of launches: 254 and 363 microseconds for 4096
#: entries, 214 and 295 for 2^17 (H100, 26 November).
FEWEST_ENTRIES = 1 << 10

#: Target number of entries per bucket: blocks can sort up to one and a half times this number.
OF_BUCKET = simt.BUCKET_ENTRIES * 2 // 3

#: From this average number of entries per key on, passes use all bits: kernels for 4 M entries of
#: 20,000 keys then take 184 microseconds, and 304 with buckets (H100, 26 November).
OF_KEY = 32

#: Upper bound of parts of the entries. Each part has one counter per digit. Blocks with more tiles
#: write to more addresses at once: words of a cache line are then evicted before the words next to
#: them arrive. The first pass over 16 M entries took 320 microseconds with up to 1024 parts, and
#: takes 183 now (H100, 26 November).
PARTS = 1 << 13

#: With fewer entries, passes use all bits if at most two passes are needed: these take the time of
#: one pass into buckets and the bucket sorts, and no bucket can be too large. Microseconds per
#: call, by bits and with buckets: a stencil of 32^3 589 and 583, R-MAT of 0.9 M entries 248 and
#: 383, 2,000 entries 355 and 471 (H100, 26 November).
SMALL = 1 << 20

#: Largest number of bits per digit in passes by all bits: for many entries and for fewer than
#: ``FEW`` entries, for which each pass consists mostly of launches. With more digits, entries leave
#: a tile in shorter runs. Three passes of 7 bits and two of 10, microseconds of all kernels with
#: the gather of values: 4 M random entries 287 and 329, 16 M 1214 and 1385, R-MAT of 8 M 550 and
#: 544 (H100, 26 November). ``FEW`` is an estimate.
PASS_BITS, PASS_BITS_OF_FEW, FEW = 8, 10, 1 << 21

#: Bits of the first of two digits that identify buckets, unless more are needed.
FIRST_BITS = 9

#: The largest bucket of a first pass may have at most this many times the average.
UNEVEN = 4

#: Bits per word.
WORD_BITS = 64


class KeyedEntries(NamedTuple):
    """The arrays to sort.

    Attributes
    ----------
    keys : array
        The index of each entry to sort by.
    limit : int
        An upper bound: all keys are smaller.
    others : array or None
        The other index of each entry; None if it is the row.
    indptr : array or None
        Row pointers, if the other index is the row.
    others_limit : int
        An upper bound: all other indices are smaller.
    values : array
        The value of each entry.
    """

    keys: Array
    limit: int
    others: Array | None
    indptr: Array | None
    others_limit: int
    values: Array

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(self.keys.size)


class Sorted(NamedTuple):
    """Sorted entries: pointers of keys, other indices, original positions, and values."""

    indptr: Array
    others: Array
    order: Array
    values: Array


class Digits(NamedTuple):
    """A digit of keys: ``number`` possible values of the bits from ``shift`` on."""

    shift: int
    number: int


class Bits(NamedTuple):
    """The bits of a word for the entry and for its other index; the key has the bits above."""

    entry: int
    other: int

    def leave(self, key: int) -> bool:
        """Return whether a word has at least ``key`` bits left for the key."""
        return key + self.entry + self.other <= WORD_BITS


class Segments(NamedTuple):
    """The buckets of the previous pass.

    Attributes
    ----------
    number : int
        Number of buckets.
    bounds : array
        The beginning of each bucket, and the end of the last.
    largest : int
        Entries of the largest bucket.
    """

    number: int
    bounds: Array
    largest: int


class Moved(NamedTuple):
    """Words sorted by digit, and the beginning of each digit."""

    words: Array
    starts: Array


def bits_of(limit: int) -> int:
    """Return the number of bits that distinguish the numbers below a limit.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import bits_of
    >>> [bits_of(limit) for limit in (1, 2, 1024, 1025)]
    [0, 1, 10, 11]
    """
    return max(limit - 1, 0).bit_length()


def layout_of(entries: KeyedEntries) -> Bits:
    """Return the layout of words."""
    return Bits(bits_of(entries.size), bits_of(entries.others_limit))


def bucket_bits(count: int, keys: int) -> int:
    """Return the number of lower key bits within a bucket, for buckets of the target size.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import bucket_bits
    >>> bucket_bits(4_000_000, 500_000), bucket_bits(100_000, 500_000), bucket_bits(10**6, 50)
    (10, 11, 0)
    """
    fair = keys * OF_BUCKET // max(count, 1)
    return min(max(fair, 1).bit_length() - 1, bits_of(simt.BUCKET_KEYS))


def bucket_digits(bits: int, keys: int) -> list[Digits]:
    """Return the one or two digits that identify buckets, highest first; empty if more are needed.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import bucket_digits
    >>> bucket_digits(10, 500_000)
    [Digits(shift=10, number=512)]
    >>> bucket_digits(9, 1_000_000)
    [Digits(shift=11, number=512), Digits(shift=9, number=4)]
    """
    buckets, most = -(-keys // (1 << bits)), bits_of(simt.RADIX_DIGITS)
    if buckets <= simt.RADIX_DIGITS:
        return [Digits(bits, 1 << max(1, bits_of(buckets)))]
    second = max(bits_of(buckets) - FIRST_BITS, 1)
    first = bits_of(buckets) - second
    return [Digits(bits + second, 1 << first), Digits(bits, 1 << second)] if second <= most else []


def pass_bits(entries: int) -> int:
    """Return the largest number of bits per digit in passes by all bits."""
    return PASS_BITS_OF_FEW if entries < FEW else PASS_BITS


def all_digits(bits: int, most: int) -> list[Digits]:
    """Return digits of similar size with at most ``most`` bits each, lowest first.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import all_digits
    >>> all_digits(16, 8)
    [Digits(shift=0, number=256), Digits(shift=8, number=256)]
    >>> [(one.shift, one.number) for one in all_digits(20, 8)]
    [(0, 128), (7, 128), (14, 64)]
    """
    passes = max(1, -(-bits // most))
    each = max(1, -(-bits // passes))
    shifts = range(0, max(bits, 1), each)
    return [Digits(shift, 1 << max(1, min(each, bits - shift))) for shift in shifts]


def pays(entries: KeyedEntries) -> bool:
    """Return whether passes are expected to be faster than sorting each key's entries."""
    return FEWEST_ENTRIES <= entries.size < 2**31 and entries.limit < 2**31


def sorted_by_key(executor: GpuExecutor, entries: KeyedEntries) -> Sorted:
    """Return entries sorted stably by key. Entries and keys must be below 2^31."""
    made = by_buckets(executor, entries) if are_for_buckets(entries) else None
    return by_digits(executor, entries) if made is None else made


def are_for_buckets(entries: KeyedEntries) -> bool:
    """Return whether to try buckets first."""
    if entries.size >= OF_KEY * entries.limit:
        return False
    passes = all_digits(bits_of(entries.limit), pass_bits(entries.size))
    return entries.size >= SMALL or len(passes) > 2


def by_buckets(executor: GpuExecutor, entries: KeyedEntries) -> Sorted | None:
    """Move entries into buckets by one or two digits, then sort each bucket.

    Return None if a bucket has too many entries, if there are too many buckets, or if words have
    too few bits.
    """
    bits, layout = bucket_bits(entries.size, entries.limit), layout_of(entries)
    digits = bucket_digits(bits, entries.limit)
    if not digits or not layout.leave(digits[0].shift):
        return None
    kept = (1 << digits[0].shift) - 1
    step = Pass(executor, entries, layout, digits[0], None, None)
    if len(digits) > 1:
        segments = -(-entries.limit >> digits[0].shift)
        even = UNEVEN * max(entries.size // segments, simt.RADIX_TILE)
        moved, largest = step.run_up_to(even, kept)
        if largest > even:
            return None
        ends = Segments(segments, moved.starts, largest)
        step = Pass(executor, entries, layout, digits[1], moved, ends)
    moved, largest = step.run_up_to(simt.BUCKET_ENTRIES, kept)
    if largest > simt.BUCKET_ENTRIES:
        return None
    made = _empty(executor, entries)
    buckets = -(-entries.limit >> bits)
    given = (entries.limit, bits, *layout, moved.starts, moved.words, *made)
    _launch(executor, simt.sort_bucket, buckets, given, entries.keys.dtype)
    return Sorted(*made, entries.values[made[2]])


def by_digits(executor: GpuExecutor, entries: KeyedEntries) -> Sorted:
    """Move entries by each digit in turn.

    If words have too few bits for the other index, it is gathered at the end.
    """
    bits, layout = bits_of(entries.limit), layout_of(entries)
    is_moved = layout.leave(bits)
    if not is_moved:
        layout = Bits(layout.entry, 0)
    assert layout.leave(bits)
    moved: Moved | None = None
    for digits in all_digits(bits, pass_bits(entries.size)):
        moved = Pass(executor, entries, layout, digits, moved, None).run((1 << bits) - 1)
    assert moved is not None
    made = _empty(executor, entries)
    count = entries.size
    given = (count, entries.limit, digits.shift, *layout, moved.starts, moved.words, *made)
    blocks = launch.row_blocks(max(count, entries.limit + 1), simt.unpack_sorted.block)
    _launch(executor, simt.unpack_sorted, blocks, given, entries.keys.dtype)
    indptr, others, order = made
    if not is_moved:
        others = _other_indices(executor, entries)[order]
    return Sorted(indptr, others, order, entries.values[order])


def _other_indices(executor: GpuExecutor, entries: KeyedEntries) -> Array:
    """Return the other index of each entry."""
    if entries.others is not None:
        return entries.others
    assert entries.indptr is not None
    return rows_of_entries(executor, entries.indptr, entries.size)


def rows_of_entries(executor: GpuExecutor, indptr: Array, count: int) -> Array:
    """Return the row of each of ``count`` entries, in the dtype of the pointers."""
    rows = executor.allocate((count,), indptr.dtype)
    if count:
        blocks = launch.row_blocks(count, simt.expand_rows.block * simt.ENTRIES_OF_ITEM)
        given = (count, int(indptr.size) - 1, indptr, rows)
        _launch(executor, simt.expand_rows, blocks, given, indptr.dtype)
    return rows


class Pass(NamedTuple):
    """One pass of a radix sort, over entries or over the words that the previous pass moved.

    With segments, the pass sorts within each segment.
    """

    executor: GpuExecutor
    entries: KeyedEntries
    layout: Bits
    digits: Digits
    moved: Moved | None
    segments: Segments | None

    @property
    def tiles(self) -> int:
        """Number of tiles per block."""
        if self.segments is not None:
            return 1
        return max(1, -(-self.entries.size // (simt.RADIX_TILE * PARTS)))

    @property
    def parts(self) -> int:
        """Number of blocks per segment, or in total without segments."""
        count = self.entries.size if self.segments is None else self.segments.largest
        return max(1, -(-count // (simt.RADIX_TILE * self.tiles)))

    @property
    def _segments(self) -> int:
        return 1 if self.segments is None else self.segments.number

    def _given(self) -> tuple[Any, ...]:
        below_key = 0 if self.moved is None else sum(self.layout)
        bounds = None if self.segments is None else self.segments.bounds
        shift, digits = self.digits
        return self.entries.size, self.tiles, self.parts, bounds, shift + below_key, digits

    def run(self, kept: int) -> Moved:
        """Return words sorted stably by digit, with the key bits of the mask ``kept``."""
        return self._move(*self._count(), kept, self.entries.size)

    def run_up_to(self, most: int, kept: int) -> tuple[Moved, int]:
        """Run the pass if no digit has more than ``most`` entries; also return the largest number.

        The host waits only for this number, after everything is submitted.
        """
        counts, starts = self._count()
        found = self.executor.transfer(starts[-1:]).ask()
        return self._move(counts, starts, kept, most), int(found()[0][0])

    def _count(self) -> tuple[Array, Array]:
        """Return the entries per digit in all previous parts, and the beginning of each digit.

        The last two numbers are the number of entries and the count of the most frequent digit.
        """
        executor, digits = self.executor, self.digits.number * self._segments
        blocks = self.parts * self._segments
        counts = executor.allocate((digits * self.parts,), np.int32)
        starts = executor.allocate((digits + 2,), np.int32)
        words = None if self.moved is None else self.moved.words
        given: tuple[Any, ...] = (*self._given(), self.entries.keys, words, counts)
        index, is_words = self.entries.keys.dtype, int(words is not None)
        _launch(executor, simt.split_count, blocks, given, index, WORDS=is_words)
        _, counter = executor.scratch(0)
        given = (digits, self.parts, counts, starts, counter)
        _launch(executor, simt.split_scan, digits, given, np.int32)
        return counts, starts

    def _move(self, counts: Array, starts: Array, kept: int, most: int) -> Moved:
        executor, (keys, _, others, indptr, rows, _) = self.executor, self.entries
        if self.layout.other == 0:
            others = keys  # no index is moved, so none has to be found
        source = simt.ROWS if others is None else simt.COORDINATES
        source = source if self.moved is None else simt.WORDS
        words = executor.allocate((self.entries.size,), np.int64)
        given = (
            *self._given(), self.digits.number * self._segments, most, kept, *self.layout, rows,
            indptr, keys, others, None if self.moved is None else self.moved.words,
            counts, starts, words,
        )  # fmt: skip
        blocks = self.parts * self._segments
        _launch(executor, simt.split_move, blocks, given, keys.dtype, SOURCE=source)
        return Moved(words, starts)


def _empty(executor: GpuExecutor, entries: KeyedEntries) -> tuple[Array, Array, Array]:
    dtype, count = entries.keys.dtype, entries.size
    indptr = executor.allocate((entries.limit + 1,), dtype)
    others, order = (executor.allocate((count,), dtype) for _ in range(2))
    return indptr, others, order


def _launch(
    executor: GpuExecutor,
    kernel: SimtKernel,
    blocks: int,
    operands: Sequence[LaunchOperand],
    index: DTypeLike,
    **constants: int,
) -> None:
    """Launch a kernel that does not depend on the values' dtype."""
    executor.launch_simt(kernel, blocks, operands, np.float32, index, **constants)
