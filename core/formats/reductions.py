"""Sums, means and extremes of the entries of matrices: of all entries, rows, or columns.

Reductions of rows and columns are dense one-dimensional native arrays; reductions of all entries
are host numbers. Duplicates are summed first if that matters, and positions without an entry count
as zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..capture import TO_HOST
from ..dtypes import is_exact, is_narrow
from ..errors import InvalidArgument, NothingToAverage, ShapeMismatch, UnsupportedOperand
from ..long_sums import LONG, has_long_row, in_double_if_long, rounded_to
from ..operands import as_column
from ..operations import rows, values, vector
from ..operations.matrix import csr_spmv_transposed
from . import base
from .convert import columns_of, require_memory
from .coo import Coo
from .exact import column_totals as exact_column_totals
from .exact import row_totals as exact_totals
from .exact import summable
from .hypersparse import canonical_entries, rows_or_columns
from .rowwise import canonical, canonical_rows, computed, is_hypersparse, row_bounds

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from ..operation import Operation
    from .base import Matrix
    from .csr import Csr


class Extreme(NamedTuple):
    """The operations for the largest entries, or for the smallest."""

    name: str
    of_rows: Operation
    of_all: Operation
    function: np.ufunc


LARGEST = Extreme("max", rows.largest, values.largest, np.maximum)
SMALLEST = Extreme("min", rows.smallest, values.smallest, np.minimum)


def normalized_axis(axis: Any) -> int | None:
    """Return an axis, or a tuple of axes, as None (both axes), 0 or 1.

    Raises
    ------
    UnsupportedOperand
        If the axis is not an integer.
    InvalidArgument
        If there is no such axis, or if a tuple contains an axis twice.
    """
    if axis is None:
        return None
    axes = axis if isinstance(axis, tuple) else (axis,)
    if any(isinstance(one, bool) or not isinstance(one, (int, np.integer)) for one in axes):
        raise UnsupportedOperand(
            f"axis must be an integer, a tuple of integers or None, got {axis!r}"
        )
    if not axes or any(not -2 <= one < 2 for one in axes):
        raise InvalidArgument(
            f"axis out of range: expected None, 0 (columns) or 1 (rows), got {axis!r}"
        )
    named = {int(one) % 2 for one in axes}
    if len(named) < len(axes):
        raise InvalidArgument(f"axis: {axis!r} names an axis twice")
    return None if len(named) == 2 else named.pop()


def written(result: Any, out: Any, executor: Executor) -> Any:
    """Return a result; if ``out`` is given, copy it there and return ``out``.

    Raises
    ------
    ShapeMismatch
        If ``out`` has another shape.
    """
    if out is None:
        return result
    shape = tuple(getattr(result, "shape", ()))
    if tuple(getattr(out, "shape", (-1,))) != shape:
        raise ShapeMismatch(
            "output parameter out: wrong number of dimensions or shape, expected an array of shape "
            f"{shape}, got {getattr(out, 'shape', type(out).__name__)}"
        )
    out[...] = result if executor.owns(out) else executor.to_host(result) if shape else result
    return out


def total(matrix: Matrix, axis: Any, dtype: DTypeLike | None = None) -> Any:
    """Return the sum of all entries, of each column (``axis=0``) or of each row (``axis=1``)."""
    axis = normalized_axis(axis)
    if dtype is not None and not is_exact(matrix.dtype):
        matrix = matrix.astype(dtype)
    if is_exact(matrix.dtype) and (dtype is None or is_exact(dtype)):
        return _exact_total(matrix, axis, np.dtype(_summed_in(matrix) if dtype is None else dtype))
    if dtype is not None:
        matrix = matrix.astype(dtype)
    if axis is None:
        return _total_of_all(matrix).astype(matrix.dtype)[()]
    return rounded(totals(matrix, axis), matrix)


def _summed_in(matrix: Matrix) -> type[np.integer[Any]]:
    """Return the dtype in which NumPy sums integers or booleans."""
    return np.uint64 if matrix.dtype.kind == "u" else np.int64


def _exact_total(matrix: Matrix, axis: int | None, dtype: np.dtype[Any]) -> Any:
    """Return a sum of integers or booleans; it wraps as NumPy's does."""
    csr = summable(matrix)
    if axis is None:
        whole = int(csr.executor.xp.sum(csr.data, dtype=np.int64))
        return np.asarray(whole, np.int64).astype(dtype)[()]
    return exact_totals(csr, dtype) if axis == 1 else exact_column_totals(csr, dtype)


