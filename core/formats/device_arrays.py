"""Device arrays for a new matrix, which are checked on the device.

The checks of :mod:`.validate` use host arrays. Here only reductions of the arrays leave the device,
never the arrays themselves. Arrays that fail, or that need a conversion first, are checked on the
host, which names the position in its messages. Large host arrays are checked while they are copied,
if the executor can do that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..dtypes import EXACT_DTYPES, INDEX_DTYPES, VALUE_DTYPES, index_dtype, is_narrow
from ..operands import is_host
from ..operations import facts, rows
from .given import as_held, checked_shape

if TYPE_CHECKING:
    from ..executor import Array, Executor

#: Dtypes of values that need no conversion. Boolean duplicates must be merged, so booleans are
#: excluded.
_COPIED = frozenset((*VALUE_DTYPES, *EXACT_DTYPES)) - {np.dtype(np.bool_)}

#: Upper bound that every 64-bit index satisfies.
_UNBOUNDED = int(np.iinfo(np.int64).max)


class CompressedArrays(NamedTuple):
    """Valid arrays of compressed rows or columns, in the form in which a matrix stores them."""

    shape: tuple[int, int]
    data: Array
    indices: Array
    indptr: Array


class DeviceCoordinates(NamedTuple):
    """Valid coordinate arrays; they may be the caller's."""

    shape: tuple[int, int]
    data: Array
    row: Array
    col: Array


def compressed(
    executor: Executor, triple: Any, shape: Any, *, rows_first: bool, copy: bool
) -> CompressedArrays | None:
    """Return device arrays ``(data, indices, indptr)`` in the form that a matrix stores.

    Without ``copy`` they are the caller's arrays if both index arrays have the same dtype.

    Returns
    -------
    CompressedArrays or None
        None if the arrays do not belong to ``executor``, or if the host must check them.
    """
    found = _native(executor, triple)
    if found is None:
        return _copied(executor, triple, shape, rows_first) if copy else None
    data, indices, indptr = found
    if indptr.size == 0 or data.size != indices.size or (is_narrow(data.dtype) and not rows_first):
        return None
    major, minor = int(indptr.size) - 1, _UNBOUNDED
    if shape is not None:
        shape = checked_shape(shape)
        given, minor = shape if rows_first else shape[::-1]
        if given != major:
            return None
    low, high, are_pointers = _checked(executor, indices, indptr)
    if low < 0 or high >= minor or not are_pointers:
        return None
    if shape is None:
        shape = (major, high + 1) if rows_first else (high + 1, major)
    dtype = index_dtype(max(int(data.size), *shape), indices.dtype, indptr.dtype)
    held = (as_held(executor, array, dtype, copy=copy) for array in (indices, indptr))
    return CompressedArrays(shape, as_held(executor, data, copy=copy), *held)


def _copied(
    executor: Executor, triple: Any, shape: Any, rows_first: bool
) -> CompressedArrays | None:
    """Return copies of large host arrays, or None; the copy also checks the indices."""
    scans = executor.scans
    if scans is None or shape is None or not all(_is_row(executor, array) for array in triple):
        return None
    data, indices, indptr = triple
    major, minor = checked_shape(shape) if rows_first else checked_shape(shape)[::-1]
    dtype = index_dtype(max(data.size, major, minor), indices.dtype, indptr.dtype)
    if data.dtype not in _COPIED or indices.dtype != dtype or indptr.dtype != dtype:
        return None
    if indptr.size != major + 1 or not data.size == indices.size == indptr[-1]:
        return None
    copied = scans.copy_of_indices(executor, indices)
    if copied is None or not 0 <= copied[1] < minor:
        return None
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return None
    of_matrix = (major, minor) if rows_first else (minor, major)
    return CompressedArrays(of_matrix, executor.copy(data), copied[0], executor.copy(indptr))


def _is_row(executor: Executor, array: Any) -> bool:
    """Return whether a host array is one-dimensional in the layout that kernels read."""
    native = type(array) is np.ndarray and executor.owns(array)
    return native and array.ndim == 1 and bool(array.flags.c_contiguous)


def coordinates(
    executor: Executor, data: Any, row: Any, col: Any, shape: Any
) -> DeviceCoordinates | None:
    """Return coordinate arrays on a device with a common index dtype, or None as above."""
    found = _native(executor, (data, row, col))
    if found is None or is_narrow(found[0].dtype):
        return None
    data, row, col = found
    if not data.size == row.size == col.size:
        return None
    bounds = [_bounds(executor, array) for array in (row, col)]
    if shape is None:
        shape = tuple(high + 1 for _, high in bounds)
    shape = checked_shape(shape)
    if any(low < 0 or high >= most for (low, high), most in zip(bounds, shape, strict=True)):
        return None
    dtype = index_dtype(max(*shape, int(data.size)), row.dtype, col.dtype)
    return DeviceCoordinates(shape, data, *(a.astype(dtype, copy=False) for a in (row, col)))


def _native(executor: Executor, arrays: Any) -> list[Array] | None:
    """Return values and two index arrays as native ones if kernels can read them."""
    if executor.xp is np or any(is_host(array) for array in arrays):
        return None
    adopted = (array if executor.owns(array) else executor.adopt(array) for array in arrays)
    found = [
        a
        for a in adopted
        if a is not None and executor.owns(a) and a.ndim == 1 and a.flags.c_contiguous
    ]
    if len(found) < len(arrays):
        return None
    values, *indices = found
    known = values.dtype in (*VALUE_DTYPES, *EXACT_DTYPES) or is_narrow(values.dtype)
    return found if known and all(a.dtype in INDEX_DTYPES for a in indices) else None


def _bounds(executor: Executor, indices: Array) -> tuple[int, int]:
    """Return the smallest and the largest index; 0 and -1 if there are none."""
    made = [executor.allocate((1,), np.int64) for _ in range(2)]
    executor.run(facts.bounds, indices, *made)
    low, high = executor.transfer(*made).read()
    return int(low[0]), int(high[0])


def _checked(executor: Executor, indices: Array, indptr: Array) -> tuple[int, int, bool]:
    """Return the smallest and the largest index, and whether pointers may be rows' of them.

    They start at 0, never decrease and end at the number of indices. The host waits once.
    """
    low, high, falls = (executor.allocate((1,), np.int64) for _ in range(3))
    executor.run(facts.bounds, indices, low, high)
    executor.run(rows.falls, indptr[:-1], indptr[1:], falls)
    found = executor.transfer(low, high, falls, indptr[:1], indptr[-1:]).read()
    least, most, fallen, first, last = (int(one[0]) for one in found)
    return least, most, (fallen, first, last) == (0, 0, int(indices.size))
