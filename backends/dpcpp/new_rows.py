"""Products, sums and sorting of sparse rows on CPU devices; a work-group is one work-item.

Rows of products are summed in a dense array over all columns, one per work-group. They are stored
as they are computed, and moved to the result once its size is known. If the terms might not fit
into memory, a first pass counts the rows and a second one computes them. Sorted rows of two
matrices are merged twice: to count and to fill in. Rows are sorted one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index_dtype
from ...core.operations import scan
from ..unified.wrappers import SimtKernel
from . import templates
from .ordering import parts_of

if TYPE_CHECKING:
    from .array import UsmArray
    from .executor import DpcppExecutor

#: Upper bound, in bytes, of rows that are stored before the size of the result is known.
ROWS_AT_ONCE = 1 << 31

#: Spare columns of a row beyond its terms, because ``column_sums`` reads in groups.
SPARE_COLUMNS = 17

#: Columns that one word represents, on each of the three levels of bits.
_LEVELS = (64, 4096, 262144)


def product(executor: DpcppExecutor, A: Any, B: Any) -> tuple[UsmArray, ...]:
    """Return indptr, indices and data of ``A B``, in int64 if int32 cannot count the entries."""
    (m, _), n, index = A.shape, B.shape[1], A.indices.dtype
    before, terms, longest = _terms(executor, A, B)
    parts = _parts(executor, terms)
    all_begin = n <= terms
    room = parts * (longest + SPARE_COLUMNS) if all_begin else 0
    memory = (
        executor.allocate((parts * n,), A.data.dtype),
        executor.allocate((parts * sum(n // level + 1 for level in _LEVELS),), np.int64),
        executor.allocate((room,), index),
    )
    summing = (m, n, *_arrays(A, B), before, longest, int(all_begin), *memory)
    at_once = terms * (A.data.dtype.itemsize + index.itemsize) <= ROWS_AT_ONCE
    columns = executor.allocate((terms,), index) if at_once else None
    values = executor.allocate((terms,), A.data.dtype) if at_once else None
    lengths, made = executor.allocate((m,), index), executor.allocate((parts,), np.int64)
    _launch(executor, templates.make_product, parts, A, (*summing, lengths, columns, values, made))
    nnz = int(executor.to_host(made).sum())
    if index_dtype(nnz, index) != index:
        return product(executor, _wide(A), _wide(B))
    indptr, *new = _new_arrays(executor, A, lengths, nnz)
    if at_once:
        moving = (m, before, indptr, columns, values, *new)
        _launch(executor, templates.move_product, parts, A, moving)
    else:
        _launch(executor, templates.fill_product, parts, A, (*summing, indptr, *new))
    return indptr, *new


def new_values(executor: DpcppExecutor, A: Any, B: Any, C: Any) -> UsmArray:
    """Return the values of ``A B`` at the positions of ``C``, which contain all terms."""
    (m, n), parts = C.shape, _parts(executor, A.nnz + C.nnz)
    data = executor.allocate((C.nnz,), C.data.dtype)
    sums = executor.allocate((parts * n,), C.data.dtype)
    arguments = (m, n, *_arrays(A, B), C.indptr, C.indices, sums, data)
    _launch(executor, templates.value_product, parts, A, arguments)
    return data


def total(
    executor: DpcppExecutor, A: Any, B: Any, alpha: complex, beta: complex
) -> tuple[UsmArray, ...] | None:
    """Return indptr, indices and data of ``alpha A + beta B``; None if rows are not sorted."""
    m, index = A.shape[0], A.indices.dtype
    parts = parts_of(executor, A.nnz + B.nnz + m)
    lengths, made = executor.allocate((m,), index), executor.allocate((parts,), np.int64)
    counting = (m, A.indptr, A.indices, B.indptr, B.indices, lengths, made)
    _launch(executor, templates.count_sum, parts, A, counting)
    counts = executor.to_host(made)
    if counts.min() < 0:
        return None
    nnz = int(counts.sum())
    if index_dtype(nnz, index) != index:
        return total(executor, _wide(A), _wide(B), alpha, beta)
    new = _new_arrays(executor, A, lengths, nnz)
    _launch(executor, templates.fill_sum, parts, A, (m, *_arrays(A, B), alpha, beta, *new))
    return new


def sort(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, UsmArray, UsmArray]:
    """Return indices and data of sorted rows, and the old position of each entry."""
    m, nnz, index = A.shape[0], A.nnz, A.indices.dtype
    indices, order, *spare = (executor.allocate((nnz,), index) for _ in range(4))
    data = executor.allocate((nnz,), A.data.dtype)
    arguments = (m, A.indptr, A.indices, A.data, indices, data, order, *spare)
    _launch(executor, templates.sort_rows_cpu, parts_of(executor, nnz + m), A, arguments)
    return indices, data, order


def _new_arrays(
    executor: DpcppExecutor, A: Any, lengths: UsmArray, nnz: int
) -> tuple[UsmArray, UsmArray, UsmArray]:
    """Return the row pointers for the given lengths, and new arrays for the entries."""
    index = lengths.dtype
    indptr = executor.allocate((lengths.size + 1,), index)
    executor.run(scan.pointers, lengths, indptr)
    return indptr, executor.allocate((nnz,), index), executor.allocate((nnz,), A.data.dtype)


def _terms(executor: DpcppExecutor, A: Any, B: Any) -> tuple[UsmArray, int, int]:
    """Return the terms before each row, their total number, and the largest number per row."""
    m = A.shape[0]
    parts = parts_of(executor, m)
    work, longest = (executor.allocate((size,), np.int64) for size in (m, parts))
    before = executor.allocate((m + 1,), np.int64)
    counting = (m, A.indptr, A.indices, B.indptr, work, longest)
    _launch(executor, templates.count_product_terms, parts, A, counting)
    executor.run(scan.pointers, work, before)
    most, last = executor.transfer(longest, before[m:]).read()
    return before, int(last[0]), int(most.max())


def _parts(executor: DpcppExecutor, work: int) -> int:
    """Return the number of work-items, at most one per core because each has a dense array."""
    return min(parts_of(executor, work), executor.facts.units)


def _wide(A: Any) -> Any:
    indices, indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A._from_arrays(A.executor, A.shape, A.data, indices, indptr)


def _arrays(A: Any, B: Any) -> tuple[UsmArray, ...]:
    return A.indptr, A.indices, A.data, B.indptr, B.indices, B.data


def _launch(
    executor: DpcppExecutor, step: SimtKernel, parts: int, A: Any, arguments: tuple[Any, ...]
) -> None:
    value, index = A.data.dtype, A.indices.dtype
    executor.launch(step, templates.CPU_NEW_ROWS, (parts, 1), arguments, value, index)
