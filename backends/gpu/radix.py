"""Entries of a matrix sorted by one of their indices, by passes of a radix sort.

Keys at random, such as the columns of a random matrix, are moved into buckets by their upper bits,
in one pass or two, and a block sorts each bucket in shared memory. Values move with them. Where a
bucket has too many entries for that, or keys have many entries each, passes move entries by all
bits, the lowest first. No launch reads or writes places all over memory, but that which gathers
values in the end where they did not move. The result is that of a stable sort.

Three kernels make a pass: each block counts the digits of its tiles, what comes before is added up,
and each block moves its tiles. The host waits once for each pass into buckets, for the size of the
largest.

Beside the result there is a word of 64 bits for each entry, and its value, or two words; with two
passes into buckets twice that. By keys one at a time it is two indices and 32 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import VALUE_DTYPES
from ...core.executor import Array
from ..simt import kernels as simt
from . import launch
from .base import GpuExecutor

#: Entries from which passes pay; fewer are sorted a key at a time.
FEWEST = 1 << 10

#: Entries that buckets have on average: blocks sort up to half as many again.
OF_BUCKET = simt.BUCKET_ENTRIES * 2 // 3

#: Entries of a key on average from which passes go by all bits.
OF_KEY = 32

#: Parts of the entries at most. Each has a counter for each digit.
PARTS = 1024

#: Bits of a digit at most, where passes go by all bits: entries of more digits leave a tile in
#: shorter runs.
PASS_BITS = 8

#: Bits of the first of two digits that tell buckets apart, where it need not have more.
FIRST_BITS = 9

#: How many times the average the largest bucket of a first pass may be.
UNEVEN = 4

#: Bytes of a value that moves with its entry, at most: each pass reads and writes it, where a
#: gather reads 64 bytes from memory.
MOVED_BYTES = 8

#: Bits of a word.
WORD_BITS = 64


class Entries(NamedTuple):
    """What is sorted.

    Attributes
    ----------
    keys : array
        An index of each entry.
    limit : int
        All keys are smaller.
    others : array or None
        The other index; None if it is the row.
    indptr : array or None
        Where rows begin, if the other index is the row.
    others_limit : int
        All other indices are smaller.
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
    def count(self) -> int:
        """How many entries there are."""
        return int(self.keys.size)


class Sorted(NamedTuple):
    """Entries by key: where each key begins, other indices, where entries were, and values."""

    indptr: Array
    others: Array
    order: Array
    values: Array


class Digits(NamedTuple):
    """Some bits of keys: those from ``shift`` on, as many as ``count`` values take."""

    shift: int
    count: int


class Bits(NamedTuple):
    """How many bits of a word the entry and its other index take; the key has those above."""

    entry: int
    other: int

    def leave(self, key: int) -> bool:
        """Return whether a word has so many bits left for the key."""
        return key + self.entry + self.other <= WORD_BITS


class Segments(NamedTuple):
    """The buckets of the pass before.

    Attributes
    ----------
    count : int
        How many they are.
    bounds : array
        Where each begins, and where the last one ends.
    largest : int
        Entries of the largest.
    """

    count: int
    bounds: Array
    largest: int


class Moved(NamedTuple):
    """What a pass made: words and values by digit, and where digits begin.

    The last two numbers of ``starts`` are how many entries there are, and how many of the most
    frequent digit.
    """

    words: Array
    values: Array | None
    starts: Array


def bits_of(limit: int) -> int:
    """Return how many bits tell the numbers below a limit apart.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import bits_of
    >>> [bits_of(limit) for limit in (1, 2, 1024, 1025)]
    [0, 1, 10, 11]
    """
    return max(limit - 1, 0).bit_length()


def layout_of(entries: Entries) -> Bits:
    """Return how words have their parts."""
    return Bits(bits_of(entries.count), bits_of(entries.others_limit))


def bucket_bits(count: int, keys: int) -> int:
    """Return how many lower bits the keys of a bucket differ in, for buckets of a fair size.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import bucket_bits
    >>> bucket_bits(4_000_000, 500_000), bucket_bits(100_000, 500_000), bucket_bits(10**6, 50)
    (10, 11, 0)
    """
    fair = keys * OF_BUCKET // max(count, 1)
    return min(max(fair, 1).bit_length() - 1, bits_of(simt.BUCKET_KEYS))


