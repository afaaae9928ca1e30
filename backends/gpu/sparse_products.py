"""Products of sparse matrices on GPUs, one row at a time.

A symbolic phase counts the columns of each row, and a numeric phase sums values at their sorted
columns. Rows are grouped by size first: rows that fit into shared memory go to groups of 8, 32 and
128 lanes with hash tables, long rows go to blocks (``long_rows``). Sums follow the order of the
left row, so results do not depend on the grouping. The only memory besides the result are lists of
rows.

Y. Nagasaka, A. Nukada, S. Matsuoka, High-performance and memory-saving sparse general matrix-matrix
multiplication for NVIDIA Pascal GPU, ICPP 2017, for groups by row size and tables in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import VALUE_DTYPES, index_dtype
from ...core.executor import Array
from ...core.formats.csr import Csr
from ...core.operations import scan
from ...core.store import Key
from ..simt import kernels as simt
from . import launch, long_rows
from .base import GpuExecutor
from .long_rows import LongRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..unified.wrappers import SimtKernel
    from .types import Dtype

#: Largest number of columns in a row of the product for a group of lanes.
LONGEST = simt.PRODUCT_LANES[-1] * simt.PRODUCT_CELLS

#: Largest number of products per row that each size of groups counts, so that tables cannot
#: overflow. Rows with more products are long. Rows beyond the last number get several blocks: that
#: is 512 steps of a block (an estimate; ``wollemi bench suite structure`` measures it).
COUNTED = (*(lanes * simt.PRODUCT_CELLS for lanes in simt.PRODUCT_LANES), 1 << 17)
#: Largest number of columns per row that each size fills in. The values of R (A P) at 128^3 took
#: 1.07 milliseconds with up to full tables, 1.21 up to 5/8 full and 1.92 up to 5/16 (H200, 23
#: November).
FILLED = (*(limit * 7 // 8 for limit in COUNTED[:2]), LONGEST, 1 << 14)

#: Upper bound of products of a row per lane, if more lanes are available: rows of the coarse matrix
#: of an aggressive step have 20 products per column. Milliseconds of ``P.T @ A @ P`` with no bound,
#: 64, 32 and 16 (H100, 25 November): for such steps 2.85, 2.66, 2.42, 2.45 (32^3), 5.7, 5.4, 4.9,
#: 4.7 (100^3) and 12.4, 3.6, 3.4, 3.3 (27 points, 64^3); for others 2.70, 2.69, 2.77, 2.79 (100^3)
#: and 3.1, 2.8, 2.6, 2.5 (27 points).
OF_LANE = 16

#: Number of lists of rows: one per size of groups, one of long rows, and one of giant rows.
LISTS = len(COUNTED) + 1

#: Positions of the numbers that the host reads: rows by products and by columns, and the longest
#: row of the right factor and of the product.
BY_PRODUCTS, BY_COLUMNS, LENGTH, COLUMNS = 0, LISTS, 2 * LISTS, 2 * LISTS + 1
NUMBERS = COLUMNS + 1


class Dealt(NamedTuple):
    """The rows of a product, grouped by the size of their workers.

    Parameters
    ----------
    counts : list of int
        Number of rows in each list.
    lists : list of Array or None
        The rows of each list; None for all rows in order.
    """

    counts: list[int]
    lists: list[Array | None]

    def groups(self) -> Iterator[tuple[int, int, Array | None]]:
        """Yield, for each group size: the lanes, the number of rows, and the rows."""
        for lanes, count, rows in zip(simt.PRODUCT_LANES, self.counts, self.lists, strict=False):
            if count:
                yield lanes, count, rows

    def long(self, columns: int) -> list[LongRows]:
        """Return the rows with at most ``columns`` columns that blocks process."""
        first = len(simt.PRODUCT_LANES)
        return [
            long_rows.shared(self.counts[at], self.lists[at], columns, giant=at > first)
            for at in range(first, LISTS)
            if self.counts[at]
        ]


_LONGEST: Key[int] = Key("longest row of a right factor")
_DEALT: Key[tuple[Dealt, int]] = Key("rows by who computes new values of a product")


def can_multiply(A: Csr, B: Csr) -> bool:
    """Return whether a product can be computed: the rows of ``B`` must be sorted."""
    return A.data.dtype in map(np.dtype, VALUE_DTYPES) and B.has_canonical_format


def multiplied(executor: GpuExecutor, A: Csr, B: Csr) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of a product.

    Its index dtype is wider than the factors' if that cannot count the entries.
    """
    m, dtype, value = A.shape[0], A.indices.dtype, A.data.dtype
    numbers = executor.xp.zeros(NUMBERS, np.int32)
    rows, terms = (executor.allocate((size,), dtype) for size in (LISTS * m, m))
    if _LONGEST not in B._pattern:
        find_longest(executor, B.indptr, numbers[LENGTH:])
    _deal_by_products(executor, A, B, terms, rows, numbers[BY_PRODUCTS:])
    found = executor.to_host(numbers)
    longest = B._pattern.get(_LONGEST, lambda: int(found[LENGTH]))
    dealt = _dealt(found[BY_PRODUCTS:], rows, m)
    lengths = executor.allocate((m,), dtype)
    for lanes, count, chosen in dealt.groups():
        listed = (count, spread(lanes, longest), chosen)
        given = (*listed, A.indptr, A.indices, B.indptr, B.indices)
        _launch(executor, simt.count_product, lanes, given, (lengths,), value)
    long = dealt.long(B.shape[1])
    before = [long_rows.count(executor, one, A, B, lengths) for one in long]

    indptr = _pointers(executor, lengths, min(A.nnz * longest, m * B.shape[1]))
    if indptr is None:
        return multiplied(executor, _widened(A), _widened(B))
    if long:
        find_longest(executor, indptr, numbers[COLUMNS:])
        rows = executor.allocate(rows.shape, dtype)  # the lists of long rows are still needed
    _deal_by_columns(executor, indptr, terms, rows, numbers[BY_COLUMNS:])
    found, last = executor.transfer(numbers, indptr[m:]).read()
    indices, data = (executor.allocate((int(last[0]),), d) for d in (dtype, value))
    columns, most = int(found[COLUMNS]), FILLED[2]
    for one, shares in zip(long, before, strict=True):
        if columns > most:
            long_rows.place(executor, one, shares, A, B, indptr, most, indices)
    dealt = _dealt(found[BY_COLUMNS:], rows, m)
    for lanes, count, chosen in dealt.groups():
        listed = (count, spread(lanes, longest), chosen)
        terms = (*listed, *_entries(A), *_entries(B), indptr)
        _launch(executor, simt.fill_product, lanes, terms, (indices, data), value)
    for one in dealt.long(columns):
        long_rows.add_up(executor, one, A, B, indptr, indices, data)
    return indptr, indices, data


