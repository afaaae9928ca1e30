"""Declare the template kernels, and which of them are compiled together.

CPU devices have kernels of their own, with one work-item per work-group; their products call the
bodies of ``backends/cpu``. The kernels of GPUs are in ``backends/simt``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ..simt import kernels as simt
from ..unified.edge_functions import program_text
from ..unified.wrappers import SimtKernel

#: The kernels of one program, each with the constants to compile for.
Family = tuple[tuple[SimtKernel, Mapping[str, object]], ...]

_BLOCKS = "x: in T[n,k], y: inout T[m,k], alpha: T, beta: T"
_ROWS = "indptr: in I[l], indices: in I[z], data: in"
_CSR = f"{_ROWS} T[z]"

csr_parts = SimtKernel(
    "csr_parts",
    "dpcpp/rows_cpu.hpp",
    f"parts: i64, cut_row: in i64[l], cut_entry: in i64[l], k: i64, {_ROWS} S[z], {_BLOCKS}, "
    "carry: out T[l]",
)
csr_carry = SimtKernel(
    "csr_carry",
    "dpcpp/rows_cpu.hpp",
    "parts: i64, cut_row: in i64[l], cut_entry: in i64[l], k: i64, indptr: in I[l], "
    "y: inout T[m,k], carry: in T[l]",
)
csr_patterns = SimtKernel(
    "csr_patterns",
    "dpcpp/rows_cpu.hpp",
    "parts: i64, cut_row: in i64[l], first_run: in i32[l], run_end: in i32[l], "
    "run_pattern: in i32[l], pattern_ptr: in i32[l], offsets: in i32[l], k: i64, "
    f"indptr: in I[l], values: in S[z], {_BLOCKS}",
)
csr_slices = SimtKernel(
    "csr_slices",
    "dpcpp/sell_cpu.hpp",
    "parts: i64, cut: in i64[l], m: i64, slice_ptr: in i64[l], rows: in I[l], lengths: in I[l], "
    f"indices: in I[z], values: in S[z], {_BLOCKS}",
)
csr_diagonal_cpu = replace(simt.csr_diagonal, name="csr_diagonal_cpu", header="dpcpp/rows_cpu.hpp")
ell_cpu = SimtKernel(
    "ell_cpu",
    "dpcpp/rows_cpu.hpp",
    f"m: i64, n: i64, k: i64, width: i64, data: in T[z], indices: in I[z], {_BLOCKS}",
)
sellp_cpu = SimtKernel(
    "sellp_cpu",
    "dpcpp/rows_cpu.hpp",
    "m: i64, n: i64, k: i64, slice_size: i64, data: in T[z], indices: in I[z], "
    f"slice_ptr: in I[l], permutation: in I[l], {_BLOCKS}",
)
bsr_cpu = SimtKernel(
    "bsr_cpu",
    "dpcpp/rows_cpu.hpp",
    f"block_rows: i64, k: i64, r: i64, c: i64, {_CSR}, {_BLOCKS}",
)
dense_cpu = replace(simt.dense_rows, name="dense_cpu", header="dpcpp/rows_cpu.hpp")

_BOTH = f"{_CSR}, other_indptr: in I[q], other_indices: in I[y], other_data: in T[y]"
_SUMS = (
    f"m: i64, n: i64, {_BOTH}, before: in i64[l], longest: i64, all_begin: i64, "
    "sums: out T[w], bits: out i64[w], found: out I[w]"
)
_NEW = "new_indices: out I[w], new_data: out T[w]"
count_product_terms = SimtKernel(
    "count_product_terms",
    "dpcpp/row_sums_cpu.hpp",
    "m: i64, indptr: in I[l], indices: in I[z], other_indptr: in I[q], work: out i64[m], "
    "longest: out i64[p]",
)
make_product = SimtKernel(
    "make_product",
    "dpcpp/row_sums_cpu.hpp",
    f"{_SUMS}, lengths: out I[m], columns: out I[w], values: out T[w], made: out i64[p]",
)
move_product = SimtKernel(
    "move_product",
    "dpcpp/row_sums_cpu.hpp",
    f"m: i64, before: in i64[l], target: in I[l], columns: in I[w], values: in T[w], {_NEW}",
)
fill_product = SimtKernel(
    "fill_product", "dpcpp/row_sums_cpu.hpp", f"{_SUMS}, target: in I[l], {_NEW}"
)
value_product = SimtKernel(
    "value_product",
    "dpcpp/row_sums_cpu.hpp",
    f"m: i64, n: i64, {_BOTH}, target: in I[l], places: in I[w], sums: out T[w], "
    "new_data: out T[w]",
)
count_sum = SimtKernel(
    "count_sum",
    "dpcpp/merged_rows_cpu.hpp",
    "m: i64, indptr: in I[l], indices: in I[z], other_indptr: in I[l], other_indices: in I[y], "
    "lengths: out I[m], made: out i64[p]",
)
fill_sum = SimtKernel(
    "fill_sum",
    "dpcpp/merged_rows_cpu.hpp",
    f"m: i64, {_BOTH}, alpha: T, beta: T, target: in I[l], {_NEW}",
)
sort_rows_cpu = SimtKernel(
    "sort_rows_cpu",
    "dpcpp/sorted_rows_cpu.hpp",
    f"m: i64, {_CSR}, new_indices: out I[z], new_data: out T[z], order: out I[z], "
    "spare_indices: out I[z], spare_order: out I[z]",
)
_BUCKETS = "counts: inout I[w]"
count_keys_cpu = SimtKernel(
    "count_keys_cpu",
    "dpcpp/buckets_cpu.hpp",
    f"n: i64, buckets: i64, keys: in I[z], {_BUCKETS}",
    "{I}",
)
find_buckets_cpu = SimtKernel(
    "find_buckets_cpu",
    "dpcpp/buckets_cpu.hpp",
    f"buckets: i64, parts: i64, {_BUCKETS}, indptr: out I[l]",
    "{I}",
)
move_coordinates_cpu = SimtKernel(
    "move_coordinates_cpu",
    "dpcpp/buckets_cpu.hpp",
    f"n: i64, buckets: i64, row: in I[z], col: in I[z], data: in T[z], {_BUCKETS}, {_NEW}",
)
move_to_columns_cpu = SimtKernel(
    "move_to_columns_cpu",
    "dpcpp/buckets_cpu.hpp",
    f"n: i64, m: i64, buckets: i64, {_CSR}, {_BUCKETS}, {_NEW}, order: out I[w]",
)

_GMRES = (
    simt.gmres_start,
    simt.gmres_project,
    simt.gmres_subtract,
    simt.gmres_append,
    simt.gmres_combine,
)
#: Headers of CPU kernels with work-groups of ``devices.CPU_LANES`` work-items instead of one.
IN_LANES = ("dpcpp/gmres_cpu.hpp", "dpcpp/sell_cpu.hpp")

#: The CPU kernel for each GPU kernel; both have the same arguments.
GMRES_CPU = {k: replace(k, name=f"{k.name}_cpu", header="dpcpp/gmres_cpu.hpp") for k in _GMRES}


def _family(*kernels: SimtKernel) -> Family:
    return tuple((kernel, constants) for kernel in kernels for constants in kernel.variants)


CPU_CSR = _family(csr_parts, csr_carry, csr_patterns, csr_diagonal_cpu)
CPU_SLICES = _family(csr_slices)
CPU_FORMATS = _family(ell_cpu, sellp_cpu, bsr_cpu)
CPU_DENSE = _family(dense_cpu)
CPU_NEW_ROWS = _family(
    count_product_terms,
    make_product,
    move_product,
    fill_product,
    value_product,
    count_sum,
    fill_sum,
    sort_rows_cpu,
)
CPU_BUCKETS = _family(count_keys_cpu, find_buckets_cpu, move_coordinates_cpu, move_to_columns_cpu)
CPU_GMRES = _family(*GMRES_CPU.values())
CPU_GMRES_SMALL = _family(simt.gmres_rotate, simt.gmres_solve, simt.gmres_augment)

#: Choices of lanes per CSR row: each additional choice costs half a second of compilation.
GPU_LANES = (1, 4, 16)
#: Lanes per row of blocks.
BSR_LANES = 4


@cache
def gpu_csr(wave: int) -> Family:
    """Return the products of CSR and related formats, for waves of ``wave`` lanes."""
    return (
        *((simt.csr_subwarp, {"W": lanes}) for lanes in GPU_LANES if lanes <= wave),
        (simt.ell_rows, {}),
        (simt.sellp_rows, {}),
        (simt.bsr_subwarp, {"W": BSR_LANES, "C": 0}),
    )


#: Shared by all devices: a work-item sums a segment.
SCAN = _family(simt.scan_totals, simt.scan_join, simt.scan_fill)

#: The same for sorting; kernels that move values have one program per dtype.
ORDERING = _family(
    simt.radix_count, simt.radix_move, simt.ordered_bounds, simt.entry_rows, simt.count_places
)
ENTRIES = _family(simt.reorder_entries, simt.merge_places)

#: One work-group processes all levels; on a CPU it is one work-item.
SUBSTITUTE = _family(simt.triangular_substitute)

GPU_DIAGONAL = _family(simt.csr_diagonal)
GPU_DENSE = _family(simt.dense_rows)
GPU_GMRES = _family(*_GMRES, simt.gmres_rotate, simt.gmres_solve, simt.gmres_augment)

_PATTERN = "batch: i64, indptr: in I[l], indices: in I[z], values: in T[l], values_step: i64"


def _operands(*names: str) -> str:
    """Return the declaration of dense operands: address, row stride and batch stride."""
    return ", ".join(f"{n}: in T[l], {n}_ld: i64, {n}_step: i64" for n in names)


spmm_rows = SimtKernel(
    "spmm_rows",
    "dpcpp/ml.hpp",
    f"m: i64, k: i64, {_PATTERN}, {_operands('B')}, C: inout T[l], C_ld: i64, C_step: i64, "
    "alpha: T, beta: T",
)
sddmm_rows = SimtKernel(
    "sddmm_rows",
    "dpcpp/ml.hpp",
    f"m: i64, k: i64, {_PATTERN}, {_operands('C', 'B')}, S: inout T[l], S_step: i64, "
    "alpha: T, beta: T",
)
_FUSED = (
    "E: out T[l], E_ld: i64, E_step: i64, log_totals: out R[l], log_totals_step: i64, alpha: T, "
    "edge: i64"
)
fusedmm_rows = SimtKernel(
    "fusedmm_rows",
    "dpcpp/ml.hpp",
    f"m: i64, k: i64, p: i64, {_PATTERN}, {_operands('C', 'B', 'D')}, {_FUSED}",
)
mask_fusedmm_rows = SimtKernel(
    "mask_fusedmm_rows",
    "dpcpp/ml.hpp",
    "m: i64, k: i64, p: i64, batch: i64, first: in I[l], last: in I[l], "
    f"{_operands('C', 'B', 'D')}, {_FUSED}",
)
SPMM = _family(spmm_rows)
SAMPLED = _family(sddmm_rows, fusedmm_rows)
MASKED = _family(mask_fusedmm_rows)


def _of_function(*names: str) -> str:
    """Return the declaration of the inputs of a user-defined function."""
    return ", ".join(f"{n}: in R[l], {n}_ld: i64, {n}_step: i64" for n in names)


_fusedmm_traced_rows = SimtKernel(
    "fusedmm_traced_rows",
    "dpcpp/ml.hpp",
    f"m: i64, k: i64, p: i64, {_PATTERN}, {_operands('C', 'B', 'D')}, "
    f"{_of_function('of_rows', 'of_columns', 'of_entries')}, {_FUSED}",
    "wl::edge_program, {T}, {I}",
)
_mask_fusedmm_traced_rows = SimtKernel(
    "mask_fusedmm_traced_rows",
    "dpcpp/ml.hpp",
    "m: i64, k: i64, p: i64, batch: i64, first: in I[l], last: in I[l], "
    f"{_operands('C', 'B', 'D')}, {_of_function('of_rows', 'of_columns')}, {_FUSED}",
    "wl::edge_program, {T}, {I}",
)


@cache
def traced_rows(function: str, *, of_mask: bool) -> SimtKernel:
    """Return the kernel of a product with a user-defined function, which is a separate program."""
    kernel = _mask_fusedmm_traced_rows if of_mask else _fusedmm_traced_rows
    return replace(kernel, text=program_text(function))


def alone(kernel: SimtKernel) -> Family:
    """Return a kernel as a program of its own."""
    return _family(kernel)