def bucket_digits(bits: int, keys: int) -> list[Digits]:
    """Return the digits that tell buckets apart, the highest first, if they are at most two.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import bucket_digits
    >>> bucket_digits(10, 500_000)
    [Digits(shift=10, count=512)]
    >>> bucket_digits(9, 1_000_000)
    [Digits(shift=11, count=512), Digits(shift=9, count=4)]
    """
    buckets, most = -(-keys // (1 << bits)), bits_of(simt.RADIX_DIGITS)
    if buckets <= simt.RADIX_DIGITS:
        return [Digits(bits, 1 << max(1, bits_of(buckets)))]
    second = max(bits_of(buckets) - FIRST_BITS, 1)
    first = bits_of(buckets) - second
    return [Digits(bits + second, 1 << first), Digits(bits, 1 << second)] if second <= most else []


def all_digits(bits: int) -> list[Digits]:
    """Return the digits of keys, the lowest first, of about the same number of bits.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import all_digits
    >>> all_digits(16)
    [Digits(shift=0, count=256), Digits(shift=8, count=256)]
    >>> [(one.shift, one.count) for one in all_digits(20)]
    [(0, 128), (7, 128), (14, 64)]
    """
    passes = max(1, -(-bits // PASS_BITS))
    each = max(1, -(-bits // passes))
    shifts = range(0, max(bits, 1), each)
    return [Digits(shift, 1 << max(1, min(each, bits - shift))) for shift in shifts]


def pays(entries: Entries) -> bool:
    """Return whether passes are expected to take less time than a sort of each key's entries."""
    return FEWEST <= entries.count < 2**31 and entries.limit < 2**31


def sorted_by_key(executor: GpuExecutor, entries: Entries) -> Sorted | None:
    """Return entries by key, equal keys in their order; None if words have too few bits."""
    made = None
    if entries.count < OF_KEY * entries.limit:
        made = by_buckets(executor, entries)
    if made is None:
        made = by_digits(executor, entries)
    return by_buckets(executor, entries) if made is None else made


def by_buckets(executor: GpuExecutor, entries: Entries) -> Sorted | None:
    """Sort buckets of keys; return None if some bucket has too many entries."""
    bits, layout = bucket_bits(entries.count, entries.limit), layout_of(entries)
    digits = bucket_digits(bits, entries.limit)
    if not digits or not layout.leave(digits[0].shift):
        return None
    kept = (1 << digits[0].shift) - 1
    data = entries.values
    moves = data.dtype in map(np.dtype, VALUE_DTYPES) and data.dtype.itemsize <= MOVED_BYTES
    step = Pass(executor, entries, layout, digits[0], None, None)
    counts, starts = step.count()
    largest = _largest(executor, starts)
    if len(digits) == 1:
        if largest > simt.BUCKET_ENTRIES:
            return None
        moved = step.move(counts, starts, kept, data if moves else None)
    else:
        segments = Segments(-(-entries.limit >> digits[0].shift), starts, largest)
        if largest * segments.count > UNEVEN * max(entries.count, simt.RADIX_TILE * segments.count):
            return None
        moved = step.move(counts, starts, kept, data if moves else None)
        step = Pass(executor, entries, layout, digits[1], moved, segments)
        counts, starts = step.count()
        if _largest(executor, starts) > simt.BUCKET_ENTRIES:
            return None
        moved = step.move(counts, starts, kept, moved.values)
    made = _empty(executor, entries)
    buckets = -(-entries.limit >> bits)
    values = executor.allocate((entries.count,), data.dtype) if moves else None
    given = (entries.limit, bits, *layout, moved.starts, moved.words, moved.values, *made, values)
    index, dtype = entries.keys.dtype, data.dtype if moves else np.float32
    executor.launch_simt(simt.sort_bucket, buckets, given, dtype, index, VALUES=int(moves))
    return Sorted(*made, data[made[2]] if values is None else values)


def by_digits(executor: GpuExecutor, entries: Entries) -> Sorted | None:
    """Move entries by each digit in turn; return None if words have too few bits for keys."""
    bits, layout = bits_of(entries.limit), layout_of(entries)
    if not layout.leave(bits):
        return None
    moved: Moved | None = None
    for digits in all_digits(bits):
        step = Pass(executor, entries, layout, digits, moved, None)
        moved = step.move(*step.count(), (1 << bits) - 1, None)
    assert moved is not None
    made = _empty(executor, entries)
    count = entries.count
    given = (count, entries.limit, digits.shift, *layout, moved.starts, moved.words, *made)
    blocks = launch.row_blocks(max(count, entries.limit + 1), simt.unpack_sorted.block)
    index = entries.keys.dtype
    executor.launch_simt(simt.unpack_sorted, blocks, given, np.float32, index)
    return Sorted(*made, entries.values[made[2]])


class Pass(NamedTuple):
    """One pass of a radix sort, over entries or what the pass before it moved.

    With segments it is a pass within each.
    """

    executor: GpuExecutor
    entries: Entries
    layout: Bits
    digits: Digits
    moved: Moved | None
    segments: Segments | None

    @property
    def tiles(self) -> int:
        """How many tiles a block has."""
        if self.segments is not None:
            return 1
        return max(1, -(-self.entries.count // (simt.RADIX_TILE * PARTS)))

    @property
    def parts(self) -> int:
        """How many blocks have the entries of a segment, or all of them."""
        count = self.entries.count if self.segments is None else self.segments.largest
        return max(1, -(-count // (simt.RADIX_TILE * self.tiles)))

    @property
    def _blocks(self) -> int:
        return self.parts * (1 if self.segments is None else self.segments.count)

    def _given(self) -> tuple[Any, ...]:
        below_key = 0 if self.moved is None else sum(self.layout)
        bounds = None if self.segments is None else self.segments.bounds
        shift, digits = self.digits
        return self.entries.count, self.tiles, self.parts, bounds, shift + below_key, digits

    def count(self) -> tuple[Array, Array]:
        """Return how many entries of a digit are in earlier parts, and where each digit begins.

        The last two numbers are how many entries there are, and how many of the most frequent
        digit.
        """
        executor, index = self.executor, self.entries.keys.dtype
        digits = self.digits.count * (1 if self.segments is None else self.segments.count)
        counts = executor.allocate((digits * self.parts,), np.int32)
        starts = executor.allocate((digits + 2,), np.int32)
        words = None if self.moved is None else self.moved.words
        given = (*self._given(), self.entries.keys, words, counts)
        kernel, is_words = simt.split_count, int(words is not None)
        executor.launch_simt(kernel, self._blocks, given, np.float32, index, WORDS=is_words)
        _, counter = executor.scratch(0)
        given = (digits, self.parts, counts, starts, counter)
        executor.launch_simt(simt.split_scan, digits, given, np.float32, np.int32)
        return counts, starts

    def move(self, counts: Array, starts: Array, kept: int, values: Array | None) -> Moved:
        """Return words by digit, with the bits of keys in ``kept``; those of a digit in order."""
        executor, (keys, _, others, indptr, rows, _) = self.executor, self.entries
        source = simt.ROWS if others is None else simt.COORDINATES
        source = source if self.moved is None else simt.WORDS
        words = executor.allocate((self.entries.count,), np.int64)
        made = None if values is None else executor.allocate(values.shape, values.dtype)
        given = (
            *self._given(), kept, *self.layout, rows, indptr, keys, others,
            None if self.moved is None else self.moved.words, values, counts, starts, words, made,
        )  # fmt: skip
        dtype = np.dtype(np.float32) if values is None else values.dtype
        which = {"SOURCE": source, "VALUES": int(values is not None)}
        executor.launch_simt(simt.split_move, self._blocks, given, dtype, keys.dtype, **which)
        return Moved(words, made, starts)


def _largest(executor: GpuExecutor, starts: Array) -> int:
    """Return how many entries the most frequent digit has, after the work that counts them."""
    return int(executor.to_host_together(starts[-1:])[0][0])


def _empty(executor: GpuExecutor, entries: Entries) -> tuple[Array, Array, Array]:
    dtype, count = entries.keys.dtype, entries.count
    indptr = executor.allocate((entries.limit + 1,), dtype)
    others, order = (executor.allocate((count,), dtype) for _ in range(2))
    return indptr, others, order
