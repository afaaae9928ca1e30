"""Operations on the structure of matrices: sorting, and computing new rows, on the device.

NumPy does three operations on the host, with copies to and from the device: sums of unsorted
matrices, products with long rows on GPUs, and products with far more columns than entries on CPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index_dtype
from ...core.operations import scan
from ...core.operations import structure as operations
from ..cpu.places import can_have_places
from ..simt import kernels as simt
from ..unified import merged_rows
from . import buckets, new_rows
from .ordering import bucketed, by_index, by_value, ordered, reordered, rows_of
from .table import kernel

if TYPE_CHECKING:
    from .array import UsmArray
    from .executor import DpcppExecutor

Host = np.ndarray[Any, np.dtype[Any]]


def _host(executor: DpcppExecutor, A: Any, *names: str) -> tuple[Host, ...]:
    return tuple(executor.to_host(getattr(A, name)) for name in names)


def _device(executor: DpcppExecutor, *arrays: Host) -> tuple[UsmArray, ...]:
    return tuple(executor.from_host(array) for array in arrays)


def _rows(indptr: Host) -> Host:
    """Return the row of each entry."""
    return np.repeat(np.arange(indptr.size - 1, dtype=np.int64), np.diff(indptr))


def _indptr(row: Host, rows: int, dtype: np.dtype[Any]) -> Host:
    """Return row pointers for entries in any order."""
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows)[:rows], out=indptr[1:])
    return indptr.astype(dtype)


def _merged(
    shape: tuple[int, int], row: Host, column: Host, data: Host, wide: np.dtype[Any]
) -> tuple[Host, Host, Host]:
    """Return indptr, indices and data sorted by rows; duplicates are summed in order."""
    order = np.lexsort((column, row))  # a combined key of row and column could overflow
    rows, columns = row[order], column[order]
    differs = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    new = np.concatenate(([True], differs))[: rows.size]
    first = np.flatnonzero(new)
    sums = np.zeros(first.size, data.dtype)
    np.add.at(sums, np.cumsum(new) - 1, data[order])
    kept = order[first]
    dtype = index_dtype(max(first.size, *shape), wide)
    return _indptr(row[kept], shape[0], dtype), column[kept].astype(dtype), sums


@kernel(operations.coo_to_csr)
def coo_to_csr(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, ...]:
    """Sort the entries by row; within a row they keep their order."""
    if executor.one_item_groups:
        return buckets.rows_of_coordinates(executor, A)
    order, indptr = bucketed(executor, A.row, A.shape[0])
    return indptr, *reordered(executor, order, A.col, A.data)


@kernel(operations.csr_sort)
def csr_sort(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, ...]:
    """On a CPU, sort each row; on a GPU, sort by column, then stably by row."""
    if executor.one_item_groups:
        return new_rows.sort(executor, A)
    by_column = ordered(executor, A.indices, A.shape[1])
    order = ordered(executor, rows_of(executor, A), A.shape[0], by_column)
    return *reordered(executor, order, A.indices, A.data), order


@kernel(operations.csr_sum_duplicates)
def csr_sum_duplicates(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, ...]:
    """Sum adjacent duplicate entries."""
    m, dtype = A.shape[0], A.indices.dtype
    lengths, indptr = (executor.allocate((m + more,), dtype) for more in (0, 1))
    by_index(executor, simt.count_places, m, (m, A.indptr, A.indices, lengths))
    executor.run(scan.pointers, lengths, indptr)
    count = int(executor.to_host(indptr[m:])[0])
    indices, data = executor.allocate((count,), dtype), executor.allocate((count,), A.data.dtype)
    merging = (m, A.indptr, A.indices, A.data, indptr, indices, data)
    by_value(executor, simt.merge_places, m, merging)
    return indptr, indices, data


@kernel(operations.csr_transpose)
def csr_transpose(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, ...]:
    """Sort the entries by column; within a column they are already sorted by row."""
    if executor.one_item_groups:
        return buckets.columns_of_rows(executor, A)
    order, indptr = bucketed(executor, A.indices, A.shape[1])
    return indptr, *reordered(executor, order, rows_of(executor, A), A.data), order


@kernel(operations.csr_matmul)
def csr_matmul(executor: DpcppExecutor, A: Any, B: Any) -> tuple[UsmArray, ...]:
    """Sum rows on a CPU, or merge short rows; otherwise list and sum all products of entries."""
    if executor.one_item_groups and can_have_places(B):
        return new_rows.product(executor, A, B)
    result = merged_rows.product(executor, A, B) if merged_rows.can_multiply(A, B) else None
    if result is not None:
        return result
    ptr_a, indices_a, data_a = _host(executor, A, "indptr", "indices", "data")
    ptr_b, indices_b, data_b = _host(executor, B, "indptr", "indices", "data")
    count = np.diff(ptr_b).astype(np.int64)[indices_a]
    of_a = np.repeat(np.arange(indices_a.size), count)
    number = np.arange(of_a.size) - np.repeat(np.cumsum(count) - count, count)
    of_b = ptr_b[indices_a[of_a]] + number
    product = _merged(
        (A.shape[0], B.shape[1]),
        _rows(ptr_a)[of_a],
        indices_b[of_b],
        data_a[of_a] * data_b[of_b],
        np.result_type(indices_a, indices_b),
    )
    return _device(executor, *product)


@kernel(operations.csr_matmul_values)
def csr_matmul_values(executor: DpcppExecutor, A: Any, B: Any, C: Any) -> tuple[UsmArray]:
    """Sum the terms of each position, on a GPU only for short rows; otherwise multiply anew."""
    if executor.one_item_groups and can_have_places(B, C):
        return (new_rows.new_values(executor, A, B, C),)
    if merged_rows.can_multiply(A, B) and C.has_canonical_format:
        return (merged_rows.new_values(executor, A, B, C),)
    return (csr_matmul(executor, A, B)[2],)


@kernel(operations.csr_add)
def csr_add(
    executor: DpcppExecutor, A: Any, B: Any, alpha: complex, beta: complex
) -> tuple[UsmArray, ...]:
    """Merge sorted rows; otherwise concatenate the entries of both and sum duplicates."""
    result = None
    if executor.one_item_groups and A.indices.dtype == B.indices.dtype:
        result = new_rows.total(executor, A, B, alpha, beta)
    elif merged_rows.can_add(A, B):
        result = merged_rows.total(executor, A, B, alpha, beta)
    if result is not None:
        return result
    scalar = np.dtype(A.data.dtype).type
    ptr_a, indices_a, data_a = _host(executor, A, "indptr", "indices", "data")
    ptr_b, indices_b, data_b = _host(executor, B, "indptr", "indices", "data")
    total = _merged(
        A.shape,
        np.concatenate((_rows(ptr_a), _rows(ptr_b))),
        np.concatenate((indices_a, indices_b)),
        np.concatenate((scalar(alpha) * data_a, scalar(beta) * data_b)),
        np.result_type(indices_a, indices_b),
    )
    return _device(executor, *total)
