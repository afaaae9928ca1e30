"""Indexing: the meaning of ``A[key]`` by NumPy's rules for two dimensions.

An integer removes an axis, so that a row or a column is a sparse vector. Slices, and
one-dimensional arrays of integers or booleans, select rows and columns. Two arrays are broadcast as
in NumPy: one-dimensional arrays select single entries, two-dimensional ones (``numpy.ix_``) a
matrix of entries.
"""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IndexOutOfRange, InvalidIndex
from ..linop import LinOp
from ..operands import is_array, is_host, native
from ..operations import rows as operations
from .operands import with_entries
from .rowwise import computed, row_bounds
from .selection import (
    apart,
    column_slice,
    from_dense,
    masked_columns,
    row_slice,
    row_view,
    take_columns,
    take_rows,
    values_at,
)
from .sparse_vector import SparseVector

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix
    from .csr import Csr


def item(matrix: Matrix, key: Any) -> Any:
    """Return ``matrix[key]``.

    Returns
    -------
    number, SparseVector, Csr or array
        An entry; a row or column; a matrix of rows and columns; or a dense array of the entries
        that one-dimensional arrays select.

    Raises
    ------
    IndexOutOfRange
        If a row or column does not exist.
    InvalidIndex
        If the key has another kind, or if the result would have three dimensions.
    """
    if type(key) is tuple and len(key) == 2 and type(key[0]) is slice and type(key[1]) is slice:
        return _block(matrix, *key)  # the most frequent case, and the fastest test
    return _item(matrix, _without_ellipsis_of_mask(_with_dense_vectors(key)))


def _item(matrix: Matrix, key: Any) -> Any:
    if _is_mask(key):
        return _by_mask(matrix, key)
    if isinstance(key, tuple) and any(part is None for part in key):
        return _with_new_axes(matrix, key)
    row, column = _axes(key)
    if isinstance(row, slice) and _is_column_mask(matrix, column):
        return masked_columns(_chosen(matrix, 0, row), column)
    row, column = (_normalized(matrix, axis, key) for axis, key in enumerate((row, column)))
    if isinstance(row, int) and isinstance(column, int):
        return entry(matrix, row, column)
    if getattr(row, "ndim", 1) == 2 or getattr(column, "ndim", 1) == 2:
        _refuse_two_dimensions(row, column)
        row, column = (_as_array(matrix, key) for key in (row, column))
    if isinstance(row, int):
        return SparseVector._of(_block(matrix, slice(row, row + 1), column))
    if isinstance(column, int):
        rows = _chosen(matrix, 0, row)
        return SparseVector._of(column_slice(rows, column, column + 1).transpose())
    if isinstance(row, slice) or isinstance(column, slice):
        return _block(matrix, row, column)
    return _entries(matrix, row, column)


def _block(matrix: Matrix, row: Any, column: Any) -> Csr:
    """Return rows and columns; at least one key is a slice."""
    if isinstance(row, slice) and not any(map(_is_all, (row, column), matrix.shape)):
        start, stop, step = _bounds(row, matrix.shape[0])
        if step == 1:  # only the entries in the columns are copied
            return _chosen(row_view(matrix, start, stop), 1, column)
    return apart(_chosen(_chosen(matrix, 0, row), 1, column), matrix)


def _is_all(key: Any, extent: int) -> bool:
    """Return whether a key is a slice that selects everything in order."""
    return isinstance(key, slice) and _bounds(key, extent) == (0, extent, 1)


def entry(matrix: Matrix, row: int, column: int) -> Any:
    """Return the entry at a position as a number of the same dtype; duplicates are summed."""
    if matrix.dtype == np.int64:  # float64 cannot represent all of them
        xp = matrix.executor.xp
        found = values_at(matrix, *(xp.asarray([index]) for index in (row, column)))
        return matrix.executor.to_host(found)[0]
    csr: Csr = computed(matrix)
    begin, end = (bounds[row : row + 1] for bounds in row_bounds(csr))
    value = csr.executor.allocate((1,), csr.dtype)
    csr.executor.run(operations.diagonal, begin, end, csr.indices, csr.data, column, value)
    return csr.executor.to_host(value)[0].astype(matrix.dtype)


# ---- the parts of a key


def _axes(key: Any) -> tuple[Any, Any]:
    """Return the keys of rows and columns.

    Raises
    ------
    InvalidIndex
        If the key has too many parts, or is None.
    """
    if key is None:
        raise InvalidIndex(
            "None in an index adds a dimension: a matrix has two; A[None, i] is the row i as a "
            "matrix of one row"
        )
    row, column = _expanded(list(key) if isinstance(key, tuple) else [key])
    return row, column


