"""Declare the kernels that build plans for matrices with many rows.

Dimensions are named as in :mod:`.kernels`.
"""

from __future__ import annotations

from ..unified.wrappers import SimtKernel

_ROWS = "m: i64, indptr: in I[l]"
_INDICES = "indices: in I[z]"
#: Slots of the hash table of patterns: four times the 256 patterns that a byte can index.
SLOTS = 1024
measure_rows = SimtKernel(
    "measure_rows",
    "simt/row_plans.hpp",
    f"{_ROWS}, order: in i32[l], numbers: out i64[l], partials: out i64[l], counter: inout i32[l]",
    "{I}",
)
order_windows = SimtKernel(
    "order_windows",
    "simt/row_plans.hpp",
    f"{_ROWS}, order: out i32[l]",
    "{WINDOW}, {I}",
    variants=({"WINDOW": 1024}, {"WINDOW": 2048}),
)
lay_lanes = SimtKernel(
    "lay_lanes",
    "simt/row_plans.hpp",
    "lanes: i64, indptr: in I[l], order: in i32[l], start: out i64[l], length: out i32[l]",
    "{I}",
)
measure_slices = SimtKernel(
    "measure_slices",
    "simt/row_plans.hpp",
    "lanes: i64, length: in i32[l], widths: out I[l]",
    "{I}",
)
equal_slices = SimtKernel(
    "equal_slices",
    "simt/row_plans.hpp",
    "slices: i64, width: i64, pointers: out I[l]",
    "{I}",
)
examine_rows = SimtKernel(
    "examine_rows",
    "simt/row_patterns.hpp",
    f"{_ROWS}, {_INDICES}, hash: out i64[l], reach: inout i32[l]",
    "{I}",
)
find_patterns = SimtKernel(
    "find_patterns",
    "simt/row_patterns.hpp",
    f"{_ROWS}, {_INDICES}, most: i64, table: inout i64[l], slots: out u8[l], codes: out u8[l], "
    "models: out i64[l], lengths: in i64[l], longest: i64, slices: i64, counter: inout i32[l]",
    "{SLOTS}, {I}",
    variants=({"SLOTS": SLOTS},),
)
write_patterns = SimtKernel(
    "write_patterns",
    "simt/row_patterns.hpp",
    "m: i64, most: i64, table: in i64[l], slots: in u8[l], codes: in u8[l], pattern: out u8[l]",
    "{SLOTS}",
    variants=({"SLOTS": SLOTS},),
)
check_patterns = SimtKernel(
    "check_patterns",
    "simt/row_patterns.hpp",
    f"{_ROWS}, {_INDICES}, pattern: in u8[l], model: in i64[l], wrong: inout i32[l]",
    "{I}",
)
write_offsets = SimtKernel(
    "write_offsets",
    "simt/row_patterns.hpp",
    f"patterns: i64, width: i64, none: i64, indptr: in I[l], {_INDICES}, model: in i64[l], "
    "offsets: out i32[l]",
    "{I}",
)
end_row_blocks = SimtKernel(
    "end_row_blocks",
    "simt/row_blocks.hpp",
    f"{_ROWS}, most: i64, most_rows: i64, jump: out i64[l], begins: out u8[l]",
    "{I}",
)
double_jumps = SimtKernel(
    "double_jumps",
    "simt/row_blocks.hpp",
    "m: i64, jump: in i64[l], next: out i64[l], begins: inout u8[l]",
    "{I}",
)
count_row_blocks = SimtKernel(
    "count_row_blocks",
    "simt/row_blocks.hpp",
    f"{_ROWS}, most: i64, begins: in u8[l], parts: out i64[l]",
    "{I}",
)
write_row_blocks = SimtKernel(
    "write_row_blocks",
    "simt/row_blocks.hpp",
    f"{_ROWS}, most: i64, places: in i64[l], row: out I[l], entry: out I[l], cut: inout i32[l]",
    "{I}",
)
