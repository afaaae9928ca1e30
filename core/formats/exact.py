"""Sums, products and diagonals of integers and booleans without rounding.

Kernels compute in floating-point numbers. In double precision they are exact if no sum can exceed
2^53, which follows from the largest values. Otherwise this module uses array functions of the
executor: sums of segments are differences of running sums in int64, which are exact modulo 2^64.
The sum of booleans is whether any is True.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import held_dtype, index_dtype, is_exact, joint_dtype
from ..errors import ShapeMismatch, UnsupportedDtype
from ..operands import is_array, is_host, native
from ..operations import rows
from . import base
from .csr import Csr
from .pairs import paired
from .rowwise import (
    canonical_rows,
    known_canonical,
    of_pattern,
    row_bounds,
    same_pattern,
    with_index_dtype,
)

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .base import Matrix


#: Double precision represents all integers of at most this magnitude.
MOST_IN_DOUBLE = 1 << 53


def largest(executor: Executor, values: Array) -> int:
    """Return the largest absolute value, or 0 if there are no values."""
    if values.size == 0 or values.dtype == np.bool_:
        return int(values.size > 0)
    xp = executor.xp
    return max(abs(int(xp.min(values))), abs(int(xp.max(values))))


def fits_double(executor: Executor, bound: int) -> bool:
    """Return whether kernels compute exactly with integers up to a bound."""
    return executor.has_double and bound <= MOST_IN_DOUBLE


def in_double(csr: Csr) -> Csr:
    """Return the matrix with values in double precision."""
    return of_pattern(csr, csr.data.astype(np.float64))


def from_double(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers that are stored in double precision in an exact dtype."""
    return narrowed(values if dtype == np.bool_ else values.astype(np.int64), dtype)


def running(executor: Executor, numbers: Array) -> Array:
    """Return the exclusive running sums and the total sum, in int64."""
    xp = executor.xp
    sums = xp.zeros(int(numbers.size) + 1, np.int64)
    if numbers.size:
        sums[1:] = xp.cumsum(numbers, dtype=np.int64)
    return sums


def segment_sums(executor: Executor, values: Array, bounds: Array, dtype: np.dtype[Any]) -> Array:
    """Return the sums of ``values[bounds[i]:bounds[i + 1]]`` for all ``i``, in a dtype."""
    sums = running(executor, values)
    return narrowed(sums[bounds[1:]] - sums[bounds[:-1]], dtype)


def narrowed(sums: Array, dtype: np.dtype[Any]) -> Array:
    """Return int64 sums in an exact dtype; a boolean sum is whether it is nonzero."""
    return sums != 0 if dtype == np.bool_ else sums.astype(dtype)


def row_numbers(csr: Csr) -> Array:
    """Return the row of each entry."""
    row = csr.executor.allocate((csr.nnz,), csr.index_dtype)
    csr.executor.run(rows.number, *row_bounds(csr), row)
    return row


def without_duplicates(csr: Csr) -> Csr:
    """Return a matrix with sorted rows and summed duplicates."""
    executor, xp = csr.executor, csr.executor.xp
    row = row_numbers(csr)
    begins = xp.ones(csr.nnz, np.bool_)
    if csr.nnz > 1:
        begins[1:] = (row[1:] != row[:-1]) | (csr.indices[1:] != csr.indices[:-1])
    first = xp.flatnonzero(begins)
    bounds = xp.concatenate([first, xp.asarray([csr.nnz], dtype=first.dtype)])
    indptr = running(executor, begins)[csr.indptr].astype(csr.index_dtype)
    data = segment_sums(executor, csr.data, bounds, csr.dtype)
    made = Csr._from_arrays(executor, csr.shape, data, csr.indices[first], indptr)
    return known_canonical(made)


def diagonal(matrix: Matrix, k: int) -> Array:
    """Return the ``k``-th diagonal above the main diagonal."""
    csr = canonical_rows(matrix)
    first, (m, n) = max(-k, 0), csr.shape
    length = max(min(m - first, n - max(k, 0)), 0)
    d = csr.executor.xp.zeros(length, csr.dtype)
    row = row_numbers(csr)
    on = csr.indices.astype(np.int64) - row == k
    d[row[on] - first] = csr.data[on]
    return d


def summable(matrix: Matrix) -> Csr:
    """Return a CSR matrix with entries that can be summed: boolean duplicates are merged."""
    csr: Csr = matrix.asformat("csr")
    return csr.without_duplicates() if csr.dtype == np.bool_ else csr


def applied(matrix: Matrix, x: Any) -> Any:
    """Return ``A @ x`` for an exact matrix and array, or None if ``x`` is not exact."""
    if is_array(x) and hasattr(x, "dtype") and x.dtype.kind not in "bui":
        return None
    executor = matrix.executor
    given = native(executor, x, "x")
    if not is_exact(given.dtype):
        return None
    if given.ndim not in (1, 2) or given.shape[0] != matrix.shape[1]:
        raise ShapeMismatch(
            f"x: expected shape ({matrix.shape[1]},) or ({matrix.shape[1]}, k), got "
            f"{tuple(given.shape)}"
        )
    made = product(matrix, given.astype(held_dtype(given.dtype), copy=False))
    return made if given is x or not is_host(x) else executor.to_host(made)


