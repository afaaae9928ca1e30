"""Operations on the structure of matrices: radix sorts, sorts of short rows, stable sorts of long.

``sparse_products`` computes products after sorting the rows of the right factor; the order is
cached with its pattern and does not change the order of sums. If the right factor has duplicates,
all terms are expanded, sorted and summed in this order instead. Products therefore repeat bit for
bit, for all dtypes and index widths; cuSPARSE (through CuPy) has neither int64 indices nor a fixed
order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import index_dtype
from ...core.executor import Array
from ...core.operations import structure as operations
from ...core.small_values import entry_products, values_times
from ..simt import kernels as simt
from ..unified import merged_rows
from . import launch, radix, sparse_products
from .base import GpuExecutor
from .scans import scan_pointers
from .table import kernel

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...core.formats.coo import Coo
    from ...core.formats.csr import Csr
    from ..unified.wrappers import SimtKernel
    from .types import LaunchOperand

#: Products of entries to expand at once: 2^26 take 3 GiB in float64, including sorting.
EXPANDED = 1 << 26

#: From this average number of entries per row on, a whole block sorts each row; an estimate. Rows
#: that a block cannot sort are sorted all at once.
OF_BLOCK = 32


def rows_of(executor: GpuExecutor, indptr: Array, count: int) -> Array:
    """Return the row of each of ``count`` entries, in 64 bits."""
    return radix.rows_of_entries(executor, indptr, count).astype(np.int64, copy=False)


def pointers(executor: GpuExecutor, row: Array, rows: int, dtype: DTypeLike) -> Array:
    """Return the row pointers of a sorted array of rows."""
    xp = executor.xp
    return xp.searchsorted(row, xp.arange(rows + 1, dtype=row.dtype)).astype(dtype)


def order_of(executor: GpuExecutor, row: Array, column: Array, columns: int) -> Array:
    """Return the order by row, then column, then position."""
    xp = executor.xp
    last = int(row.max()) if row.size else 0
    if (last + 1) * max(columns, 1) < 2**63:
        return xp.argsort(row.astype(np.int64) * columns + column, kind="stable")
    by_column = xp.argsort(column, kind="stable")
    return by_column[xp.argsort(row[by_column], kind="stable")]


def compress(
    executor: GpuExecutor, row: Array, column: Array, data: Array, columns: int
) -> tuple[Array, Array, Array]:
    """Return rows, columns and values with duplicate entries summed in order."""
    xp = executor.xp
    if row.size == 0:
        return row.astype(np.int64), column, data
    order = order_of(executor, row, column, columns)
    row, column = row[order], column[order]
    new = xp.ones(row.size, bool)
    new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    first = xp.flatnonzero(new).astype(np.int64)
    count = int(first.size)
    bounds = xp.append(first, xp.asarray([row.size], np.int64))
    target = xp.empty(count, data.dtype)
    executor.launch_simt(
        simt.segment_sum,
        launch.row_blocks(count),
        (count, bounds, order.astype(np.int64), data, target),
        data.dtype,
    )
    return row[first], column[first], target


def compressed(
    executor: GpuExecutor,
    shape: tuple[int, int],
    parts: list[tuple[Array, Array, Array]],
    *wide: np.dtype[Any],
) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of compressed entries that are given in parts, by rows."""
    xp = executor.xp
    row, column, data = (xp.concatenate(arrays) for arrays in zip(*parts, strict=True))
    dtype = index_dtype(max(int(data.size), *shape), *wide)
    return pointers(executor, row, shape[0], dtype), column.astype(dtype), data


def sorting_lanes(longest: int, rows: int, entries: int) -> int | None:
    """Return the number of lanes that sort a row together; None if the longest is too long.

    Examples
    --------
    >>> from wollemi.backends.gpu.structure import sorting_lanes
    >>> [sorting_lanes(longest, 1000, 40_000) for longest in (128, 129, 2048, 2049)]
    [8, 32, 128, None]
    >>> sorting_lanes(2048, 1000, 3000) is None
    True
    """
    for lanes in simt.SORTING_LANES:
        fits = longest <= simt.SORTED_CELLS * lanes
        if fits and (lanes < simt.SORTING_LANES[-1] or entries >= OF_BLOCK * rows):
            return lanes
    return None


class Buckets(NamedTuple):
    """Buckets of entries with equal keys.

    Attributes
    ----------
    indptr : array
        The first position of each key after sorting.
    places : array of int32
        For each entry, the number of entries with its key that were counted before it (any order).
    lanes : int or None
        Lanes that sort the entries of one key; None if there are too many entries.
    """

    indptr: Array
    places: Array
    lanes: int | None