def new_values(executor: GpuExecutor, A: Csr, B: Csr, C: Csr) -> Array:
    """Return the values of the product, with the pattern of ``C``.

    Results that depend only on patterns are cached with them: later calls only launch kernels.
    """
    value = C.data.dtype
    longest = B._pattern.get(_LONGEST, lambda: _longest(executor, B))
    dealt, columns = C._pattern.get(_DEALT, lambda: _dealt_rows(executor, A, B, C))
    data = executor.allocate((C.nnz,), value)
    for lanes, count, chosen in dealt.groups():
        listed = (count, spread(lanes, longest), chosen)
        terms = (*listed, *_entries(A), *_entries(B), C.indptr)
        _launch(executor, simt.refill_product, lanes, terms, (C.indices, data), value)
    for one in dealt.long(columns):
        long_rows.add_up(executor, one, A, B, C.indptr, C.indices, data)
    return data


def spread(lanes: int, longest: int) -> int:
    """Return the number of lanes that read a right row: enough for the longest, or all."""
    return min(lanes, 1 << max(longest - 1, 0).bit_length())


def find_longest(executor: GpuExecutor, indptr: Array, longest: Array) -> None:
    """Store the length of the longest row, if it exceeds the stored value."""
    m = int(indptr.size) - 1
    blocks = min(launch.row_blocks(m, simt.longest_row.block), 8 * executor.device.multiprocessors)
    given = (m, indptr, longest)
    executor.launch_simt(simt.longest_row, blocks, given, np.float32, indptr.dtype)


def _longest(executor: GpuExecutor, matrix: Csr) -> int:
    found = executor.xp.zeros(1, np.int32)
    find_longest(executor, matrix.indptr, found)
    return int(executor.to_host(found)[0])


