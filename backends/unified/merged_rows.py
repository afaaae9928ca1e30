"""Sums and products of sparse matrices with sorted rows, by merging rows one at a time.

One pass counts the columns of each row and a second pass fills them in, so the result is the only
allocation. The operations have functors for every compiled backend: a backend without faster
kernels calls the functions of this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import index_dtype
from ...core.executor import Array, Executor
from ...core.operation import Operation
from ...core.operations import rows, scan, spgemm
from ...core.store import Key

#: Merge the rows of a product only if the longest row of either factor has at most this many
#: entries. Every column of the product visits all rows that meet, so the work grows with the square
#: of the row length.
LONGEST = 96

_LENGTH: Key[int] = Key("length of the longest row")


def can_multiply(A: Any, B: Any) -> bool:
    """Return whether rows of B can be merged and are few and short enough to pay."""
    return max(map(_longest, (A, B))) <= LONGEST and B.has_canonical_format


def _longest(A: Any) -> int:
    """Return the length of the longest row, computed on the device of the matrix."""
    return A._pattern.get(_LENGTH, lambda: _found_length(A))


def _found_length(A: Any) -> int:
    found = A.executor.allocate((1,), np.int64)
    A.executor.run(rows.longest, *_bounds(A), found)
    return int(A.executor.to_host(found)[0])


def product(executor: Executor, A: Any, B: Any) -> tuple[Array, Array, Array] | None:
    """Return indptr, indices and data of ``A B``; None if the index dtype cannot count entries."""
    pair = (*_bounds(A), A.indices, A.data, B.indptr, B.indices, B.data)
    return _filled(executor, A, spgemm.count, pair, spgemm.fill, pair)


def new_values(executor: Executor, A: Any, B: Any, C: Any) -> Array:
    """Return the values of ``A B`` at the entries of ``C``, which has sorted rows."""
    data = executor.allocate((C.nnz,), C.data.dtype)
    pair = (*_bounds(A), A.indices, A.data, B.indptr, B.indices, B.data)
    executor.run(spgemm.refill, *pair, C.indptr, C.indices, data)
    return data


def can_add(A: Any, B: Any) -> bool:
    """Return whether rows can be merged: sorted, without duplicates, and with one index dtype."""
    same = A.indices.dtype == B.indices.dtype
    return same and A.has_canonical_format and B.has_canonical_format


def total(
    executor: Executor, A: Any, B: Any, alpha: complex, beta: complex
) -> tuple[Array, Array, Array] | None:
    """Return indptr, indices and data of ``alpha A + beta B``; None as in :func:`product`."""
    patterns = (*_bounds(A), A.indices, *_bounds(B), B.indices)
    entries = (*_bounds(A), A.indices, A.data, *_bounds(B), B.indices, B.data, alpha, beta)
    return _filled(executor, A, rows.count_union, patterns, rows.add, entries)


def _bounds(matrix: Any) -> tuple[Array, Array]:
    return matrix.indptr[:-1], matrix.indptr[1:]


def _filled(
    executor: Executor,
    A: Any,
    count: Operation,
    counted: tuple[Any, ...],
    fill: Operation,
    filled: tuple[Any, ...],
) -> tuple[Array, Array, Array] | None:
    m, dtype = A.shape[0], A.indices.dtype
    lengths, entries = executor.allocate((m,), dtype), executor.allocate((1,), np.int64)
    indptr = executor.allocate((m + 1,), dtype)
    executor.run(count, *counted, lengths, entries)
    # Launch this before waiting for the total: the device stays busy until the host continues.
    executor.run(scan.pointers, lengths, indptr)
    nnz = int(executor.to_host(entries)[0])
    if index_dtype(nnz, dtype) != dtype:
        return None
    indices, data = (executor.allocate((nnz,), d) for d in (dtype, A.data.dtype))
    executor.run(fill, *filled, indptr, indices, data)
    return indptr, indices, data