def bucketed(executor: GpuExecutor, keys: Array, buckets: int, dtype: DTypeLike) -> Buckets:
    """Count the entries of each key."""
    count = int(keys.size)
    counts = executor.zeros((buckets + 1,), np.int32)  # the longest is stored at the end
    places = executor.allocate((count,), np.int32)
    if count:
        _by_index(executor, simt.count_with_places, count, dtype, keys, counts, places)
    indptr = executor.allocate((buckets + 1,), dtype)
    scan_pointers(executor, counts[:buckets], indptr)
    sparse_products.find_longest(executor, indptr, counts[buckets:])
    longest = int(executor.to_host(counts[buckets:])[0])
    return Buckets(indptr, places, sorting_lanes(longest, buckets, count))


def sorted_places(
    executor: GpuExecutor,
    buckets: Buckets,
    lanes: int,
    count: int,
    dtype: DTypeLike,
    place: Callable[[Array], None],
) -> tuple[Array, Array]:
    """Return the items of each entry, sorted by key and position, and this order.

    Parameters
    ----------
    lanes : int
        Lanes that sort the entries of one key.
    place : callable
        Stores both numbers of each entry in an array, at the entry's position.
    """
    numbers, order = (executor.allocate((count,), dtype) for _ in range(2))
    if count:
        entries = executor.allocate((2 * count,), dtype)
        place(entries)
        operands = (buckets.indptr, entries, numbers, order)
        keys = int(buckets.indptr.size) - 1
        _by_rows(executor, simt.sort_places, keys, lanes, dtype, *operands, LANES=lanes)
    return numbers, order


def _by_index(
    executor: GpuExecutor,
    kernel: SimtKernel,
    items: int,
    dtype: DTypeLike,
    *operands: LaunchOperand,
) -> None:
    """Launch a kernel for ``items`` items; their number is its first argument."""
    value = np.float32  # these kernels do not use values
    blocks = launch.row_blocks(items, kernel.block)
    executor.launch_simt(kernel, blocks, (items, *operands), value, dtype)