def mean(matrix: Matrix, axis: Any, dtype: DTypeLike | None = None) -> Any:
    """Return the arithmetic mean of all entries, of each column or of each row."""
    axis = normalized_axis(axis)
    count = matrix.shape[0] * matrix.shape[1] if axis is None else matrix.shape[axis]
    if count == 0:
        raise NothingToAverage(
            f"mean: a matrix of shape {matrix.shape} has no entries to average along axis {axis}"
        )
    if dtype is not None and is_exact(dtype):
        made = mean(matrix, axis, np.float64 if is_exact(matrix.dtype) else None)
        return made.astype(dtype)
    if dtype is not None or is_exact(matrix.dtype):
        matrix = matrix.astype(np.float64 if dtype is None else dtype)
    if axis is None:
        return (_total_of_all(matrix) / count).astype(matrix.dtype)[()]
    sums = totals(matrix, axis)
    run = matrix.executor.run
    means = matrix.executor.allocate(sums.shape, sums.dtype)
    run(vector.axpby, as_column(sums), as_column(means), 1 / count, 0.0)
    return rounded(means, matrix)


def extreme(matrix: Matrix, axis: Any, extreme_kind: Extreme, *, explicit: bool = False) -> Any:
    """Return the largest or smallest entry of all, of each column or of each row."""
    axis = normalized_axis(axis)
    count = matrix.shape[0] * matrix.shape[1] if axis is None else matrix.shape[axis]
    if count == 0:
        raise InvalidArgument(
            f"{extreme_kind.name}: a matrix of shape {matrix.shape} has nothing to compare"
        )
    if is_exact(matrix.dtype):
        return _exact_extreme(matrix, axis, extreme_kind, explicit)
    if axis is None:
        csr = canonical_entries(matrix)
        found = number_of(csr, extreme_kind.of_all)
        if 0 < csr.nnz < count and not explicit:
            found = extreme_kind.function(found, found.dtype.type(0))
        return found.astype(matrix.dtype)[()]
    rows = canonical(by_rows(matrix, axis))
    return rounded(row_extremes(rows, extreme_kind, explicit=explicit), matrix)


def _exact_extreme(matrix: Matrix, axis: int | None, extreme_kind: Extreme, explicit: bool) -> Any:
    from .arg_extremes import extremes_of_rows

    if axis is not None:
        csr = matrix.asformat("csr")
        csr = canonical_rows(csr if axis == 1 else csr.transpose())
        return extremes_of_rows(csr, extreme_kind, 0 if explicit else csr.shape[1])
    csr = canonical_rows(matrix)
    as_row = csr.reshape(1, -1)
    found = extremes_of_rows(as_row, extreme_kind, 0 if explicit else as_row.shape[1])
    return csr.executor.to_host(found)[0]


def number_extreme(
    matrix: Matrix, axis: Any, extreme_kind: Extreme, *, explicit: bool = False
) -> Any:
    """Return the largest or smallest entry that is not NaN; NaN if all entries are NaN."""
    matrix.executor.refuse_host(TO_HOST)
    csr = canonical_rows(matrix)
    xp = csr.executor.xp
    missing = csr.data != csr.data
    if is_exact(matrix.dtype) or not bool(xp.any(missing)):
        return extreme(matrix, axis, extreme_kind, explicit=explicit)
    never = csr.dtype.type(-np.inf if extreme_kind is LARGEST else np.inf)
    numbers = csr._with_data(xp.where(missing, never, csr.data))
    found = extreme(numbers, axis, extreme_kind, explicit=explicit)
    # Rows in which all positions are NaN contain neither a number nor a zero.
    marks = csr._with_data(missing.astype(np.int32))
    count = marks.sum(axis)
    axis = normalized_axis(axis)
    whole = csr.shape[0] * csr.shape[1] if axis is None else csr.shape[axis]
    stored = csr._with_data(xp.ones(csr.nnz, np.int32)).sum(axis) if explicit else whole
    made = (np if axis is None else xp).where((count == stored) & (count > 0), np.nan, found)
    return made.astype(matrix.dtype)[()] if axis is None else made.astype(matrix.dtype)


