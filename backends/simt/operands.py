"""The operands of operations as kernels at run time see them: dtypes, addresses and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import INDEX_DTYPES, VALUE_DTYPES, real_dtype
from ...core.operation import Operation, Parameter
from ...core.program import Call
from ..unified.wrappers import has_functor

if TYPE_CHECKING:
    from ...core.executor import Array

#: How the names of kernels tell dtypes.
CODES = {np.dtype(d): np.dtype(d).str[1:] for d in (*VALUE_DTYPES, *INDEX_DTYPES)}


def address(array: Array) -> int:
    """Return where an array of CuPy or of SYCL begins."""
    begin = getattr(array, "pointer", None)
    return int(array.data.ptr if begin is None else begin)


def is_contiguous(vector: Array) -> bool:
    """Return whether the elements of a block of one vector lie side by side."""
    return int(vector.shape[0]) < 2 or vector.strides[0] == vector.itemsize


def is_rowwise(operation: Operation) -> bool:
    """Return whether an operation is a functor that touches nothing but its row.

    A functor of another package may read any element.
    """
    gathers = bool(operation.functor) or any(p.kind == "I" for p in operation.parameters)
    return has_functor(operation) and not gathers


def is_vector(operation: Operation, parameter: Parameter) -> bool:
    """Return whether an argument of a map operation has an element a row."""
    return operation.over is not None and parameter.dims[:1] == operation.over[:1]


def row_arrays(rows: Call | None) -> list[tuple[Any, Any]]:
    """Return the arguments of an operation that have an element a row, with their parameters."""
    if rows is None:
        return []
    operation, arguments = rows
    return [
        (parameter, argument)
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_array and is_vector(operation, parameter)
    ]


def row_distance(block: Array) -> int:
    """Return the distance of the rows of a block, in elements."""
    rows, columns = block.shape
    distance: int = block.strides[0] // block.itemsize if rows > 1 else columns or 1
    return distance


def scalar(kind: str, value: complex, dtype: np.dtype[Any]) -> list[Any]:
    """Return a number as the kernel's arguments: a complex one is two."""
    if kind == "i32":
        return [np.int32(value.real)]
    if kind not in ("T", "R"):
        return [int(value.real)]
    real = real_dtype(dtype).type
    if kind == "T" and np.dtype(dtype).kind == "c":
        return [real(value.real), real(value.imag)]
    return [real(value.real if isinstance(value, complex) else value)]