def _by_rows(
    executor: GpuExecutor,
    kernel: SimtKernel,
    rows: int,
    lanes: int,
    dtype: DTypeLike,
    *operands: LaunchOperand,
    **constants: int,
) -> None:
    """Launch a kernel with a group of lanes per row."""
    blocks = launch.row_blocks(rows, kernel.block // lanes)
    executor.launch_simt(kernel, blocks, (rows, *operands), np.float32, dtype, **constants)


#: Lanes per row for placing entries into columns; the same in ``transpose.hpp``.
PLACING_LANES = 4


@kernel(operations.coo_to_csr)
def coo_to_csr(executor: GpuExecutor, A: Coo) -> tuple[Array, Array, Array]:
    """Sort entries by row: by radix passes if many, else each short row separately."""
    entries = radix.KeyedEntries(A.row, A.shape[0], A.col, None, A.shape[1], A.data)
    if radix.pays(entries):
        made = radix.sorted_by_key(executor, entries)
        return made.indptr, made.others, made.values
    dtype, found = A.row.dtype, bucketed(executor, A.row, A.shape[0], A.row.dtype)
    if found.lanes is None:
        order = executor.xp.argsort(A.row, kind="stable")
        return found.indptr, A.col[order], A.data[order]

    def place(entries: Array) -> None:
        given = (A.row, A.col, found.indptr, found.places, entries)
        _by_index(executor, simt.place_coordinates, A.nnz, dtype, *given)

    indices, order = sorted_places(executor, found, found.lanes, A.nnz, dtype, place)
    return found.indptr, indices, A.data[order]


@kernel(operations.csr_sort)
def csr_sort(executor: GpuExecutor, A: Csr) -> tuple[Array, Array, Array]:
    """Sort each row by column, then position; sort all entries at once if a row is long."""
    dtype = A.indices.dtype
    longest = executor.xp.zeros(1, np.int32)
    sparse_products.find_longest(executor, A.indptr, longest)
    lanes = sorting_lanes(int(executor.to_host(longest)[0]), A.shape[0], A.nnz)
    if lanes is None:
        order = order_of(executor, rows_of(executor, A.indptr, A.nnz), A.indices, A.shape[1])
        return A.indices[order], A.data[order], order.astype(dtype)
    indices, order = (executor.allocate((A.nnz,), dtype) for _ in range(2))
    if A.nnz:
        operands = (A.indptr, A.indices, indices, order)
        _by_rows(executor, simt.sort_columns, A.shape[0], lanes, dtype, *operands, LANES=lanes)
    return indices, A.data[order], order


@kernel(operations.csr_sum_duplicates)
def csr_sum_duplicates(executor: GpuExecutor, A: Csr) -> tuple[Array, Array, Array]:
    """Sum duplicate entries; a sum of 0 is kept."""
    row = rows_of(executor, A.indptr, A.nnz)
    part = compress(executor, row, A.indices, A.data, A.shape[1])
    return compressed(executor, A.shape, [part], A.indices.dtype)


@kernel(operations.csr_transpose)
def csr_transpose(executor: GpuExecutor, A: Csr) -> tuple[Array, Array, Array, Array]:
    """Sort entries by column: by radix passes if many, else each short column separately."""
    dtype, (m, n) = A.indices.dtype, A.shape
    entries = radix.KeyedEntries(A.indices, n, None, A.indptr, m, A.data)
    if radix.pays(entries):
        made = radix.sorted_by_key(executor, entries)
        return made.indptr, made.others, made.values, made.order
    found = bucketed(executor, A.indices, n, dtype)
    if found.lanes is None:
        order = executor.xp.argsort(A.indices, kind="stable")
        row = rows_of(executor, A.indptr, A.nnz)[order].astype(dtype)
        return found.indptr, row, A.data[order], order.astype(dtype)

    def place(entries: Array) -> None:
        given = (A.indptr, A.indices, found.indptr, found.places, entries)
        _by_rows(executor, simt.place_entries, m, PLACING_LANES, dtype, *given)

    rows, order = sorted_places(executor, found, found.lanes, A.nnz, dtype, place)
    return found.indptr, rows, A.data[order], order


@kernel(operations.csr_matmul)
def csr_matmul(executor: GpuExecutor, A: Csr, B: Csr) -> tuple[Array, Array, Array]:
    """Assign a group of lanes or a block to each row; expand and sort terms if B has duplicates."""
    B = B.sort()
    if sparse_products.can_multiply(A, B):
        return sparse_products.multiplied(executor, A, B)
    return expanded(executor, A, B)


def expanded(executor: GpuExecutor, A: Csr, B: Csr) -> tuple[Array, Array, Array]:
    """Multiply every entry (i, p) of A by row p of B, some rows of A at a time."""
    xp = executor.xp
    shape = (A.shape[0], B.shape[1])
    begin = B.indptr[A.indices].astype(np.int64)
    length = B.indptr[A.indices + 1].astype(np.int64) - begin
    ends = xp.cumsum(length)
    # The number of products before each row of A.
    before = xp.concatenate([xp.zeros(1, np.int64), ends])[A.indptr]
    row = rows_of(executor, A.indptr, A.nnz)
    parts = []
    for first, last in chunks(xp.asnumpy(before)):
        low, high = (int(p) for p in xp.asnumpy(A.indptr[xp.asarray([first, last])]))
        parts.append(
            _expanded(
                executor, row[low:high], begin[low:high], length[low:high], A.data[low:high], B
            )
        )
    return compressed(executor, shape, parts, A.indices.dtype, B.indices.dtype)


@kernel(operations.csr_matmul_values)
def csr_matmul_values(executor: GpuExecutor, A: Csr, B: Csr, C: Csr) -> tuple[Array]:
    """Sum the terms at their positions, which are searched in the rows of C."""
    B = B.sort()
    if not (B.has_canonical_format and C.has_canonical_format):
        return (expanded(executor, A, B)[2],)
    return (sparse_products.new_values(executor, A, B, C),)


def chunks(before: np.ndarray[Any, Any], most: int = EXPANDED) -> list[tuple[int, int]]:
    """Return ranges of rows with at most ``most`` products each, or single rows.

    Parameters
    ----------
    before : array, shape (m + 1,)
        The number of products before each row, and the total.
    """
    rows = before.size - 1
    ranges, first = [], 0
    while first < rows:
        last = int(np.searchsorted(before, before[first] + most, side="right")) - 1
        last = min(max(last, first + 1), rows)
        ranges.append((first, last))
        first = last
    return ranges or [(0, rows)]


def _expanded(
    executor: GpuExecutor, row: Array, begin: Array, length: Array, data: Array, B: Csr
) -> tuple[Array, Array, Array]:
    xp = executor.xp
    ends = xp.cumsum(length)
    total = int(ends[-1]) if ends.size else 0
    products = xp.arange(total, dtype=np.int64)
    of_A = xp.searchsorted(ends, products, side="right")
    of_B = begin[of_A] + products - (ends - length)[of_A]
    return compress(
        executor,
        row[of_A],
        B.indices[of_B],
        entry_products(executor, data[of_A], B.data[of_B]),
        B.shape[1],
    )


@kernel(operations.csr_add)
def csr_add(
    executor: GpuExecutor, A: Csr, B: Csr, alpha: complex, beta: complex
) -> tuple[Array, Array, Array]:
    """Merge sorted rows; otherwise concatenate the entries of both and sum duplicates."""
    result = merged_rows.total(executor, A, B, alpha, beta) if merged_rows.can_add(A, B) else None
    if result is not None:
        return result
    xp = executor.xp
    row = xp.concatenate([rows_of(executor, M.indptr, M.nnz) for M in (A, B)])
    column = xp.concatenate([A.indices, B.indices])
    data = xp.concatenate(
        [values_times(executor, M.data, factor) for M, factor in ((A, alpha), (B, beta))]
    )
    part = compress(executor, row, column, data, A.shape[1])
    return compressed(executor, A.shape, [part], A.indices.dtype, B.indices.dtype)