def _expanded(parts: list[Any]) -> list[Any]:
    """Return the parts of a key with slices for an ellipsis and for missing axes.

    None, which adds an axis, is kept.
    """
    named = [part for part in parts if part is not None and part is not Ellipsis]
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise InvalidIndex("an index can only have a single ellipsis (...)")
    if len(named) > 2:
        raise InvalidIndex(f"a matrix has two dimensions, got {len(named)} indices")
    at = ellipses[0] if ellipses else len(parts)
    return [*parts[:at], *[slice(None)] * (2 - len(named)), *parts[at + 1 :]]


def _with_dense_vectors(key: Any) -> Any:
    """Return a key with sparse vectors replaced by arrays; they select rows or columns."""
    if isinstance(key, tuple):
        return tuple(part.toarray() if isinstance(part, SparseVector) else part for part in key)
    return key.toarray() if isinstance(key, SparseVector) else key


def _without_ellipsis_of_mask(key: Any) -> Any:
    """Return a two-dimensional mask without an ellipsis; other keys are unchanged."""
    if isinstance(key, tuple) and len(key) == 2 and any(part is Ellipsis for part in key):
        (other,) = [part for part in key if part is not Ellipsis] or [Ellipsis]
        if isinstance(other, list) and other and isinstance(other[0], list):
            other = np.asarray(other)
        if getattr(other, "ndim", 0) == 2 and other.dtype == bool:
            return other
    return key


def _normalized(matrix: Matrix, axis: int, key: Any) -> Any:
    """Return a part of a key as an int, a slice, or a native array of integers."""
    count, name = matrix.shape[axis], ("rows", "columns")[axis]
    if isinstance(key, slice):
        return key
    is_boolean = isinstance(key, (bool, np.bool_))
    if not is_boolean and hasattr(key, "__index__") and getattr(key, "ndim", 0) == 0:
        return _within(int(key), count)
    return _numbers(matrix, key, count, name)


def _numbers(matrix: Matrix, key: Any, count: int, name: str) -> Array:
    """Return integers or booleans with one or two dimensions as numbers of rows or columns.

    Native arrays are read through the array namespace of the executor.
    """
    executor = matrix.executor
    if not is_array(key) or isinstance(key, Number):
        raise InvalidIndex(
            f"Index dimension must be 1 or 2: {name} are named by a slice, an integer, or integers "
            f"or booleans of one dimension, got {key!r}"
        )
    if not is_host(key):  # a tensor on the same device becomes native
        key = native(executor, key, name)
    try:
        xp, given = (executor.xp, key) if executor.owns(key) else (np, np.asarray(key))
    except ValueError as error:  # nested sequences of different lengths
        raise InvalidIndex(f"{name}: not an array of integers: {error}") from None
    if given.ndim not in (1, 2):
        raise InvalidIndex(
            f"Index dimension must be 1 or 2: {name} are named by a slice, an integer, or integers "
            f"or booleans of one dimension, got an array of shape {given.shape}"
        )
    if given.dtype == bool:
        if given.ndim != 1 or given.size != count:
            raise IndexOutOfRange(
                f"bool index of {name} has shape {given.shape} instead of ({count},)"
            )
        numbers = xp.flatnonzero(given)
    elif given.size == 0:
        numbers = given.astype(np.int64)
    elif given.dtype.kind in "iu":
        numbers = _all_within(xp, given.astype(np.int64), count, name)
    else:
        raise InvalidIndex(f"{name}: expected integers or booleans, got dtype {given.dtype}")
    return numbers if executor.owns(numbers) else executor.from_host(numbers)


def _all_within(xp: Any, numbers: Array, count: int, name: str) -> Array:
    """Return row or column numbers; negative ones count from the end."""
    # Viewed as unsigned, negative numbers are the largest: on the host one pass checks both bounds.
    if xp is np and int(numbers.view(np.uint64).max()) < count:
        return numbers
    outside = (numbers < -count) | (numbers >= count)
    if bool(xp.any(outside)):
        at = int(xp.flatnonzero(outside)[0])
        raise IndexOutOfRange(
            f"{name}[{at}] = {int(numbers.reshape(-1)[at])} is outside of a matrix of {count} "
            f"{name}"
        )
    return xp.where(numbers < 0, numbers + count, numbers)


def _within(index: int, extent: int) -> int:
    if not -extent <= index < extent:
        raise IndexOutOfRange(f"index ({index}) out of range: the extent is {extent}")
    return index % extent


# ---- results


