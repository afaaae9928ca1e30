"""Conversion of the argument of ``SparseVector(...)`` to a matrix of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import held_dtype
from ..errors import InvalidMatrix, UnsupportedOperand
from ..linop import LinOp
from ..operands import is_array
from .coo import Coo
from .csr import Csr
from .given import checked_shape, homeless, place

if TYPE_CHECKING:
    from ..executor import Executor

_EXPECTED = (
    "expected an array of one dimension, a sparse one of SciPy, (data, (positions,)), (data, "
    "positions, [0, entries]) or a length (n,)"
)


def row_of(arg: Any, shape: Any, dtype: Any, executor: Executor | str | None) -> Csr:
    """Return the entries of a one-dimensional argument as a matrix of one row.

    Raises
    ------
    InvalidMatrix
        If the argument has more dimensions, or does not fit the shape.
    UnsupportedOperand
        If it has no dimensions, or is not an array.
    """
    length = None if shape is None else checked_length(shape)
    if isinstance(arg, tuple):
        made = _from_tuple(arg, length, dtype, executor)
    elif hasattr(arg, "tocsr") or isinstance(arg, LinOp):
        made = _from_sparse(arg, length, executor)
    elif is_array(arg) or isinstance(arg, list):
        made = _from_dense(arg, length, executor)
    else:
        raise UnsupportedOperand(f"a {type(arg).__name__} makes no sparse vector: {_EXPECTED}")
    if made is not getattr(arg, "row", None):
        made.__dict__["_follows"] = homeless(executor, arg)
    return made if dtype is None else made.astype(dtype)


def checked_length(shape: Any) -> int:
    """Return the length in a one-dimensional shape, or raise InvalidMatrix."""
    try:
        (length,) = (shape,) if isinstance(shape, (int, np.integer)) else shape
    except (TypeError, ValueError):
        raise InvalidMatrix(
            f"shape: a sparse vector has one dimension, (n,), got {shape!r}; matrices are made by "
            "wl.Csr"
        ) from None
    return checked_shape((1, length))[1]


def _from_tuple(
    arg: tuple[Any, ...], length: int | None, dtype: Any, executor: Executor | str | None
) -> Csr:
    """Return positions and values, compressed entries, or zeros, as a matrix of one row."""
    if len(arg) == 1 and isinstance(arg[0], (int, np.integer)):
        n, where = checked_length(arg), place(executor)
        held = held_dtype(np.float64 if dtype is None else dtype)
        arrays = (where.zeros((0,), held), where.zeros((0,), np.int32), where.zeros((2,), np.int32))
        return Csr._from_arrays(where, (1, n), *arrays)
    if len(arg) == 3:
        data, positions, pointers = arg
        n = _one_more(positions) if length is None else length
        return Csr((data, positions, pointers), shape=(1, n), executor=executor)
    if len(arg) != 2 or not hasattr(arg[1], "__len__"):
        raise InvalidMatrix(f"a tuple of {len(arg)} makes no sparse vector: {_EXPECTED}")
    data, coordinates = arg
    if len(coordinates) != 1:
        raise InvalidMatrix(
            f"coordinates: a sparse vector has one array of positions, got {len(coordinates)}; "
            "wl.Coo takes rows and columns"
        )
    (positions,) = coordinates
    if np.ndim(positions) != 1:
        raise InvalidMatrix(
            f"positions of a sparse vector: expected 1 dimension, got {np.ndim(positions)}"
        )
    n = _one_more(positions) if length is None else length
    where = place(executor, data, positions)
    rows = where.zeros((len(positions),), np.int32)
    made = Coo((data, (rows, positions)), shape=(1, n), executor=where)
    csr: Csr = made.asformat("csr")
    return csr


def _one_more(positions: Any) -> int:
    """Return the smallest length that contains all positions."""
    array = positions if hasattr(positions, "max") else np.asarray(positions)
    return int(array.max()) + 1 if len(array) else 0


def _from_sparse(arg: Any, length: int | None, executor: Executor | str | None) -> Csr:
    """Return a one-dimensional sparse array as a matrix of one row, padded to a length."""
    if getattr(arg, "ndim", 2) != 1:
        raise InvalidMatrix(
            f"a sparse vector has one dimension, got a matrix of shape {tuple(arg.shape)}: A[i] is "
            "a row of it, A[:, j] a column, A.reshape(-1) all entries"
        )
    if isinstance(getattr(arg, "row", None), Csr):
        result = arg.row if executor is None else arg.row.to(executor)
    else:
        entries = arg.tocsr()
        arrays = (entries.data, entries.indices, entries.indptr)
        result = Csr(arrays, shape=(1, *arg.shape), executor=executor)
    if length is None or length == result.shape[1]:
        return result
    return Csr(
        (result.data, result.indices, result.indptr), shape=(1, length), executor=result.executor
    )


def _from_dense(arg: Any, length: int | None, executor: Executor | str | None) -> Csr:
    """Return a one-dimensional dense array as a matrix of one row."""
    array = arg if hasattr(arg, "ndim") else np.asarray(arg)
    if array.ndim == 0:
        raise UnsupportedOperand(f"a number makes no sparse vector: {_EXPECTED}")
    if array.ndim != 1:
        raise InvalidMatrix(
            f"a sparse vector has one dimension, got an array of shape {tuple(array.shape)}: "
            "wl.Csr makes a matrix of it"
        )
    if length is not None and length != array.shape[0]:
        raise InvalidMatrix(
            f"shape: ({length},) was given for an array of {array.shape[0]} numbers"
        )
    return Csr(array.reshape(1, -1), executor=executor)
