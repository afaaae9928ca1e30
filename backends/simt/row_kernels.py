"""Declare the kernels that build new rows from entries of given rows.

Dimensions are named as in :mod:`.kernels`. The arguments after ``m`` are the operation's.
"""

from __future__ import annotations

from ..unified.wrappers import SimtKernel

#: Lanes that share a row.
LANES = (8, 32)
_ROW = "m: i64, begin: in I[l], end: in I[l]"
_INDICES = "indices: in I[z]"
_NEW = "target: in I[l], new_indices: out I[w], new_values: out T[w]"


def _kernel(name: str, signature: str, template: str = "{LANES}, {T}, {I}") -> SimtKernel:
    variants = tuple({"LANES": lanes} for lanes in LANES)
    return SimtKernel(
        name, "simt/moved_rows.hpp", signature, template, block=128, variants=variants
    )


put_rows = _kernel(
    "put_rows",
    f"{_ROW}, {_INDICES}, values: in T[z], offset: i64, target: in I[l], "
    "new_indices: inout I[w], new_values: inout T[w]",
)
take_rows = _kernel(
    "take_rows",
    f"m: i64, rows: in I[l], indptr: in I[l], {_INDICES}, values: in T[z], {_NEW}",
)
number_rows = _kernel("number_rows", f"{_ROW}, row: out I[z]", "{LANES}, {I}")
scale_rows = _kernel(
    "scale_rows",
    f"{_ROW}, {_INDICES}, values: in T[z], dense: in T[y], row_step: i64, column_step: i64, "
    "result: out T[z]",
)
drop_zeros_of_rows = _kernel("drop_zeros_of_rows", f"{_ROW}, {_INDICES}, values: in T[z], {_NEW}")
pick_of_rows = _kernel(
    "pick_of_rows", f"{_ROW}, {_INDICES}, numbers: in I[y], values: in T[z], {_NEW}"
)
between_of_rows = _kernel(
    "between_of_rows", f"{_ROW}, {_INDICES}, first: i64, last: i64, values: in T[z], {_NEW}"
)
band_of_rows = _kernel(
    "band_of_rows", f"{_ROW}, {_INDICES}, lower: i64, upper: i64, values: in T[z], {_NEW}"
)
compare_number_rows = _kernel(
    "compare_number_rows",
    f"{_ROW}, {_INDICES}, values: in T[z], number: T, comparison: i64, target: in I[l], "
    "new_indices: out I[w]",
)
kron_rows = _kernel(
    "kron_rows",
    f"{_ROW}, {_INDICES}, values: in T[z], other_begin: in I[q], other_end: in I[q], "
    f"other_indices: in I[y], other_values: in T[y], other_rows: i64, width: i64, {_NEW}",
)