def _chosen(matrix: Matrix, axis: int, key: Any) -> Csr:
    """Return the rows (axis 0) or columns that a slice or an array selects."""
    take = take_columns if axis else take_rows
    if not isinstance(key, slice):
        return take(matrix, key)
    start, stop, step = _bounds(key, matrix.shape[axis])
    if (start, stop, step) == (0, matrix.shape[axis], 1):
        csr: Csr = matrix.asformat("csr")
        return csr
    if step == 1:
        return (column_slice if axis else row_slice)(matrix, start, stop)
    return take(matrix, matrix.executor.xp.arange(start, stop, step))


def _bounds(key: slice, extent: int) -> tuple[int, int, int]:
    """Return the start, the stop and the step of a slice of an axis."""
    try:
        return key.indices(extent)
    except TypeError as error:
        raise InvalidIndex(f"index: {error}, got {key}") from None


def _as_array(matrix: Matrix, key: Any) -> Array:
    return matrix.executor.xp.asarray([key]) if isinstance(key, int) else key


def _refuse_two_dimensions(*keys: Any) -> None:
    """Raise InvalidArgument for a slice next to a two-dimensional array."""
    if any(isinstance(key, slice) for key in keys):
        raise InvalidIndex(
            "an index of two dimensions and a slice have a result of three, and >2D is not "
            "supported: index with arrays of one dimension, or with numpy.ix_(rows, columns)"
        )


def _entries(matrix: Matrix, row: Array, column: Array) -> Any:
    """Return the entries that two arrays select; an outer pair selects rows, then columns."""
    xp = matrix.executor.xp
    if row.ndim == column.ndim == 2 and row.shape[1] == 1 and column.shape[0] == 1:
        return take_columns(take_rows(matrix, row.reshape(-1)), column.reshape(-1))
    shape = row.shape
    if row.shape != column.shape:
        try:
            shape = np.broadcast_shapes(row.shape, column.shape)
        except ValueError:
            raise InvalidIndex(
                f"shape mismatch: rows of shape {row.shape} and columns of shape {column.shape} do "
                "not broadcast; numpy.ix_(rows, columns) names all pairs"
            ) from None
        row, column = (xp.broadcast_to(numbers, shape) for numbers in (row, column))
    found = values_at(matrix, row, column)
    return found if len(shape) == 1 else from_dense(matrix, found)


def _with_new_axes(matrix: Matrix, key: tuple[Any, ...]) -> Any:
    """Return ``A[None, i]``, ``A[i, :, None]`` and the like: None adds an axis of length 1."""
    parts = _expanded(list(key))
    row, column = (part for part in parts if part is not None)
    kept = [
        not isinstance(_normalized(matrix, axis, part), int)
        for axis, part in enumerate((row, column))
    ]
    if sum(kept) + sum(part is None for part in parts) > 2:
        raise InvalidIndex(
            "None in an index adds a dimension: the result would have three, and matrices have two"
        )
    chosen = [
        part if keep else _as_slice(matrix, axis, part)
        for axis, (part, keep) in enumerate(zip((row, column), kept, strict=True))
    ]
    taken = item(matrix, tuple(chosen))
    lengths, shape = iter(zip(taken.shape, kept, strict=True)), []
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        length, keep = next(lengths)
        shape += [length] * keep
    return taken.reshape(*shape)


def _as_slice(matrix: Matrix, axis: int, index: Any) -> slice:
    """Return the slice that selects one row or column."""
    at = _within(int(index), matrix.shape[axis])
    return slice(at, at + 1)


def _is_mask(key: Any) -> bool:
    """Return whether a key is a boolean matrix, or a two-dimensional boolean array."""
    if isinstance(key, LinOp) or hasattr(key, "tocsr"):
        return True
    return getattr(key, "ndim", 0) == 2 and key.dtype == bool


def _is_column_mask(matrix: Matrix, key: Any) -> bool:
    """Return whether a key is an array with one boolean for each column."""
    return str(getattr(key, "dtype", "")) == "bool" and tuple(key.shape) == matrix.shape[1:]


def _by_mask(matrix: Matrix, key: Any) -> Array:
    """Return the entries at the True positions of a mask, row by row, as a dense array."""
    if not (isinstance(key, LinOp) or hasattr(key, "tocsr")):
        mask = native(matrix.executor, key, "the mask")
        row, column = matrix.executor.xp.nonzero(mask)
    else:
        beside = matrix._beside(key)
        if beside is None:
            raise InvalidIndex(f"an index is no {type(key).__name__}")
        mask = with_entries(beside, matrix)
        row, column = mask.nonzero()
    if str(key.dtype) not in ("bool", "torch.bool") or tuple(mask.shape) != matrix.shape:
        raise IndexOutOfRange(
            f"mask: expected booleans of shape {matrix.shape}, got {key.dtype} of shape "
            f"{tuple(mask.shape)}"
        )
    return values_at(matrix, row, column)
