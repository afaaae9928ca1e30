"""Products of sparse matrices, one row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import spgemm as operations
from .rows import entries
from .table import Rows, kernel_of


def _terms(
    begin: Array, end: Array, indices: Array, values: Array, indptr: Array, others: Array, b: Array
) -> tuple[Array, Array, Array]:
    """Return rows, columns and values of all products of matching entries."""
    row, e = entries(begin, end)
    middle = indices[e]
    of_row, f = entries(indptr[middle], indptr[middle + 1])
    return row[of_row], others[f].astype(np.int64), values[e[of_row]] * b[f]


def _merged(rows: int, terms: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Return the number of columns per row, the columns, and the summed terms."""
    row, column, values = terms
    order = np.lexsort((column, row))
    row, column, values = row[order], column[order], values[order]
    new = np.ones(row.size, bool)
    new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    sums = np.zeros(np.count_nonzero(new), values.dtype)
    np.add.at(sums, np.cumsum(new) - 1, values)
    return np.bincount(row[new], minlength=rows), column[new], sums


@kernel_of(operations.count, Rows)
def count(
    executor: Executor,
    A: Rows,
    other_indptr: Array,
    other_indices: Array,
    other_values: Array,
    lengths: Array,
    total: Array,
) -> None:
    """Count the columns of each row of the product."""
    terms = _terms(A.begin, A.end, A.indices, A.values, other_indptr, other_indices, other_values)
    lengths[:] = _merged(A.begin.size, terms)[0]
    total[0] = lengths.sum(dtype=np.int64)


@kernel_of(operations.fill, Rows)
def fill(
    executor: Executor,
    A: Rows,
    other_indptr: Array,
    other_indices: Array,
    other_values: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Store the columns and sums of each row of the product."""
    terms = _terms(A.begin, A.end, A.indices, A.values, other_indptr, other_indices, other_values)
    _, new_indices[:], new_values[:] = _merged(A.begin.size, terms)


@kernel_of(operations.refill, Rows)
def refill(
    executor: Executor,
    A: Rows,
    other_indptr: Array,
    other_indices: Array,
    other_values: Array,
    target: Array,
    places: Array,
    new_values: Array,
) -> None:
    """Store the sums of each row at the known columns."""
    terms: Any = _terms(
        A.begin, A.end, A.indices, A.values, other_indptr, other_indices, other_values
    )
    new_values[:] = _merged(A.begin.size, terms)[2]
