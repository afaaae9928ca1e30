"""Matrix times block of vectors.

Each format lists the rows and columns of its entries, and one function adds up the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.executor import Array, Executor
from ...core.long_sums import LONG, in_double_if_long, rounded_to
from ...core.operations import matrix as operations
from .sums import by_place
from .table import kernel
from .vector import store


def majors(indptr: Array) -> Array:
    """Return the row of each entry of compressed rows, or the column for compressed columns."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def apply(
    shape: tuple[int, int],
    row: Array,
    column: Array,
    data: Array,
    x: Array,
    y: Array,
    alpha: complex,
    beta: complex,
) -> None:
    """Set y_row = alpha (the sum of data x_column over the entries of the row) + beta y_row."""
    order = np.argsort(row, kind="stable")
    row, column, data = row[order], column[order], data[order]
    for c in range(x.shape[1]):
        sums = np.zeros(shape[0], y.dtype)
        first, of_row = by_place(data * x[column, c], row)
        sums[row[first]] = of_row
        store(y[:, c], sums, alpha, beta)


@kernel(operations.csr_spmv)
def csr_spmv(executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Entry ``e`` of row ``i``, ``indptr[i] <= e < indptr[i + 1]``, is in column ``indices[e]``."""
    data = A.data.astype(A.dtype, copy=False)  # values may be stored in a lower precision
    apply(A.shape, majors(A.indptr), A.indices, data, x, y, alpha, beta)


@kernel(operations.csc_spmv)
def csc_spmv(executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Entry ``e`` of column ``j``, ``indptr[j] <= e < indptr[j + 1]``, is in row ``indices[e]``."""
    apply(A.shape, A.indices, majors(A.indptr), A.data, x, y, alpha, beta)


@kernel(operations.csr_spmv_transposed)
def csr_spmv_transposed(
    executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Entry ``e`` of row ``i`` is in row ``indices[e]`` and column ``i`` of the transpose."""
    apply(A.shape[::-1], A.indices, majors(A.indptr), A.data, x, y, alpha, beta)


@kernel(operations.coo_spmv)
def coo_spmv(executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Entry ``e`` is at ``(row[e], col[e])``."""
    apply(A.shape, A.row, A.col, A.data, x, y, alpha, beta)


@kernel(operations.ell_spmv)
def ell_spmv(executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Entry ``j`` of row ``i`` is at ``[j, i]``; an index of -1 is padding."""
    j, i = np.nonzero(A.indices >= 0)
    apply(A.shape, i, A.indices[j, i], A.data[j, i], x, y, alpha, beta)


@kernel(operations.sellp_spmv)
def sellp_spmv(
    executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Find entry ``j`` of lane ``l`` of slice ``s`` at ``slice_ptr[s] + j * slice_size + l``."""
    place = np.flatnonzero(A.indices >= 0)
    s = majors(A.slice_ptr)[place]
    lane = (place - A.slice_ptr[s]) % A.slice_size
    row = A.permutation[s * A.slice_size + lane]
    apply(A.shape, row, A.indices[place], A.data[place], x, y, alpha, beta)


@kernel(operations.bsr_spmv)
def bsr_spmv(executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Element ``(i, j)`` of block ``b`` of block row ``I`` is ``(I r + i, indices[b] c + j)``."""
    blocks, r, c = A.data.shape
    row = (majors(A.indptr) * r)[:, None, None] + np.arange(r)[:, None]
    column = (A.indices * c)[:, None, None] + np.arange(c)
    row, column = (np.broadcast_to(a, (blocks, r, c)).ravel() for a in (row, column))
    apply(A.shape, row, column, A.data.ravel(), x, y, alpha, beta)


@kernel(operations.hybrid_spmv)
def hybrid_spmv(
    executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Add the product with the Coo part to that with the Ell part."""
    ell_spmv(executor, A.ell, x, y, alpha, beta)
    coo_spmv(executor, A.coo, x, y, alpha, 1.0)


@kernel(operations.dense_spmv)
def dense_spmv(
    executor: Executor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Use NumPy's product; sum long rows of single precision in double precision."""
    if A.shape[1] > LONG:
        product = in_double_if_long(executor, A.data) @ x
        store(y, rounded_to(executor, product, np.result_type(A.dtype, x.dtype)), alpha, beta)
    else:
        store(y, A.data @ x, alpha, beta)


@kernel(operations.csr_diagonal)
def csr_diagonal(executor: Executor, A: Any, d: Array) -> None:
    """Set d_i = the sum of the entries stored at (i, i)."""
    row = majors(A.indptr)
    on = row == A.indices
    first, sums = by_place(A.data[on], row[on])
    d[:] = 0
    d[row[on][first]] = sums
