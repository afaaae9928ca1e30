"""Entries of a matrix sorted by one of their indices, by passes of a radix sort.

Keys at random, such as the columns of a random matrix, are moved into buckets by their upper bits,
and a block sorts each bucket in shared memory. Where a bucket has too many entries for that, or keys
have many entries each, passes move entries by all bits, the lowest first. No launch writes to places
all over memory, and the result is that of a stable sort.

Three kernels make a pass: each block counts the digits of its tiles, what comes before is added up,
and each block moves its tiles. The host waits once, for the size of the largest bucket.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.executor import Array
from ..simt import kernels as simt
from . import launch
from .base import GpuExecutor

#: Entries that buckets have on average: blocks sort up to half as many again.
OF_BUCKET = simt.BUCKET_ENTRIES * 2 // 3

#: Parts of the entries at most. Each has a counter for each digit.
PARTS = 1024

#: Entries from which passes pay; fewer are sorted a key at a time.
FEWEST = 1 << 17

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
    """

    keys: Array
    limit: int
    others: Array | None
    indptr: Array | None
    others_limit: int

    @property
    def count(self) -> int:
        """How many entries there are."""
        return int(self.keys.size)


class Digits(NamedTuple):
    """Some bits of keys: those from ``shift`` on, as many as ``count`` values take."""

    shift: int
    count: int


class Parts(NamedTuple):
    """How many bits of a word the entry and its other index take; the key has those above."""

    entry: int
    other: int

    def fit(self, key: int) -> bool:
        """Return whether a word has so many bits for the key."""
        return key + self.entry + self.other <= WORD_BITS


def bits_of(limit: int) -> int:
    """Return how many bits tell the numbers below a limit apart.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import bits_of
    >>> [bits_of(limit) for limit in (1, 2, 1024, 1025)]
    [0, 1, 10, 11]
    """
    return max(limit - 1, 0).bit_length()


def parts_of(entries: Entries) -> Parts:
    """Return how words have their parts."""
    return Parts(bits_of(entries.count), bits_of(entries.others_limit))


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


