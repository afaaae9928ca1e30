"""Operations on the structure of matrices: sort entries, then sum duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import index_dtype
from ...core.executor import Array, Executor
from ...core.operations import structure as operations
from .matrix import majors
from .table import kernel


def pointers(row: Array, rows: int, dtype: np.dtype[Any]) -> Array:
    """Return the row pointers of a sorted array of rows."""
    return np.searchsorted(row, np.arange(rows + 1)).astype(dtype)


def runs(row: Array, column: Array) -> tuple[Array, Array]:
    """Return the start of each run of equal positions, and the run of each entry.

    A combined key (row times columns, plus column) would overflow for very large shapes.
    """
    differs = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    new = np.concatenate([[True], differs])[: row.size]
    return np.flatnonzero(new), np.cumsum(new) - 1


def compress(
    shape: tuple[int, int], row: Array, column: Array, data: Array, *wide: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of unsorted entries; duplicates are summed."""
    order = np.lexsort((column, row))
    row, column, data = row[order], column[order], data[order]
    first, place = runs(row, column)
    sums = np.zeros(first.size, data.dtype)
    np.add.at(sums, place, data)  # in order, so that all executors give the same bits
    dtype = index_dtype(max(first.size, *shape), *wide)
    return pointers(row[first], shape[0], dtype), column[first].astype(dtype), sums


@kernel(operations.coo_to_csr)
def coo_to_csr(executor: Executor, A: Any) -> tuple[Array, Array, Array]:
    """Sort the entries by row; within a row they keep their order."""
    order = np.argsort(A.row, kind="stable")
    return pointers(A.row[order], A.shape[0], A.row.dtype), A.col[order], A.data[order]


@kernel(operations.csr_sort)
def csr_sort(executor: Executor, A: Any) -> tuple[Array, Array, Array]:
    """Sort the entries by row and column; duplicates keep their order."""
    order = np.lexsort((A.indices, majors(A.indptr)))
    return A.indices[order], A.data[order], order.astype(A.indices.dtype)


@kernel(operations.csr_sum_duplicates)
def csr_sum_duplicates(executor: Executor, A: Any) -> tuple[Array, Array, Array]:
    """Sum duplicate entries; a sum of 0 is kept."""
    return compress(A.shape, majors(A.indptr), A.indices, A.data, A.indices.dtype)


@kernel(operations.csr_transpose)
def csr_transpose(executor: Executor, A: Any) -> tuple[Array, Array, Array, Array]:
    """Sort the entries by column; within a column they are already sorted by row."""
    dtype = A.indices.dtype
    order = np.argsort(A.indices, kind="stable")
    indptr = pointers(A.indices[order], A.shape[1], dtype)
    return indptr, majors(A.indptr)[order].astype(dtype), A.data[order], order.astype(dtype)


def products_of(A: Any, B: Any) -> tuple[Array, Array, Array]:
    """Return rows, columns and values of all products of matching entries."""
    lengths = np.diff(B.indptr)[A.indices]
    of_A = np.repeat(np.arange(A.indices.size), lengths)
    within_row = np.arange(of_A.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    of_B = B.indptr[A.indices[of_A]] + within_row
    row = majors(A.indptr)[of_A].astype(np.int64)
    return row, B.indices[of_B], A.data[of_A] * B.data[of_B]


@kernel(operations.csr_matmul)
def csr_matmul(executor: Executor, A: Any, B: Any) -> tuple[Array, Array, Array]:
    """Multiply every entry (i, p) of A by every entry (p, j) of B, and sum at (i, j)."""
    wide = A.indices.dtype, B.indices.dtype
    return compress((A.shape[0], B.shape[1]), *products_of(A, B), *wide)


@kernel(operations.csr_matmul_values)
def csr_matmul_values(executor: Executor, A: Any, B: Any, C: Any) -> tuple[Array]:
    """Find the position of every term, and sum the terms in order."""
    row, column, data = products_of(A, B)
    used, number = np.unique(C.indices, return_inverse=True)  # fewer columns: keys stay below 2^63
    places = majors(C.indptr).astype(np.int64) * used.size + number
    values = np.zeros(C.nnz, C.dtype)
    terms = row * used.size + np.searchsorted(used, column)
    np.add.at(values, np.searchsorted(places, terms), data)
    return (values,)


@kernel(operations.csr_add)
def csr_add(
    executor: Executor, A: Any, B: Any, alpha: complex, beta: complex
) -> tuple[Array, Array, Array]:
    """Concatenate the scaled entries of both matrices, and sum duplicates."""
    scalar = A.dtype.type
    return compress(
        A.shape,
        np.concatenate([majors(A.indptr), majors(B.indptr)]),
        np.concatenate([A.indices, B.indices]),
        np.concatenate([scalar(alpha) * A.data, scalar(beta) * B.data]),
        A.indices.dtype,
        B.indices.dtype,
    )
