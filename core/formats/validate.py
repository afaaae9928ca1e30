"""Checks of arrays that users hand over, before a matrix is made of them.

They run on the host: a matrix is validated once, when it is made. Arrays of a device are checked by
:mod:`.device_arrays`, and come here if that finds something wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..assembled import Assembled
from ..dtypes import (
    ML_DTYPES,
    NUMBER_KINDS,
    asked_dtype,
    common_dtype,
    held_dtype,
    index_dtype,
    is_exact,
    is_narrow,
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
    """Return values of one dimension as :func:`values` does, but leave 16-bit ones as they are."""
    array = np.asarray(data)
    if array.ndim == 1 and array.dtype.name in ML_DTYPES:
        return np.ascontiguousarray(array, stored_dtype(array.dtype))
    return values(array, name)


def indices(array: Any, bound: int, name: str) -> HostArray:
    """Return indices as a contiguous integer array with all of them in ``[0, bound)``."""
    checked = integers(array, name)
    if checked.size:
        # As unsigned numbers, negative ones are the largest: one pass finds both.
        unsigned = checked.view(checked.dtype.str.replace("i", "u"))
        if int(unsigned.max()) >= min(bound, int(np.iinfo(checked.dtype).max) + 1):
            low, high = int(checked.min()), int(checked.max())
            worst = low if low < 0 else high
            where = int(np.flatnonzero(checked == worst)[0])
            raise InvalidMatrix(f"{name}[{where}] = {worst} is outside of 0..{bound - 1}")
    return checked


def integers(array: Any, name: str) -> HostArray:
    """Return ``array`` as one dimension of integers, for every integer dtype."""
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
    """Return row pointers after checking that they start at 0, never fall and end at ``nnz``."""
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
    """Return the entries before the last pointer; arrays may be longer, as in SciPy."""
    last = np.asarray(pointers).reshape(-1)[-1:]
    known = last.size == 1 and last.dtype.kind in "iu" and 0 <= int(last[0]) < len(entries)
    return entries[: int(last[0])] if known else entries


def of_one_dtype(largest: int, *arrays: HostArray) -> list[HostArray]:
    """Return index arrays in the one index dtype that holds them all."""
    dtype = index_dtype(largest, *(a.dtype for a in arrays if a.size))
    return [np.ascontiguousarray(a, dtype) for a in arrays]


def equal_lengths(**arrays: HostArray) -> None:
    """Raise InvalidMatrix unless all arrays have the same length."""
    if len({a.shape[0] for a in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} has {a.shape[0]}" for name, a in arrays.items())
        raise InvalidMatrix(f"lengths disagree: {lengths}")


def as_numbers(arg: Any, dtype: Any) -> Any:
    """Return a constructor's argument converted to a requested dtype.

    Booleans that become numbers are added up as such; see :func:`is_logical`. Expressions of
    identities and the like compute in the dtype, which their factors meet unrounded.
    """
    if dtype is None:
        return arg
    if isinstance(arg, Assembled):
        asked = asked_dtype(dtype, stored_or_held_dtype)
        return arg.astype(common_dtype(np.float32 if is_narrow(asked) else asked))
    if not isinstance(arg, tuple) or not is_logical(arg[0]):
        return arg
    asked = asked_dtype(dtype, stored_or_held_dtype)
    if asked == np.bool_:
        return arg
    return (to_host(arg[0]).astype(np.int64 if is_exact(asked) else np.float64), *arg[1:])


def is_logical(data: Any) -> bool:
    """Return whether values are booleans: duplicates are then combined by "or", not added up."""
    return str(getattr(data, "dtype", "")) in ("bool", "torch.bool") or (
        isinstance(data, (list, tuple)) and np.asarray(data).dtype == bool
    )


def either(data: HostArray, major: HostArray, minor: HostArray) -> tuple[HostArray, ...]:
    """Return entries with duplicates combined: 1 if one of them is."""
    order = np.lexsort((minor, major))
    data, major, minor = data[order], major[order], minor[order]
    first = np.flatnonzero(np.r_[True, (np.diff(major) != 0) | (np.diff(minor) != 0)][: major.size])
    if first.size == 0:
        return data, major, minor
    return np.maximum.reduceat(data, first), major[first], minor[first]


def either_compressed(
    data: HostArray, indices: HostArray, indptr: HostArray
) -> tuple[HostArray, HostArray, HostArray]:
    """Return compressed entries or blocks as :func:`either` does."""
    major = np.repeat(np.arange(indptr.size - 1, dtype=indptr.dtype), np.diff(indptr))
    data, major, indices = either(data, major, indices)
    starts = np.searchsorted(major, np.arange(indptr.size, dtype=indptr.dtype))
    return data, indices, starts.astype(indptr.dtype)


def check_statement(name: str, stated: bool, found: bool) -> None:
    """Raise InvalidArgument for a statement that the entries contradict.

    False is no statement: it asks SciPy to look again, and the entries never change here.
    """
    if stated and not found:
        raise InvalidArgument(
            f"{name}: the rows are not so; A.sort_indices() or A.sum_duplicates() makes them so"
        )
