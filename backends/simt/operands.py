"""Operands as kernels see them at run time: dtypes, addresses and row strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import INDEX_DTYPES, VALUE_DTYPES, real_dtype
from ...core.operation import Operation, Parameter
from ...core.program import Call
from ..unified.wrappers import has_functor

if TYPE_CHECKING:
    from ...core.executor import Array

#: Codes of dtypes in the names of kernels.
CODES = {np.dtype(d): np.dtype(d).str[1:] for d in (*VALUE_DTYPES, *INDEX_DTYPES)}


def address(array: Array) -> int:
    """Return the address of a CuPy or SYCL array."""
    begin = getattr(array, "pointer", None)
    return int(array.data.ptr if begin is None else begin)


def is_contiguous(vector: Array) -> bool:
    """Return whether a block of one vector has contiguous elements."""
    return int(vector.shape[0]) < 2 or vector.strides[0] == vector.itemsize


def is_rowwise(operation: Operation) -> bool:
    """Return whether an operation has a functor that accesses only its own row.

    This is assumed of no other package's functor, which may read any element.
    """
    gathers = bool(operation.functor) or any(p.kind == "I" for p in operation.parameters)
    return has_functor(operation) and not gathers


def is_vector(operation: Operation, parameter: Parameter) -> bool:
    """Return whether an argument of a map operation has one element per row."""
    return operation.over is not None and parameter.dims[:1] == operation.over[:1]


def row_arrays(rows: Call | None) -> list[tuple[Any, Any]]:
    """Return an operation's arguments with one element per row, with their parameters."""
    if rows is None:
        return []
    operation, arguments = rows
    return [
        (parameter, argument)
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_array and is_vector(operation, parameter)
    ]


def row_distance(block: Array) -> int:
    """Return the row stride of a block, in elements."""
    rows, columns = block.shape
    distance: int = block.strides[0] // block.itemsize if rows > 1 else columns or 1
    return distance


def scalar(kind: str, value: complex, dtype: np.dtype[Any]) -> list[Any]:
    """Return a number as kernel arguments: a complex number becomes two."""
    if kind == "i32":
        return [np.int32(value.real)]
    if kind not in ("T", "R"):
        return [int(value.real)]
    real = real_dtype(dtype).type
    if kind == "T" and np.dtype(dtype).kind == "c":
        return [real(value.real), real(value.imag)]
    return [real(value.real if isinstance(value, complex) else value)]