def _pointers(executor: GpuExecutor, lengths: Array, most: int) -> Array | None:
    """Return row pointers for rows with at most ``most`` entries in total.

    Return None if their dtype cannot count the entries.
    """
    dtype = lengths.dtype
    indptr = executor.allocate((int(lengths.size) + 1,), index_dtype(most, dtype))
    executor.run(scan.pointers, lengths, indptr)
    if indptr.dtype == dtype:
        return indptr
    entries = int(executor.to_host(indptr[-1:])[0])
    return indptr.astype(dtype) if index_dtype(entries, dtype) == dtype else None


def _widened(matrix: Csr) -> Csr:
    """Return a matrix with 64-bit indices; its rows are known to be sorted."""
    wide = (array.astype(np.int64) for array in (matrix.indices, matrix.indptr))
    return Csr._from_arrays(matrix.executor, matrix.shape, matrix.data, *wide)


def _dealt_rows(executor: GpuExecutor, A: Csr, B: Csr, C: Csr) -> tuple[Dealt, int]:
    """Return the grouped rows of a known product, and its longest row."""
    m, dtype = C.shape[0], C.indptr.dtype
    numbers = executor.xp.zeros(NUMBERS, np.int32)
    rows, terms = (executor.allocate((size,), dtype) for size in (LISTS * m, m))
    find_longest(executor, C.indptr, numbers[COLUMNS:])
    _deal_by_products(executor, A, B, terms, rows, numbers[BY_PRODUCTS:])
    _deal_by_columns(executor, C.indptr, terms, rows, numbers[BY_COLUMNS:])
    found = executor.to_host(numbers)
    dealt = _dealt(found[BY_COLUMNS:], rows, m)
    # Copies, so that the cached lists have no more than m rows in total.
    kept = [None if one is None else executor.copy(one) for one in dealt.lists]
    return Dealt(dealt.counts, kept), int(found[COLUMNS])


def _deal_by_products(
    executor: GpuExecutor, A: Csr, B: Csr, terms: Array, rows: Array, counts: Array
) -> None:
    """Store the number of products per row, and group rows for counting."""
    mean = -(-B.nnz // max(B.shape[0], 1))
    pattern = (A.indptr, A.indices, B.indptr)
    _deal(executor, pattern, (*COUNTED, 0, 0, mean), terms, rows, counts, 0)


def _deal_by_columns(
    executor: GpuExecutor, indptr: Array, terms: Array, rows: Array, counts: Array
) -> None:
    """Group rows for filling in; ``indptr`` belongs to the product."""
    most = (lanes * OF_LANE for lanes in simt.PRODUCT_LANES[:2])
    _deal(executor, (indptr, None, None), (*FILLED, *most, 0), terms, rows, counts, 1)


def _deal(
    executor: GpuExecutor,
    pattern: tuple[Array, Array | None, Array | None],
    limits: tuple[int, ...],
    terms: Array,
    rows: Array,
    counts: Array,
    by_length: int,
) -> None:
    m, index = int(terms.size), rows.dtype
    blocks = launch.row_blocks(m, simt.deal_rows.block)
    given = (m, *pattern, *limits, terms, rows, counts)
    executor.launch_simt(simt.deal_rows, blocks, given, np.float32, index, BY_LENGTH=by_length)


def _dealt(counts_of_lists: Sequence[int] | np.ndarray, rows: Array, m: int) -> Dealt:
    counts = [int(count) for count in counts_of_lists[:LISTS]]
    lists = [
        None if count in (0, m) else rows[at * m : at * m + count]
        for at, count in enumerate(counts)
    ]
    return Dealt(counts, lists)


def _launch(
    executor: GpuExecutor,
    kernel: SimtKernel,
    lanes: int,
    inputs: tuple[Any, ...],
    outputs: tuple[Array, ...],
    value: Dtype,
) -> None:
    blocks = launch.row_blocks(inputs[0], kernel.block // lanes)
    index = inputs[3].dtype
    executor.launch_simt(kernel, blocks, (*inputs, *outputs), value, index, LANES=lanes)


def _entries(matrix: Csr) -> tuple[Array, Array, Array]:
    return matrix.indptr, matrix.indices, matrix.data