def trace(matrix: Matrix, offset: Any = 0) -> Any:
    """Return the sum of a diagonal."""
    if is_exact(matrix.dtype):
        summed_in = _summed_in(matrix)
        return summed_in(int(matrix.executor.xp.sum(matrix.diagonal(offset).astype(summed_in))))
    entries, by_columns = rows_or_columns(matrix)
    diagonal = computed(entries).diagonal(-offset if by_columns else offset)
    return number_of_array(matrix.executor, diagonal, values.total).astype(matrix.dtype)[()]


# ---- sums of rows and of all entries, for dtypes in which kernels compute


def by_rows(matrix: Matrix, axis: int) -> Csr:
    """Return the matrix whose rows are reduced: for ``axis=0`` the transpose."""
    if axis == 1:
        return computed(matrix)
    if matrix.format == "csc":
        return computed(matrix.T)
    if isinstance(matrix, Coo):
        require_memory(matrix, "csc")
        return computed(columns_of(matrix).T)
    return computed(matrix).transpose()


def _total_of_all(matrix: Matrix) -> np.ndarray[Any, Any]:
    if matrix.format in ("coo", "csc"):
        return number_of_array(matrix.executor, matrix.data, values.total)
    return number_of(computed(matrix), values.total)


def totals(matrix: Matrix, axis: int) -> Array:
    """Return the sum of each column (``axis=0``) or of each row."""
    if matrix.format == "csc":
        matrix, axis = matrix.T, 1 - axis
    if axis == 1 or matrix.format == "coo":
        return row_totals(by_rows(matrix, axis))
    return column_totals(computed(matrix))


def column_totals(csr: Csr) -> Array:
    """Return the sum of each column, as a product with ones if there is a kernel for it."""
    executor, (m, n) = csr.executor, csr.shape
    if not executor.supports(csr_spmv_transposed) or is_hypersparse(m, csr.nnz):
        return row_totals(csr.transpose())
    if csr.dtype.kind == "c":  # a product with complex ones would make inf + nan j of inf + 0j
        whole = executor.allocate((n,), csr.dtype)
        contiguous = executor.xp.ascontiguousarray
        whole.real = column_totals(csr._with_data(contiguous(csr.data.real)))
        whole.imag = column_totals(csr._with_data(contiguous(csr.data.imag)))
        return whole
    ones = executor.xp.ones((m, 1), csr.dtype)
    sums = executor.allocate((n, 1), csr.dtype)
    executor.run(csr_spmv_transposed, csr, ones, sums, 1.0, 0.0)
    return sums.reshape(-1)


def row_totals(csr: Csr) -> Array:
    """Return the sum of each row; long rows of single precision are summed in double."""
    if csr.nnz > LONG and has_long_row(csr.indptr):
        wide = csr._with_data(in_double_if_long(csr.executor, csr.data))
        return rounded_to(csr.executor, _of_rows(wide, rows.total), csr.dtype)
    return _of_rows(csr, rows.total)


def row_extremes(csr: Csr, extreme_kind: Extreme, *, explicit: bool = False) -> Array:
    """Return the largest or smallest number of each row of a canonical matrix.

    With ``explicit`` positions without an entry do not count; an empty row gives 0.
    """
    return _of_rows(csr, extreme_kind.of_rows, 0 if explicit else csr.shape[1])


def _of_rows(csr: Csr, operation: Operation, *further: Any) -> Array:
    result = csr.executor.allocate((csr.shape[0],), csr.dtype)
    csr.executor.run(operation, *row_bounds(csr), csr.data, *further, result)
    return result


def number_of(csr: Csr, operation: Operation) -> np.ndarray[Any, Any]:
    """Return the result of an operation on all values, as a zero-dimensional host array."""
    return number_of_array(csr.executor, csr.data, operation)


def number_of_array(executor: Executor, array: Array, operation: Operation) -> np.ndarray[Any, Any]:
    """Return the result of an operation on a one-dimensional array."""
    if operation is values.total:
        array = in_double_if_long(executor, array)
    result = executor.allocate((1,), array.dtype)
    executor.run(operation, as_column(array), result)
    return executor.to_host(result).reshape(())


def rounded(array: Array, matrix: Matrix) -> Array:
    """Return a result in the dtype of the matrix; 16-bit results were computed in float32."""
    return array.astype(matrix.dtype) if is_narrow(matrix.dtype) else array


base.written.provide(written)
