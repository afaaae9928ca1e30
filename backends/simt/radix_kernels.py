"""Declare the kernels of a radix sort of a matrix's entries.

Dimensions are named as in :mod:`.kernels`.
"""

from __future__ import annotations

from ..unified.wrappers import SimtKernel

#: Entries per tile, digits per pass, and the largest number of entries and keys of a bucket that a
#: block sorts. The C++ text has the same constants.
RADIX_TILE, RADIX_DIGITS = 4096, 1024
BUCKET_ENTRIES, BUCKET_KEYS = 12288, 2048
#: Where ``split_move`` takes an entry's other index from: its row, a given array, or bits of its
#: word.
ROWS, COORDINATES, WORDS = range(3)
_PARTS = "n: i64, tiles: i64, parts: i64, bounds: in i32[l], shift: i64, digits: i64"
split_count = SimtKernel(
    "split_count",
    "simt/radix_split.hpp",
    f"{_PARTS}, keys: in I[z], words: in i64[z], counts: out i32[l]",
    "{WORDS}, {I}",
    variants=({"WORDS": 0}, {"WORDS": 1}),
)
split_scan = SimtKernel(
    "split_scan",
    "simt/radix_split.hpp",
    "digits: i64, parts: i64, counts: inout I[l], starts: out I[l], counter: inout i32[l]",
    "{I}",
)
expand_rows = SimtKernel(
    "expand_rows",
    "simt/expand_rows.hpp",
    "entries: i64, m: i64, indptr: in I[l], rows: out I[z]",
    "{I}",
)
#: Entries per work-item of ``expand_rows``; the C++ text has the same constant.
ENTRIES_OF_ITEM = 8
_BITS = "entry_bits: i64, other_bits: i64"
split_move = SimtKernel(
    "split_move",
    "simt/radix_move.hpp",
    f"{_PARTS}, all_digits: i64, most: i64, kept: i64, {_BITS}, m: i64, indptr: in I[l], "
    "keys: in I[z], others: in I[z], words: in i64[z], counts: in i32[l], starts: in i32[l], "
    "moved: out i64[z]",
    "{SOURCE}, {I}",
    variants=tuple({"SOURCE": source} for source in (ROWS, COORDINATES, WORDS)),
    resident=4,
)
sort_bucket = SimtKernel(
    "sort_bucket",
    "simt/radix_buckets.hpp",
    f"n: i64, key_bits: i64, {_BITS}, starts: in i32[l], words: in i64[z], indptr: out I[l], "
    "others: out I[z], order: out I[z]",
    "{I}",
    block=768,  # with 256, four resident buckets exceed the L2 cache: 280 us instead of 51
    resident=2,
)
unpack_sorted = SimtKernel(
    "unpack_sorted",
    "simt/radix_buckets.hpp",
    f"count: i64, n: i64, shift: i64, {_BITS}, starts: in i32[l], words: in i64[z], "
    "indptr: out I[l], others: out I[z], order: out I[z]",
    "{I}",
)
