"""Checks of users' arrays before a matrix is made from them.

They run on the host, once for each new matrix. Device arrays are checked by :mod:`.device_arrays`,
and come here if those checks fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..assembled import Assembled
from ..dtypes import (
    ML_DTYPES,
    NUMBER_KINDS,
    common_dtype,
    held_dtype,
    index_dtype,
    is_exact,
    is_narrow,
    requested_dtype,
    stored_dtype,
    stored_or_held_dtype,
)
from ..errors import InvalidArgument, InvalidMatrix
from ..operands import to_host

HostArray = np.ndarray[Any, Any]


def values(data: Any, name: str = "data", ndim: int = 1) -> HostArray:
    """Return values as a contiguous array of a supported dtype."""
    array = np.asarray(data)
    if array.ndim != ndim:
        raise InvalidMatrix(f"{name}: expected {ndim} dimension(s), got shape {array.shape}")
    if array.dtype.kind not in NUMBER_KINDS:
        raise InvalidMatrix(f"{name}: expected numbers, got dtype {array.dtype}")
    return np.ascontiguousarray(array, held_dtype(array.dtype))


def stored_values(data: Any, name: str = "data") -> HostArray:
    """Return one-dimensional values as :func:`values` does, but keep 16-bit dtypes."""
    array = np.asarray(data)
    if array.ndim == 1 and array.dtype.name in ML_DTYPES:
        return np.ascontiguousarray(array, stored_dtype(array.dtype))
    return values(array, name)


def indices(array: Any, bound: int, name: str) -> HostArray:
    """Return indices as a contiguous integer array; check that all are in ``[0, bound)``."""
    checked = integers(array, name)
    if checked.size:
        # Viewed as unsigned, negative numbers are the largest: one pass checks both bounds.
        unsigned = checked.view(checked.dtype.str.replace("i", "u"))
        if int(unsigned.max()) >= min(bound, int(np.iinfo(checked.dtype).max) + 1):
            low, high = int(checked.min()), int(checked.max())
            worst = low if low < 0 else high
            where = int(np.flatnonzero(checked == worst)[0])
            raise InvalidMatrix(f"{name}[{where}] = {worst} is outside of 0..{bound - 1}")
    return checked


def integers(array: Any, name: str) -> HostArray:
    """Return ``array`` as a one-dimensional integer array of any integer dtype."""
    checked = np.asarray(array)
    if checked.ndim != 1:
        raise InvalidMatrix(f"{name}: expected 1 dimension, got shape {checked.shape}")
    if checked.size == 0:
        return checked.astype(np.int32)
    if checked.dtype.kind == "f" and np.all(checked == np.floor(checked)):
        checked = checked.astype(np.int64)
    if checked.dtype.kind not in "iu":
        raise InvalidMatrix(f"{name}: expected integers, got dtype {checked.dtype}")
    return checked


def pointers(array: Any, rows: int, nnz: int, name: str = "indptr") -> HostArray:
    """Return row pointers; check that they start at 0, never decrease and end at ``nnz``."""
    checked = integers(array, name)
    if checked.size != rows + 1:
        raise InvalidMatrix(f"{name}: expected {rows + 1} numbers, got {checked.size}")
    if checked[0] != 0:
        raise InvalidMatrix(
            f"{name}[0] = {checked[0]}, expected 0: the index pointer should start with 0"
        )
    falls = checked[1:] < checked[:-1]
    if falls.any():
        i = int(falls.argmax())
        raise InvalidMatrix(
            f"{name} is not increasing: {name}[{i}] = {checked[i]}, {name}[{i + 1}] = "
            f"{checked[i + 1]}"
        )
    if checked[-1] != nnz:
        raise InvalidMatrix(f"{name}[-1] = {checked[-1]}, expected the number of entries, {nnz}")
    return checked


def named_by(pointers: Any, entries: HostArray) -> HostArray:
    """Return the entries before the last pointer; the arrays may be longer, as in SciPy."""
    last = np.asarray(pointers).reshape(-1)[-1:]
    known = last.size == 1 and last.dtype.kind in "iu" and 0 <= int(last[0]) < len(entries)
    return entries[: int(last[0])] if known else entries


def of_one_dtype(largest: int, *arrays: HostArray) -> list[HostArray]:
    """Return index arrays in a common index dtype that can represent all of them."""
    dtype = index_dtype(largest, *(a.dtype for a in arrays if a.size))
    return [np.ascontiguousarray(a, dtype) for a in arrays]


def equal_lengths(**arrays: HostArray) -> None:
    """Raise InvalidMatrix unless all arrays have the same length."""
    if len({a.shape[0] for a in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} has {a.shape[0]}" for name, a in arrays.items())
        raise InvalidMatrix(f"lengths disagree: {lengths}")


def as_numbers(arg: Any, dtype: Any) -> Any:
    """Return a constructor's argument converted to a requested dtype.

    Booleans that become numbers are summed as numbers; see :func:`is_logical`. Expressions of
    identities and permutations compute in the dtype, so that their factors are not rounded first.
    """
    if dtype is None:
        return arg
    if isinstance(arg, Assembled):
        asked = requested_dtype(dtype, stored_or_held_dtype)
        return arg.astype(common_dtype(np.float32 if is_narrow(asked) else asked))
    if not isinstance(arg, tuple) or not is_logical(arg[0]):
        return arg
    asked = requested_dtype(dtype, stored_or_held_dtype)
    if asked == np.bool_:
        return arg
    return (to_host(arg[0]).astype(np.int64 if is_exact(asked) else np.float64), *arg[1:])


def is_logical(data: Any) -> bool:
    """Return whether values are booleans: duplicates are then merged by "or", not summed."""
    return str(getattr(data, "dtype", "")) in ("bool", "torch.bool") or (
        isinstance(data, (list, tuple)) and np.asarray(data).dtype == bool
    )


def either(data: HostArray, major: HostArray, minor: HostArray) -> tuple[HostArray, ...]:
    """Return entries with merged duplicates: 1 if at least one of them is 1."""
    order = np.lexsort((minor, major))
    data, major, minor = data[order], major[order], minor[order]
    first = np.flatnonzero(np.r_[True, (np.diff(major) != 0) | (np.diff(minor) != 0)][: major.size])
    if first.size == 0:
        return data, major, minor
    return np.maximum.reduceat(data, first), major[first], minor[first]


def either_compressed(
    data: HostArray, indices: HostArray, indptr: HostArray
) -> tuple[HostArray, HostArray, HostArray]:
    """Return compressed entries or blocks with duplicates merged as in :func:`either`."""
    major = np.repeat(np.arange(indptr.size - 1, dtype=indptr.dtype), np.diff(indptr))
    data, major, indices = either(data, major, indices)
    starts = np.searchsorted(major, np.arange(indptr.size, dtype=indptr.dtype))
    return data, indices, starts.astype(indptr.dtype)


def check_statement(name: str, stated: bool, actual: bool) -> None:
    """Raise InvalidArgument if the entries contradict a caller's statement.

    False is not a statement: it asks SciPy to check again, and the pattern never changes here.
    """
    if stated and not actual:
        raise InvalidArgument(
            f"{name}: the rows are not so; A.sort_indices() or A.sum_duplicates() makes them so"
        )