def digits_of(bits: int) -> list[Digits]:
    """Return the digits of keys, the lowest first, of about the same number of bits.

    Examples
    --------
    >>> from wollemi.backends.gpu.radix import digits_of
    >>> digits_of(20)
    [Digits(shift=0, count=1024), Digits(shift=10, count=1024)]
    >>> [(one.shift, one.count) for one in digits_of(23)]
    [(0, 256), (8, 256), (16, 128)]
    """
    most = bits_of(simt.RADIX_DIGITS)
    passes = max(1, -(-bits // most))
    each = max(1, -(-bits // passes))
    shifts = range(0, max(bits, 1), each)
    return [Digits(shift, 1 << max(1, min(each, bits - shift))) for shift in shifts]


def pays(entries: Entries) -> bool:
    """Return whether passes are expected to take less time than a sort of each key's entries."""
    return FEWEST <= entries.count < 2**31 and entries.limit < 2**31


def sorted_by_key(executor: GpuExecutor, entries: Entries) -> tuple[Array, Array, Array] | None:
    """Return where each key begins, the other indices by key, and where their entries were.

    None if words have too few bits for that.
    """
    found = by_buckets(executor, entries)
    return by_digits(executor, entries) if found is None else found


def by_buckets(executor: GpuExecutor, entries: Entries) -> tuple[Array, Array, Array] | None:
    """Sort buckets of keys; return None if some bucket has too many entries."""
    bits, parts = bucket_bits(entries.count, entries.limit), parts_of(entries)
    buckets = -(-entries.limit // (1 << bits))
    if bits == 0 or buckets > simt.RADIX_DIGITS or not parts.fit(bits):
        return None
    step = Pass(executor, entries, parts, Digits(bits, 1 << max(1, bits_of(buckets))))
    counts, starts = step.count(None)
    if int(executor.to_host(starts[step.digits.count + 1 :])[0]) > simt.BUCKET_ENTRIES:
        return None
    words = step.move(None, counts, starts, (1 << bits) - 1)
    made = _empty(executor, entries)
    given = (entries.limit, bits, *parts, starts, words, *made)
    _launch(executor, simt.sort_bucket, buckets, given, entries.keys.dtype)
    return made


def by_digits(executor: GpuExecutor, entries: Entries) -> tuple[Array, Array, Array] | None:
    """Move entries by each digit in turn; return None if words have too few bits for keys."""
    bits, parts = bits_of(entries.limit), parts_of(entries)
    if not parts.fit(bits):
        return None
    words: Array | None = None
    for digits in digits_of(bits):
        step = Pass(executor, entries, parts, digits)
        counts, starts = step.count(words)
        words = step.move(words, counts, starts, (1 << bits) - 1)
    made = _empty(executor, entries)
    count = entries.count
    given = (count, entries.limit, digits.shift, *parts, starts, words, *made)
    blocks = launch.row_blocks(max(count, entries.limit + 1), simt.unpack_sorted.block)
    _launch(executor, simt.unpack_sorted, blocks, given, entries.keys.dtype)
    return made


class Pass(NamedTuple):
    """One pass of a radix sort, over entries or the words that the pass before it moved."""

    executor: GpuExecutor
    entries: Entries
    parts: Parts
    digits: Digits

    @property
    def tiles(self) -> int:
        """How many tiles a block has."""
        return max(1, -(-self.entries.count // (simt.RADIX_TILE * PARTS)))

    @property
    def blocks(self) -> int:
        """How many blocks have the entries."""
        return max(1, -(-self.entries.count // (simt.RADIX_TILE * self.tiles)))

    def _digits(self, words: Array | None) -> tuple[int, ...]:
        below_key = 0 if words is None else self.parts.entry + self.parts.other
        shift, digits = self.digits
        return self.entries.count, self.tiles, shift + below_key, digits

    def count(self, words: Array | None) -> tuple[Array, Array]:
        """Return how many entries of a digit are in earlier parts, and where each digit begins.

        The last two numbers are how many entries there are, and how many of the most frequent
        digit.
        """
        executor, digits, index = self.executor, self.digits.count, self.entries.keys.dtype
        counts = executor.allocate((digits * self.blocks,), np.int32)
        starts = executor.allocate((digits + 2,), np.int32)
        given = (*self._digits(words), self.entries.keys, words, counts)
        is_words = int(words is not None)
        _launch(executor, simt.split_count, self.blocks, given, index, WORDS=is_words)
        _, counter = executor.scratch(0)
        given = (digits, self.blocks, counts, starts, counter)
        _launch(executor, simt.split_scan, digits, given, np.dtype(np.int32))
        return counts, starts

    def move(self, words: Array | None, counts: Array, starts: Array, kept: int) -> Array:
        """Return words by digit, which have so many bits of keys; those of a digit in order."""
        keys, _, others, indptr, rows = self.entries
        source = simt.ROWS if others is None else simt.COORDINATES
        moved = self.executor.allocate((self.entries.count,), np.int64)
        given = (
            *self._digits(words), kept, *self.parts, rows, indptr, keys, others, words, counts,
            starts, moved,
        )  # fmt: skip
        source = simt.WORDS if words is not None else source
        _launch(self.executor, simt.split_move, self.blocks, given, keys.dtype, SOURCE=source)
        return moved


def _empty(executor: GpuExecutor, entries: Entries) -> tuple[Array, Array, Array]:
    dtype, count = entries.keys.dtype, entries.count
    indptr = executor.allocate((entries.limit + 1,), dtype)
    others, order = (executor.allocate((count,), dtype) for _ in range(2))
    return indptr, others, order


def _launch(
    executor: GpuExecutor, kernel: Any, blocks: int, given: Any, index: Any, **constants: int
) -> None:
    executor.launch_simt(kernel, blocks, given, np.float32, index, **constants)
