"""Declare the kernels of this folder: name, file, arguments, and constants to compile for.

Dimensions: ``m`` rows, ``n`` columns, ``k`` vectors, ``z`` entries, ``s`` vectors of a basis. ``l``
stands for the number of lanes and for other lengths.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..unified.wrappers import SimtKernel
from . import plan_kernels, radix_kernels, row_kernels

_BLOCKS = "x: in T[n,k], y: inout T[m,k], alpha: T, beta: T"

#: The arguments of one contiguous vector.
_VECTORS = "x: in T[l], y: inout T[l], alpha: T, beta: T"

#: Lanes per row. A wave of 64 lanes is divided into the same sub-waves.
LANES = (1, 2, 4, 8, 16, 32)

csr_subwarp = SimtKernel(
    "csr_subwarp",
    "simt/spmv.hpp",
    f"m: i64, k: i64, indptr: in I[l], indices: in I[z], data: in S[z], {_BLOCKS}",
    "{W}, {T}, {I}",
    variants=tuple({"W": lanes} for lanes in LANES),
)
csr_stream = SimtKernel(
    "csr_stream",
    "simt/spmv.hpp",
    f"m: i64, indptr: in I[l], indices: in I[z], data: in S[z], {_VECTORS}",
    block=128,
    resident=16,
)
csr_adaptive = SimtKernel(
    "csr_adaptive",
    "simt/csr_adaptive.hpp",
    "block_row: in I[l], block_entry: in I[l], indptr: in I[l], indices: in I[z], data: in S[z], "
    f"{_BLOCKS}, partial: out T[l], counters: inout i32[l]",
    "{LINE}, {KEEP}, {T}, {I}",
    variants=({"LINE": 0, "KEEP": 0}, {"LINE": 1, "KEEP": 0}, {"LINE": 1, "KEEP": 1}),
    resident=8,
)
sell_packed = SimtKernel(
    "sell_packed",
    "simt/spmv.hpp",
    "lanes: i64, slice_ptr: in i64[l], codes: in u8[l], values: in S[l], target: in i32[l], "
    f"offsets: in i32[l], pattern_width: i64, {_VECTORS}, partial: out T[l]",
    "{CODE}, {WIDTH}, {T}",
    variants=tuple({"CODE": code, "WIDTH": 0} for code in range(3)),
)
join_cut_rows = SimtKernel(
    "join_cut_rows",
    "simt/spmv.hpp",
    "count: i64, many: i64, rows: in i32[l], first: in i32[l], last: in i32[l], "
    "partial: in T[l], y: inout T[m,k], "
    "alpha: T, beta: T",
    "{T}",
)
prepare_balanced = SimtKernel(
    "prepare_balanced",
    "simt/spmv.hpp",
    "n: i64, gathered: in i32[l], x: in T[n,k], sorted: out T[l], empty: i64, "
    "empty_rows: in i32[l], y: inout T[m,k], beta: T",
    "{T}",
)
ell_rows = SimtKernel(
    "ell_rows",
    "simt/spmv.hpp",
    f"m: i64, k: i64, width: i64, data: in T[z], indices: in I[z], {_BLOCKS}",
)
hybrid_rows = SimtKernel(
    "hybrid_rows",
    "simt/spmv.hpp",
    "m: i64, k: i64, width: i64, data: in T[z], indices: in I[z], rest_indptr: in I[l], "
    f"rest_indices: in I[y], rest: in T[y], {_BLOCKS}",
)
sellp_rows = SimtKernel(
    "sellp_rows",
    "simt/spmv.hpp",
    "m: i64, k: i64, slice_size: i64, data: in T[z], indices: in I[z], slice_ptr: in I[l], "
    f"permutation: in I[l], {_BLOCKS}",
)
bsr_subwarp = SimtKernel(
    "bsr_subwarp",
    "simt/spmv.hpp",
    "m: i64, k: i64, r: i64, columns: i64, indptr: in I[l], indices: in I[l], "
    f"data: in T[z], {_BLOCKS}",
    "{W}, {C}, {T}, {I}",
    variants=tuple({"W": lanes, "C": c} for lanes in (4, 16) for c in (0, 2, 3, 4)),
)
dense_rows = SimtKernel(
    "dense_rows", "simt/spmv.hpp", f"m: i64, n: i64, k: i64, data: in T[z], {_BLOCKS}", "{T}"
)

segment_sum = SimtKernel(
    "segment_sum",
    "simt/structure.hpp",
    "count: i64, first: in i64[l], order: in i64[l], data: in T[z], target: out T[l]",
    "{T}, {I}",
)
csr_diagonal = SimtKernel(
    "csr_diagonal",
    "simt/structure.hpp",
    "count: i64, indptr: in I[l], indices: in I[z], data: in T[z], d: out T[l]",
)
sell_fill = SimtKernel(
    "sell_fill",
    "simt/structure.hpp",
    "lanes: i64, slice_ptr: in i64[l], indptr: in I[l], start: in i64[l], length: in i32[l], "
    "target: in i32[l], column: in i32[l], indices: in I[z], data: in S[z], codes: out u8[l], "
    "values: out S[l]",
    "{CODE}, {T}, {I}",
    variants=tuple({"CODE": code} for code in range(3)),
)

scan_totals = SimtKernel(
    "scan_totals",
    "simt/scan.hpp",
    "m: i64, parts: i64, lengths: in I[l], totals: out I[l]",
    "{I}",
)
scan_join = SimtKernel("scan_join", "simt/scan.hpp", "parts: i64, totals: inout I[l]", "{I}")
scan_fill = SimtKernel(
    "scan_fill",
    "simt/scan.hpp",
    "m: i64, parts: i64, lengths: in I[l], totals: in I[l], indptr: out I[l]",
    "{I}",
)
scan_block_totals = SimtKernel(
    "scan_block_totals", "simt/scan.hpp", "m: i64, lengths: in I[l], totals: out I[l]", "{I}"
)
scan_block_fill = SimtKernel(
    "scan_block_fill",
    "simt/scan.hpp",
    "m: i64, lengths: in I[l], totals: in I[l], indptr: out I[l]",
    "{I}",
)

_SORTED = "shift: i64, digits: i64, keys: in I[l], order: in I[l]"
radix_count = SimtKernel(
    "radix_count", "simt/ordering.hpp", f"n: i64, parts: i64, {_SORTED}, counts: out I[l]", "{I}"
)
radix_move = SimtKernel(
    "radix_move",
    "simt/ordering.hpp",
    f"n: i64, parts: i64, {_SORTED}, places: inout I[l], moved: out I[l]",
    "{I}",
)
ordered_bounds = SimtKernel(
    "ordered_bounds",
    "simt/ordering.hpp",
    "n: i64, buckets: i64, keys: in I[l], order: in I[l], indptr: out I[l]",
    "{I}",
)
entry_rows = SimtKernel(
    "entry_rows", "simt/ordering.hpp", "m: i64, indptr: in I[l], row: out I[l]", "{I}"
)
count_places = SimtKernel(
    "count_places",
    "simt/ordering.hpp",
    "m: i64, indptr: in I[l], indices: in I[l], lengths: out I[l]",
    "{I}",
)
reorder_entries = SimtKernel(
    "reorder_entries",
    "simt/ordering.hpp",
    "n: i64, order: in I[l], indices: in I[l], data: in T[l], new_indices: out I[l], "
    "new_data: out T[l]",
)
merge_places = SimtKernel(
    "merge_places",
    "simt/ordering.hpp",
    "m: i64, indptr: in I[l], indices: in I[l], data: in T[l], target: in I[l], "
    "new_indices: out I[l], new_data: out T[l]",
)

#: Lanes that share a row in sparse matrix products; the last value is a whole block.
PRODUCT_LANES = (8, 32, 128)
#: Upper bound of a product row's columns, per lane.
PRODUCT_CELLS = 8
_GROUPS = tuple({"LANES": lanes} for lanes in PRODUCT_LANES)
_LISTED = "count: i64, spread: i64, rows: in I[l], indptr: in I[l], indices: in I[l]"
_TERMS = (
    f"{_LISTED}, values: in T[l], other_indptr: in I[l], other_indices: in I[l], "
    "other_values: in T[l], target: in I[l]"
)
deal_rows = SimtKernel(
    "deal_rows",
    "simt/sparse_products.hpp",
    "m: i64, indptr: in I[l], indices: in I[l], other_indptr: in I[l], few: i64, many: i64, "
    "most: i64, giant: i64, few_terms: i64, many_terms: i64, mean: i64, terms: inout I[l], "
    "rows: out I[l], counts: inout i32[l]",
    "{BY_LENGTH}, {I}",
    block=128,
    variants=({"BY_LENGTH": 0}, {"BY_LENGTH": 1}),
)
longest_row = SimtKernel(
    "longest_row",
    "simt/transpose.hpp",
    "m: i64, indptr: in I[l], longest: inout i32[l]",
    "{I}",
    block=128,
)
count_product = SimtKernel(
    "count_product",
    "simt/sparse_products.hpp",
    f"{_LISTED}, other_indptr: in I[l], other_indices: in I[l], lengths: out I[l]",
    "{LANES}, {I}",
    block=128,
    variants=_GROUPS,
)
fill_product = SimtKernel(
    "fill_product",
    "simt/sparse_products.hpp",
    f"{_TERMS}, new_indices: out I[l], new_values: out T[l]",
    "{LANES}, {T}, {I}",
    block=128,
    variants=_GROUPS,
)
refill_product = SimtKernel(
    "refill_product",
    "simt/sparse_products.hpp",
    f"{_TERMS}, places: in I[l], new_values: out T[l]",
    "{LANES}, {T}, {I}",
    block=128,
    variants=_GROUPS,
)

_SHARES = "count: i64, shares: i64"
_PATTERNS = (
    "rows: in I[l], indptr: in I[l], indices: in I[l], "
    "other_indptr: in I[l], other_indices: in I[l]"
)
count_long = SimtKernel(
    "count_long",
    "simt/long_rows.hpp",
    f"{_SHARES}, columns: i64, width: i64, {_PATTERNS}, found: out I[l]",
    "{I}",
)
join_shares = SimtKernel(
    "join_shares",
    "simt/long_rows.hpp",
    f"{_SHARES}, rows: in I[l], found: inout I[l], lengths: out I[l]",
    "{I}",
)
place_long = SimtKernel(
    "place_long",
    "simt/long_rows.hpp",
    f"{_SHARES}, columns: i64, width: i64, {_PATTERNS}, found: in I[l], target: in I[l], "
    "most: i64, new_indices: out I[l]",
    "{I}",
)
refill_long = SimtKernel(
    "refill_long",
    "simt/long_rows.hpp",
    f"{_SHARES}, most: i64, rows: in I[l], indptr: in I[l], indices: in I[l], values: in T[l], "
    "other_indptr: in I[l], other_indices: in I[l], other_values: in T[l], target: in I[l], "
    "places: in I[l], new_values: out T[l]",
    resident=6,
)

count_columns = SimtKernel(
    "count_columns",
    "simt/transpose.hpp",
    "entries: i64, indices: in I[l], counts: inout i32[l]",
    "{I}",
    block=128,
)
count_with_places = SimtKernel(
    "count_with_places",
    "simt/transpose.hpp",
    "entries: i64, indices: in I[z], counts: inout i32[l], places: out i32[z]",
    "{I}",
)
place_entries = SimtKernel(
    "place_entries",
    "simt/transpose.hpp",
    "m: i64, indptr: in I[l], indices: in I[z], target: in I[l], places: in i32[z], "
    "entries: out I[y]",
    "{I}",
    block=128,
)
#: Lanes that sort a row together; the last value is a whole block. sort.hpp sets the row length.
SORTING_LANES = (8, 32, 128)
SORTED_CELLS = 16
_SORTERS = tuple({"LANES": lanes} for lanes in SORTING_LANES)
sort_places = SimtKernel(
    "sort_places",
    "simt/transpose.hpp",
    "columns: i64, target: in I[l], entries: in I[y], rows: out I[z], order: out I[z]",
    "{LANES}, {I}",
    block=SORTING_LANES[-1],
    variants=_SORTERS,
)

place_coordinates = SimtKernel(
    "place_coordinates",
    "simt/transpose.hpp",
    "count: i64, rows: in I[z], columns: in I[z], target: in I[l], places: in i32[z], "
    "entries: out I[y]",
    "{I}",
    block=128,
)
sort_columns = SimtKernel(
    "sort_columns",
    "simt/transpose.hpp",
    "m: i64, indptr: in I[l], indices: in I[l], sorted: out I[l], order: out I[l]",
    "{LANES}, {I}",
    block=SORTING_LANES[-1],
    variants=_SORTERS,
)

triangular_substitute = SimtKernel(
    "triangular_substitute",
    "simt/substitute.hpp",
    "levels: i64, k: i64, rows: in I[l], bounds: in I[l], indptr: in I[l], indices: in I[z], "
    "data: in T[z], inverse: in T[l], factor: T, upper: i64, x: inout T[n,k]",
)

triangular_levels = SimtKernel(
    "triangular_levels",
    "simt/substitute_levels.hpp",
    "levels: i64, k: i64, rows: in I[l], bounds: in I[l], indptr: in I[l], indices: in I[z], "
    "data: in T[z], inverse: in T[l], factor: T, upper: i64, x: inout T[n,k], done: inout i32[l]",
)

_CYCLE = "step: in i64[l], status: inout Status[k]"

gmres_start = SimtKernel(
    "gmres_start",
    "simt/gmres.hpp",
    "s: i64, n: i64, k: i64, r: in T[n,k], v: out T[n,k], basis: out S[l], g: out T[s,k], "
    "count: out i64[k], step: out i64[l], status: in Status[k]",
    "{T}",
)
gmres_project = SimtKernel(
    "gmres_project",
    "simt/gram_schmidt.hpp",
    "s: i64, n: i64, k: i64, basis: in S[l], w: in T[n,k], h: inout T[s,k], correction: out T[l], "
    f"before: inout R[k], after: in R[k], {_CYCLE}, partials: out T[l], counter: inout i32[l]",
    "{REPEAT}, {T}",
    variants=({"REPEAT": 0}, {"REPEAT": 1}),
    resident=2,  # all 128 registers: throughput depends on loads in flight
)
gmres_subtract = SimtKernel(
    "gmres_subtract",
    "simt/gram_schmidt.hpp",
    "s: i64, n: i64, k: i64, basis: in S[l], w: inout T[n,k], h: in T[s,k], sums: inout T[s,k], "
    f"before: in R[k], after: inout R[k], {_CYCLE}, partials: out R[l], counter: inout i32[l]",
    "{REPEAT}, {T}",
    variants=({"REPEAT": 0}, {"REPEAT": 1}),
    resident=2,  # all 128 registers: throughput depends on loads in flight
)
gmres_rotate = SimtKernel(
    "gmres_rotate",
    "simt/gmres.hpp",
    "s: i64, k: i64, h: in T[s,k], after: inout R[k], before: in R[k], hessenberg: inout T[l], "
    f"cosine: inout R[s,k], sine: inout T[s,k], g: inout T[s,k], count: inout i64[k], {_CYCLE}",
    "{T}",
)
gmres_append = SimtKernel(
    "gmres_append",
    "simt/gmres.hpp",
    "s: i64, n: i64, k: i64, w: in T[n,k], after: in R[k], v: out T[n,k], basis: inout S[l], "
    "step: inout i64[l], status: in Status[k], counter: inout i32[l]",
    "{T}",
)
gmres_augment = SimtKernel(
    "gmres_augment",
    "simt/gmres_augment.hpp",
    "n: i64, k: i64, z: inout T[n,k], extra: in T[l], size: in R[l,k], first: i64, "
    "basis: inout T[l], step: in i64[l], status: in Status[k]",
    "{T}",
)
gmres_solve = SimtKernel(
    "gmres_solve",
    "simt/gmres.hpp",
    "s: i64, k: i64, hessenberg: in T[l], g: in T[s,k], count: in i64[k], y: out T[s,k]",
    "{T}",
)
gmres_combine = SimtKernel(
    "gmres_combine",
    "simt/gmres.hpp",
    "s: i64, n: i64, k: i64, basis: in S[l], y: in T[s,k], count: in i64[k], u: out T[n,k]",
    "{T}",
)


def simt_kernels() -> Iterator[SimtKernel]:
    """Yield all kernels of this folder."""
    for module in (globals(), vars(plan_kernels), vars(radix_kernels), vars(row_kernels)):
        for found in module.values():
            if isinstance(found, SimtKernel):
                yield found
