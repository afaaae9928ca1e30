"""Reshaping of matrices, and assignment of diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..dtypes import COMPUTED, index_dtype, is_complex
from ..errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ..operands import native
from ..operations import rows
from ..small_values import as_dtype
from .arithmetic import add
from .csr import Csr, as_movable, from_movable
from .exact import row_numbers
from .given import checked_shape
from .rowwise import canonical_rows, known_canonical, of_pattern, same_pattern
from .selection import apart, column_slice, masked, nonzeros, row_slice
from .sparse_vector import SparseVector

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix

_LARGEST = int(np.iinfo(np.int64).max)


def reshape(matrix: Matrix, shape: Any, order: str) -> Any:
    """Return the entries in another shape: a Csr, or a SparseVector for one dimension."""
    if order not in ("C", "F"):
        raise InvalidArgument(f"reshape: expected order 'C' or 'F', got {order!r}")
    asked = _full_shape(matrix.shape, shape)
    if len(asked) == 1:
        row = reshape(matrix, (1, asked[0]), order).asformat("csr")
        return SparseVector._of(apart(row, matrix))
    if asked == matrix.shape:
        return matrix
    if order == "F":
        return reshape(matrix.asformat("csr").transpose(), asked[::-1], "C").transpose()
    if matrix.shape[0] * matrix.shape[1] > _LARGEST:
        raise InvalidArgument(
            f"reshape: a matrix of shape {matrix.shape} has more positions than int64 counts"
        )
    return _reshaped(matrix.asformat("csr").sort(), (asked[0], asked[1]))


def _reshaped(csr: Csr, shape: tuple[int, int]) -> Csr:
    """Return a reshaped matrix with sorted rows: row-major positions keep their order."""
    executor, xp = csr.executor, csr.executor.xp
    position = row_numbers(csr).astype(np.int64)
    position *= csr.shape[1]
    position += csr.indices
    dtype = index_dtype(max(*shape, csr.nnz), csr.index_dtype)
    begins = xp.arange(shape[0] + 1) * shape[1]
    indptr = xp.searchsorted(position, begins).astype(dtype)
    row = executor.allocate((csr.nnz,), dtype)
    executor.run(rows.number, indptr[:-1], indptr[1:], row)
    before = row.astype(np.int64)
    before *= shape[1]
    position -= before
    return Csr._from_arrays(
        executor, shape, executor.copy(csr.data), position.astype(dtype), indptr
    )


def _full_shape(shape_before: tuple[int, int], shape: Any) -> tuple[int, ...]:
    """Return a requested shape with -1 replaced by the number that fits."""
    asked = [int(length) for length in shape]
    size = shape_before[0] * shape_before[1]
    if len(asked) not in (1, 2):
        raise InvalidArgument(f"reshape: expected one or two dimensions, got shape {tuple(shape)}")
    unknown = [i for i, length in enumerate(asked) if length < 0]
    if len(unknown) > 1 or any(asked[i] != -1 for i in unknown):
        raise InvalidArgument(f"reshape: one dimension may be -1, got shape {tuple(shape)}")
    if unknown:
        others = int(np.prod([length for length in asked if length >= 0], dtype=object))
        if others == 0 or size % others:
            raise ShapeMismatch(f"reshape: {size} positions do not fit into shape {tuple(shape)}")
        asked[unknown[0]] = size // others
    if int(np.prod(asked, dtype=object)) != size:
        raise ShapeMismatch(
            f"reshape: a matrix of shape {shape_before} has {size} positions, and {tuple(asked)} "
            f"has {int(np.prod(asked, dtype=object))}"
        )
    return tuple(asked)


def requested_shape(shape: tuple[Any, ...]) -> Any:
    """Return a shape that was passed as one tuple or as several integers."""
    if len(shape) == 1 and not hasattr(shape[0], "__index__"):
        return tuple(shape[0])
    return shape


def resized(matrix: Matrix, shape: Any) -> Csr:
    """Return a matrix truncated or padded with zeros to another shape."""
    m, n = checked_shape(shape)
    csr = matrix.asformat("csr")
    if n < csr.shape[1]:
        csr = column_slice(csr, 0, n)
    if m < csr.shape[0]:
        csr = row_slice(csr, 0, m)
    xp, indptr = csr.executor.xp, csr.indptr
    if m > csr.shape[0]:
        indptr = xp.concatenate([indptr, xp.full(m - csr.shape[0], csr.nnz, indptr.dtype)])
    dtype = index_dtype(max(m, n, csr.nnz), csr.index_dtype)
    arrays = (csr.data, csr.indices.astype(dtype), indptr.astype(dtype))
    return Csr._from_arrays(csr.executor, (m, n), *arrays)


def nonzero(matrix: Matrix) -> tuple[Array, Array]:
    """Return the rows and the columns of the nonzero entries."""
    csr = nonzeros(canonical_rows(matrix))
    return row_numbers(csr), csr.executor.copy(csr.indices)


def with_diagonal(matrix: Matrix, values: Any, k: int) -> Csr:
    """Return a matrix with new entries on its ``k``-th diagonal above the main one."""
    m, n = matrix.shape
    if not isinstance(k, (int, np.integer)) or (k and not -m < k < n):
        raise InvalidArgument(
            f"setdiag: expected k between {1 - m} and {n - 1} for a matrix of shape {(m, n)}, "
            f"got {k!r}"
        )
    matrix.executor.refuse_capture(MAKES)
    csr, first = canonical_rows(matrix), (max(-int(k), 0), max(int(k), 0))
    length = min(m - first[0], n - first[1])
    executor, xp = csr.executor, csr.executor.xp
    given = native(executor, np.asarray(values) if np.isscalar(values) else values, "values")
    if is_complex(given.dtype) and not is_complex(matrix.dtype):
        raise InvalidMatrix(f"setdiag: complex values do not fit a {matrix.dtype} matrix")
    if given.ndim > 1:
        raise ShapeMismatch(f"setdiag: expected a number or a vector, got shape {given.shape}")
    if given.ndim == 0:
        given = xp.full(length, given.item())
    count = min(length, int(given.size))
    values = _with_stored_diagonal(
        csr, as_dtype(executor, given[:count], csr.dtype), first[0], int(k)
    )
    if values is not None:
        return of_pattern(csr, values)
    row = row_numbers(csr)
    on = csr.indices - row == k
    if count < length:
        on &= row - first[0] < count
    lengths = xp.zeros(m + 1, csr.index_dtype)
    lengths[first[0] + 1 : first[0] + 1 + count] = 1
    columns = xp.arange(first[1], first[1] + count, dtype=csr.index_dtype)
    data = as_dtype(executor, given[:count], csr.dtype, copy=True)
    indptr = xp.cumsum(lengths).astype(csr.index_dtype)
    new = known_canonical(Csr._from_arrays(executor, csr.shape, data, columns, indptr))
    return add(masked(csr, ~on), new)


def _with_stored_diagonal(csr: Csr, values: Array, first: int, k: int) -> Array | None:
    """Return the values with a new diagonal, in the rows from ``first`` on.

    The result is None if an entry of the diagonal is not stored.
    """
    executor, last = csr.executor, first + int(values.size)
    begin, end = csr.indptr[first:last], csr.indptr[first + 1 : last + 1]
    data = executor.copy(csr.data)
    if csr.dtype not in COMPUTED:
        data, values = as_movable(data), as_movable(values)
    stored = executor.allocate((1,), np.int64)
    # The operation numbers the rows from 0, which shifts the diagonal.
    executor.run(rows.set_diagonal, begin, end, csr.indices, values, k + first, data, stored)
    if int(executor.to_host(stored)[0]) != last - first:
        return None
    return data if csr.dtype in COMPUTED else from_movable(data, csr.dtype)


def replace_entries(matrix: Matrix, new_matrix: Csr) -> None:
    """Replace the entries of a matrix in place; only values change if the pattern stays."""
    data = _values_in_order(matrix, new_matrix)
    if data is None:
        matrix._replace_entries(new_matrix)
    else:
        matrix.update_values(data)


def _values_in_order(matrix: Matrix, new_matrix: Csr) -> Array | None:
    """Return the values of ``new_matrix`` in the order of ``matrix.data``, padding included.

    The result is None if ``new_matrix`` has another shape or pattern.
    """
    if new_matrix.shape != matrix.shape:
        return None
    if isinstance(matrix, Csr) and new_matrix.indices is matrix.indices:
        return new_matrix.data
    if matrix.format == "dense":
        dense: Array = new_matrix.asformat("dense").data
        return dense
    if matrix.nnz != new_matrix.nnz:
        return None
    data = matrix.executor.copy(matrix.data)
    # The values of this matrix are positions in the array of values; a conversion moves them.
    numbers = matrix.executor.xp.arange(int(data.size), dtype=np.int64).reshape(data.shape)
    places = canonical_rows(matrix._with_data(numbers))
    if not same_pattern(places, new_matrix):
        return None
    data.reshape(-1)[places.data] = new_matrix.data
    return data
