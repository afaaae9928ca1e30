"""Products of sparse matrices whose rows fit into shared memory: groups of lanes with hash tables.

A symbolic phase counts the columns of each row, a numeric one adds up values at their sorted
columns. Rows are assigned to groups of 8, 32 and 128 lanes by their size first. Sums are in the
order of the left row: results do not depend on how rows were assigned.

Y. Nagasaka, A. Nukada, S. Matsuoka, High-performance and memory-saving sparse general matrix-matrix
multiplication for NVIDIA Pascal GPU, ICPP 2017, for groups by row size and tables in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtypes import VALUE_DTYPES, index_dtype
from ...core.executor import Array
from ...core.operations import scan
from ...core.store import Key
from ..simt import kernels as simt
from . import launch
from .base import GpuExecutor

#: Columns that a row of the product may have.
LONGEST = simt.PRODUCT_LANES[-1] * simt.PRODUCT_CELLS

#: Products of a row that groups of 8 and of 32 lanes count at most: their tables cannot be full.
COUNTED = tuple(lanes * simt.PRODUCT_CELLS for lanes in simt.PRODUCT_LANES[:2])
#: Columns of a row that they fill in at most. The values of R (A P) at 128^3 took 1.07 milliseconds
#: up to full tables, 1.21 up to 5/8 of them and 1.92 up to 5/16 (H200, 23 November).
FILLED = tuple(limit * 7 // 8 for limit in COUNTED)

_LONGEST: Key[int] = Key("longest row of a right factor")
_GROUPS: Key[tuple[list[int], Array, int]] = Key("groups of lanes for new values of a product")

#: Where the numbers are that the host reads: rows by products, columns without a cell, rows by
#: columns, the longest row.
BY_PRODUCTS, FULL, BY_COLUMNS, LENGTH, NUMBERS = 0, 3, 4, 7, 8


def can_multiply(A: Any, B: Any) -> bool:
    """Return whether the groups can compute a product, as far as is known before it is counted."""
    return A.data.dtype in map(np.dtype, VALUE_DTYPES) and B.has_canonical_format


def multiplied(executor: GpuExecutor, A: Any, B: Any) -> tuple[Array, Array, Array] | None:
    """Return indptr, indices and data of a product; None if a row of it is too long."""
    m, dtype, value = A.shape[0], A.indices.dtype, A.data.dtype
    numbers = executor.xp.zeros(NUMBERS, np.int32)
    rows = executor.allocate((len(simt.PRODUCT_LANES) * m,), dtype)
    known = _LONGEST in B._pattern
    if not known:
        find_longest(executor, B.indptr, numbers[LENGTH:])
    pattern = (A.indptr, A.indices, B.indptr)
    _deal(executor, m, pattern, COUNTED, rows, numbers[BY_PRODUCTS:], value, 0)
    found = executor.to_host(numbers)
    longest = B._pattern.get(_LONGEST, lambda: int(found[LENGTH]))
    if index_dtype(A.nnz * longest, dtype) != dtype:
        return None
    lengths = executor.allocate((m,), dtype)
    for lanes, count, chosen in _groups(found[BY_PRODUCTS:], rows, m):
        _launch(
            executor,
            simt.count_product,
            lanes,
            (count, spread(lanes, longest), chosen, A.indptr, A.indices, B.indptr, B.indices),
            (lengths, numbers[FULL:]),
            value,
        )
    indptr = executor.allocate((m + 1,), dtype)
    executor.run(scan.pointers, lengths, indptr)
    _deal(executor, m, (indptr, None, None), FILLED, rows, numbers[BY_COLUMNS:], value, 1)
    found, last = executor.to_host_together(numbers, indptr[m:])
    if found[FULL]:
        return None
    entries = int(last[0])
    indices, data = (executor.allocate((entries,), d) for d in (dtype, value))
    for lanes, count, chosen in _groups(found[BY_COLUMNS:], rows, m):
        _launch(
            executor,
            simt.fill_product,
            lanes,
            (count, spread(lanes, longest), chosen, *_entries(A), *_entries(B), indptr),
            (indices, data),
            value,
        )
    return indptr, indices, data


def new_values(executor: GpuExecutor, A: Any, B: Any, C: Any) -> Array | None:
    """Return the values of the product with the pattern of ``C``; None if a row is too long.

    What is found of the patterns is stored with them: later calls launch kernels alone.
    """
    m, value = C.shape[0], C.data.dtype
    longest = B._pattern.get(_LONGEST, lambda: _longest(executor, B))
    counts, rows, columns = C._pattern.get(_GROUPS, lambda: _assigned(executor, C))
    if columns > LONGEST:
        return None
    data = executor.allocate((C.nnz,), value)
    for lanes, count, chosen in _groups(counts, rows, m):
        _launch(
            executor,
            simt.refill_product,
            lanes,
            (count, spread(lanes, longest), chosen, *_entries(A), *_entries(B), C.indptr),
            (C.indices, data),
            value,
        )
    return data


def spread(lanes: int, longest: int) -> int:
    """Return how many lanes of a group read a right row: enough for the longest, or all."""
    return min(lanes, 1 << max(longest - 1, 0).bit_length())


def find_longest(executor: GpuExecutor, indptr: Array, found: Array) -> None:
    """Store the length of the longest row, in place of what is smaller."""
    m = int(indptr.size) - 1
    blocks = min(launch.row_blocks(m, simt.longest_row.block), 8 * executor.device.multiprocessors)
    given = (m, indptr, found)
    executor.launch_simt(simt.longest_row, blocks, given, np.float32, indptr.dtype)


def _longest(executor: GpuExecutor, matrix: Any) -> int:
    found = executor.xp.zeros(1, np.int32)
    find_longest(executor, matrix.indptr, found)
    return int(executor.to_host(found)[0])


def _assigned(executor: GpuExecutor, C: Any) -> tuple[list[int], Array, int]:
    """Return how many rows of a product each size of groups takes, which ones, and the longest."""
    m, dtype = C.shape[0], C.indptr.dtype
    numbers = executor.xp.zeros(NUMBERS, np.int32)
    rows = executor.allocate((len(simt.PRODUCT_LANES) * m,), dtype)
    find_longest(executor, C.indptr, numbers[LENGTH:])
    pattern = (C.indptr, None, None)
    _deal(executor, m, pattern, FILLED, rows, numbers[BY_COLUMNS:], C.data.dtype, 1)
    found = executor.to_host(numbers)
    counts = [int(count) for count in found[BY_COLUMNS:LENGTH]]
    return counts, rows, int(found[LENGTH])


def _deal(
    executor: GpuExecutor,
    m: int,
    pattern: tuple[Array, Array | None, Array | None],
    limits: tuple[int, ...],
    rows: Array,
    counts: Array,
    value: Any,
    by_length: int,
) -> None:
    blocks = launch.row_blocks(m, simt.deal_rows.block)
    given = (m, *pattern, *limits, rows, counts)
    index = rows.dtype
    executor.launch_simt(simt.deal_rows, blocks, given, value, index, BY_LENGTH=by_length)


def _groups(counts: Any, rows: Array, m: int) -> Iterator[tuple[int, int, Array | None]]:
    """Yield lanes, how many rows they take, and which: None for all rows in their order."""
    for at, lanes in enumerate(simt.PRODUCT_LANES):
        count = int(counts[at])
        if count:
            yield lanes, count, None if count == m else rows[at * m : at * m + count]


def _launch(
    executor: GpuExecutor,
    kernel: Any,
    lanes: int,
    given: tuple[Any, ...],
    made: tuple[Array, ...],
    value: Any,
) -> None:
    blocks = launch.row_blocks(given[0], kernel.block // lanes)
    index = given[3].dtype
    executor.launch_simt(kernel, blocks, (*given, *made), value, index, LANES=lanes)


def _entries(matrix: Any) -> tuple[Array, Array, Array]:
    return matrix.indptr, matrix.indices, matrix.data
