"""Norms of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import is_exact, is_narrow, real_dtype
from ..errors import InvalidArgument, UnsupportedOperand
from ..linop import LinOp
from ..long_sums import in_double_if_long
from ..operands import as_column
from ..operations import values, vector
from .base import Matrix
from .elementwise import magnitudes, power
from .hypersparse import canonical_entries, occupied
from .other_libraries import is_sparse, matrix_from
from .reductions import (
    LARGEST,
    SMALLEST,
    by_rows,
    column_totals,
    normalized_axis,
    number_of_array,
    row_extremes,
    row_totals,
    totals,
)
from .rowwise import canonical
from .sparse_vector import SparseVector

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr

_OF_MATRICES = "None, 'fro', 1, -1, inf, -inf"
_OF_ROWS = "None, 0, a positive number, inf, -inf"


def norm(A: Any, ord: Any = None, axis: int | None = None) -> Any:
    """Return a norm of a matrix, or of each of its columns or rows.

    Parameters
    ----------
    A : Matrix, SparseVector, or a sparse matrix of another library
        A matrix in any format; duplicates are summed first. For a matrix that a group shares, norms
        of rows and columns are not available.
    ord : {None, "fro", 1, -1, inf, -inf, 0} or float
        Without an axis, ``None`` and ``"fro"`` mean the Frobenius norm; 1 is the largest column sum
        of absolute values, inf the largest row sum, and -1 and -inf are the smallest. With an axis,
        ``None`` and 2 mean the Euclidean norm of each column or row; 1 is the sum of its absolute
        values, inf and -inf are the largest and the smallest of them, 0 is the number of nonzeros,
        and another positive p gives the p-th root of the sum of the p-th powers.
    axis : {None, 0, 1}
        0: the norm of each column; 1: of each row.

    Returns
    -------
    number, or native array of shape (n,) or (m,)
        A real number in the precision of the matrix; for 16-bit dtypes it is computed and returned
        in float32. With ``ord=0`` the dtype is int64.

    Raises
    ------
    InvalidArgument
        If ``ord`` is not one of these. The 2-norm of a matrix is the first value that
        ``wl.linalg.svds(A, k=1)`` returns.
    UnsupportedOperand
        If ``A`` is not a matrix.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[3.0, 0.0], [0.0, -4.0]]))
    >>> print(wl.linalg.norm(A), wl.linalg.norm(A, 1), wl.linalg.norm(A, axis=1))
    5.0 4.0 [3. 4.]
    """
    axis = normalized_axis(axis)
    if isinstance(A, SparseVector):
        return A.executor.to_host(norm(A.row, ord, axis=1))[0]
    if axis is None and ord not in (None, "fro", "f", 1, -1, np.inf, -np.inf):
        raise InvalidArgument(
            f"norm: expected ord of {_OF_MATRICES}, got {ord!r}; the 2-norm is the singular value "
            "of wl.linalg.svds(A, k=1)"
        )
    if isinstance(A, LinOp) and A.partition is not None and hasattr(A, "_norm"):
        return A._norm(ord, axis)  # a group shares the rows
    matrix = _as_matrix(A)
    matrix = matrix.astype(np.float64) if is_exact(matrix.dtype) else matrix
    if axis is not None:
        return _of_vectors(matrix, axis, ord)
    if ord in (None, "fro", "f"):
        csr = canonical_entries(matrix)
        return euclidean(csr.executor, csr.data)
    axis = 0 if abs(ord) == 1 else 1
    if matrix.shape[1 - axis] == 0:
        raise InvalidArgument(f"norm: a matrix of shape {matrix.shape} has no norm of order {ord}")
    small = occupied(matrix).matrix
    which = LARGEST if ord > 0 else SMALLEST
    found: Any = 0.0
    if small.nnz:
        turned = small.format == "csc"
        sums = totals(magnitudes(small.T if turned else small), axis ^ turned)
        found = number_of_array(matrix.executor, sums, which.of_all)[()]
    if ord < 0 and small.shape[1 - axis] < matrix.shape[1 - axis]:
        found = 0.0  # sum of an empty row or column
    return real_dtype(np.float32 if is_narrow(matrix.dtype) else matrix.dtype).type(found)


def _as_matrix(A: Any) -> Matrix:
    if isinstance(A, Matrix):
        return A
    if getattr(type(A), "_is_batch", False):
        raise UnsupportedOperand(
            "norm: a batch has no norm of its own; wl.linalg.norm(A[k]) is that of one matrix"
        )
    if not is_sparse(A):
        raise UnsupportedOperand(
            f"norm: expected a matrix, got {type(A).__name__}; of an array take numpy.linalg.norm"
        )
    found: Matrix = matrix_from(A, None)
    return found


def _of_vectors(matrix: Matrix, axis: int, ord: Any) -> Array:
    """Return the norm of each row or column."""
    power_of = 2.0 if ord is None else float(ord) if isinstance(ord, Real) else np.nan
    if not (power_of >= 0 or power_of == -np.inf):
        raise InvalidArgument(f"norm: expected ord of {_OF_ROWS} with an axis, got {ord!r}")
    if power_of == 0:
        return (matrix != 0).sum(axis=axis)
    by_columns = axis == 0 and matrix.format == "csr"
    if np.isfinite(power_of):
        csr = canonical(matrix if by_columns else by_rows(matrix, axis))
        add_up = column_totals if by_columns else row_totals
        if power_of == 1:
            return add_up(magnitudes(csr))
        return _rooted_sums(csr, add_up, power_of)
    csr = canonical(by_rows(matrix, axis))
    if csr.shape[1] == 0:
        raise InvalidArgument(
            f"norm: a matrix of shape {matrix.shape} has no norm of order {ord} there"
        )
    return row_extremes(magnitudes(csr), LARGEST if power_of > 0 else SMALLEST)


def euclidean(executor: Executor, array: Array) -> Any:
    """Return the square root of a sum of squares without intermediate overflow or underflow."""
    real = real_dtype(array.dtype)
    array = in_double_if_long(executor, array)
    if real_dtype(array.dtype) != real:
        with np.errstate(over="ignore"):
            return real.type(euclidean(executor, array))
    column, found = as_column(array), executor.allocate((1,), real)
    executor.run(vector.norm, column, found)
    plain = executor.to_host(found)[0]
    # The largest value is between the norm divided by the square root of the length, and the norm.
    low, high = _range_of_safe_squares(real)
    if low * real.type(array.size) ** 0.5 < plain < high:
        return plain
    executor.run(vector.largest, column, found)
    largest = executor.to_host(found)[0]
    if _squares_are_safe(largest) or not np.isfinite(largest):
        return plain if np.isfinite(largest) else largest
    scaled = executor.allocate(tuple(array.shape), array.dtype)
    scale = _power_of_two(largest)
    executor.run(vector.axpby, column, as_column(scaled), 1 / scale, 0.0)
    executor.run(vector.norm, as_column(scaled), found)
    return real.type(executor.to_host(found)[0] * real.type(scale))


def _rooted_sums(csr: Csr, add_up: Callable[[Csr], Array], power_of: float) -> Array:
    """Return p-th roots of sums of p-th powers; entries are first scaled by the largest one.

    Parameters
    ----------
    csr : Csr
        The matrix, without duplicates.
    add_up : callable
        Returns the sum of each row or of each column.
    power_of : float
        The exponent p > 0. For p = 2 the scaling is omitted if squares are safe.
    """
    executor, real = csr.executor, real_dtype(csr.dtype)
    sizes = magnitudes(csr)
    largest = number_of_array(executor, sizes.data, values.largest)[()]
    safe = power_of == 2 and _squares_are_safe(largest)
    unscaled = safe or largest == 0 or not np.isfinite(largest)
    scale = 1.0 if unscaled else _power_of_two(largest)
    if scale != 1.0:
        data = executor.allocate(tuple(sizes.data.shape), real)
        executor.run(vector.axpby, as_column(sizes.data), as_column(data), 1 / scale, 0.0)
        sizes = sizes._with_data(data)
    sums = add_up(power(sizes, 2 if power_of == 2 else power_of))
    roots, scaled = (executor.allocate(sums.shape, real) for _ in range(2))
    executor.run(values.power, as_column(sums), as_column(roots), 1 / power_of)
    if scale == 1.0:
        return roots
    executor.run(vector.axpby, as_column(roots), as_column(scaled), scale, 0.0)
    return scaled


def _squares_are_safe(largest: Any) -> bool:
    """Return whether squares up to this value, and their sums, are far from over- and underflow.

    Values whose squares underflow are negligible next to the largest value.
    """
    low, high = _range_of_safe_squares(largest.dtype)
    return bool(largest == 0 or low < largest < high)


@cache
def _range_of_safe_squares(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    limits = np.finfo(dtype)
    return np.sqrt(limits.tiny) / limits.eps, np.sqrt(limits.max) * limits.eps


def _power_of_two(largest: Any) -> float:
    """Return the power of two just below a number; its inverse does not overflow either."""
    limits = np.finfo(largest.dtype)
    exponent = int(np.frexp(largest)[1]) - 1
    return float(2.0 ** max(exponent, limits.minexp))