def product(matrix: Matrix, block: Array) -> Array:
    """Return the exact product with a vector or a block of integers or booleans."""
    csr = summable(matrix)
    executor, dtype = csr.executor, joint_dtype(csr.dtype, block.dtype)
    factors = largest(executor, csr.data) * largest(executor, block)
    if fits_double(executor, factors * max(csr.nnz, 1)):
        double = matrix._in_double() if csr is matrix else in_double(csr)
        return from_double(double @ block.astype(np.float64), dtype)
    if block.ndim == 1:
        terms = csr.data.astype(np.int64) * block.astype(np.int64)[csr.indices]
        return segment_sums(executor, terms, csr.indptr, dtype)
    result = executor.xp.zeros((csr.shape[0], block.shape[1]), dtype)
    for column in range(block.shape[1]):
        result[:, column] = product(csr, block[:, column])
    return result


def row_totals(csr: Csr, dtype: np.dtype[Any]) -> Array:
    """Return the sum of each row in an exact dtype."""
    if fits_double(csr.executor, largest(csr.executor, csr.data) * max(csr.nnz, 1)):
        from .reductions import row_totals as totals_of_rows

        return from_double(totals_of_rows(in_double(csr)), dtype)
    return segment_sums(csr.executor, csr.data, csr.indptr, dtype)


def column_totals(csr: Csr, dtype: np.dtype[Any]) -> Array:
    """Return the sum of each column in an exact dtype."""
    if fits_double(csr.executor, largest(csr.executor, csr.data) * max(csr.nnz, 1)):
        from .reductions import totals

        return from_double(totals(in_double(csr), 0), dtype)
    return row_totals(csr.transpose(), dtype)


def matmul(left: Csr, right: Csr) -> Csr:
    """Return the product of two exact matrices: all terms, sorted by position and summed."""
    left, right = summable(left), summable(right)
    executor, xp = left.executor, left.executor.xp
    factors = largest(executor, left.data) * largest(executor, right.data)
    if fits_double(executor, factors * max(left.shape[1], 1)):
        from .arithmetic import matmul as product_in_double

        made = product_in_double(in_double(left), in_double(right))
        return of_pattern(made, from_double(made.data, joint_dtype(left.dtype, right.dtype)))
    lengths = (right.indptr[1:] - right.indptr[:-1])[left.indices].astype(np.int64)
    first = running(executor, lengths)
    total = int(executor.to_host(first[-1:])[0])
    dtype = index_dtype(max(total, *left.shape, *right.shape), left.index_dtype, right.index_dtype)
    entry = executor.allocate((total,), np.int64)
    executor.run(rows.number, first[:-1], first[1:], entry)
    at = xp.arange(total) - first[entry] + right.indptr[left.indices[entry]].astype(np.int64)
    terms = left.data[entry].astype(np.int64) * right.data[at].astype(np.int64)
    shape = (left.shape[0], right.shape[1])
    pointers = first[left.indptr].astype(dtype)
    columns = right.indices[at].astype(dtype)
    made = without_duplicates(Csr._from_arrays(executor, shape, terms, columns, pointers).sort())
    values = narrowed(made.data, joint_dtype(left.dtype, right.dtype))
    return known_canonical(made._with_data(values))


def add(left: Csr, right: Csr, alpha: int, beta: int) -> Csr:
    """Return ``alpha * left + beta * right`` of exact matrices, with the union of their patterns.

    Raises
    ------
    UnsupportedDtype
        If booleans are subtracted, which NumPy refuses too.
    """
    dtype = joint_dtype(left.dtype, right.dtype)
    if dtype == np.bool_ and (alpha < 0 or beta < 0):
        raise UnsupportedDtype(
            "a difference of booleans is not defined: write A != B for the entries that differ, "
            "or A.astype(int) - B.astype(int)"
        )
    a, b = canonical_rows(left), canonical_rows(right)
    bound = max(largest(one.executor, one.data) for one in (a, b))
    if not same_pattern(a, b) and fits_double(a.executor, 2 * bound):
        from .arithmetic import add as sum_in_double

        made = sum_in_double(in_double(a), in_double(b), alpha, beta)
        return of_pattern(made, from_double(made.data, dtype))
    pair = paired(a, b)
    first, second = (values.astype(np.int64) for values in (pair.first, pair.second))
    return pair.matrix(narrowed(alpha * first + beta * second, dtype))


def both_exact(left: Any, right: Any) -> bool:
    """Return whether both matrices store integers or booleans."""
    return is_exact(left.dtype) and is_exact(right.dtype)


def with_joint_indices(left: Csr, right: Csr) -> tuple[Csr, Csr]:
    """Return two matrices with the wider index dtype of the two."""
    wide = max((left.index_dtype, right.index_dtype), key=lambda dtype: dtype.itemsize)
    return with_index_dtype(left, wide), with_index_dtype(right, wide)


base.exact_product.provide(applied)
