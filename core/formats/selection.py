"""Matrices with selected entries of another one: by masks, diagonals, rows or columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import COMPUTED
from ..errors import InvalidArgument
from ..operands import native
from ..operations import rows, scan, structure
from ..small_values import for_zero_tests
from ..store import Key
from .csr import Csr, rearranged
from .dense import Dense
from .kept_results import Repeated, repeated
from .rowwise import (
    canonical_rows,
    counted,
    filled,
    filled_in,
    moved,
    of_pattern,
    row_bounds,
)
from .sparse_vector import SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..executor import Array, Executor
    from .base import Matrix

#: Pattern of adjacent columns; its values are the positions of the entries in the matrix.
_COLUMNS: Key[Repeated[Csr]] = Key("adjacent columns")


def as_rows(matrix: Matrix) -> Csr:
    """Return a matrix in the CSR format, with unchanged values."""
    csr: Csr = matrix.asformat("csr")
    return csr


def apart(result: Csr, matrix: Matrix) -> Csr:
    """Return a part of a matrix, or a copy of the whole, for in-place changes."""
    return result.copy() if result is matrix else result


def masked(csr: Csr, mask: Array) -> Csr:
    """Return the entries at which a boolean array is True, in their order."""
    arrays = (csr.data[mask], csr.indices[mask], _pointers(csr, mask))
    return Csr._from_arrays(csr.executor, csr.shape, *arrays)


def marked(csr: Csr, mask: Array) -> Csr:
    """Return True at the entries at which a new boolean array is True."""
    xp = csr.executor.xp
    kept = int(xp.count_nonzero(mask))
    if kept == csr.nnz:
        return of_pattern(csr, mask)
    if kept == 0:
        nothing, pointers = xp.zeros(0, csr.index_dtype), xp.zeros_like(csr.indptr)
        return Csr._from_arrays(csr.executor, csr.shape, xp.zeros(0, np.bool_), nothing, pointers)
    indices = csr.indices[mask]
    arrays = (xp.ones(kept, np.bool_), indices, _pointers(csr, mask))
    return Csr._from_arrays(csr.executor, csr.shape, *arrays)


def _pointers(csr: Csr, mask: Array) -> Array:
    """Return the row pointers of the entries that a mask keeps."""
    xp, dtype = csr.executor.xp, csr.index_dtype
    before = xp.zeros(csr.nnz + 1, dtype)
    if csr.nnz:
        before[1:] = xp.cumsum(mask, dtype=dtype)
    return before[csr.indptr]


def nonzeros(csr: Csr) -> Csr:
    """Return the nonzero entries; the matrix itself if all are nonzero."""
    if csr.dtype in COMPUTED:
        begin, end = row_bounds(csr)
        arguments = (begin, end, csr.indices, csr.data)
        counts = counted(csr, csr.shape[0], rows.count_nonzeros, rows.drop_zeros, *arguments)
        if counts.entries == csr.nnz:
            return csr
        return filled_in(csr, csr.shape, counts, rows.drop_zeros)
    mask = for_zero_tests(csr.executor, csr.data) != 0
    return csr if bool(csr.executor.xp.all(mask)) else masked(csr, mask)


def band(matrix: Matrix, lower: int, upper: int) -> Csr:
    """Return the entries on the diagonals from ``lower`` to ``upper``; 0 is the main one."""

    def move(csr: Csr) -> Csr:
        arguments = (*row_bounds(csr), csr.indices, lower, upper, csr.data)
        return filled(csr, csr.shape, rows.count_band, rows.band, *arguments)

    return moved(as_rows(matrix), move)


def triangle(matrix: Matrix, k: Any, *, upper: bool) -> Csr:
    """Return the entries on the ``k``-th diagonal above the main one, and on one side of it.

    Raises
    ------
    InvalidArgument
        If ``k`` is not an integer.
    """
    if not isinstance(k, (int, np.integer)):
        raise InvalidArgument(f"a triangle begins at a diagonal of an integer number, got {k!r}")
    m, n = matrix.shape
    return band(matrix, int(k), max(n, int(k))) if upper else band(matrix, min(-m, int(k)), int(k))


def take_rows(matrix: Matrix, chosen: Array) -> Csr:
    """Return the rows with the given numbers, a native array, in this order."""

    def move(csr: Csr) -> Csr:
        named = chosen.astype(csr.index_dtype)
        shape = (int(named.size), csr.shape[1])
        arguments = (named, csr.indptr, csr.indices, csr.data)
        return filled(csr, shape, rows.lengths, rows.take, *arguments)

    return moved(as_rows(matrix), move)


def row_slice(matrix: Matrix, start: int, stop: int) -> Csr:
    """Return adjacent rows, whose entries are adjacent too."""
    rows = row_view(matrix, start, stop)
    data, indices = (rows.executor.copy(array) for array in (rows.data, rows.indices))
    return Csr._from_arrays(rows.executor, rows.shape, data, indices, rows.indptr)


def row_view(matrix: Matrix, start: int, stop: int) -> Csr:
    """Return adjacent rows that share the entries of the matrix, to select some of them."""
    csr, stop = as_rows(matrix), max(start, stop)
    bounds = csr.executor.to_host(csr.indptr[start : stop + 1 : max(stop - start, 1)])
    return _rows_between(csr, start, stop, int(bounds[0]), int(bounds[-1]))


def _rows_between(csr: Csr, start: int, stop: int, first: int, last: int) -> Csr:
    """Return adjacent rows, which have the entries from ``first`` to ``last``, without copies."""
    indptr = csr.indptr[start : stop + 1] - csr.index_dtype.type(first)
    shape = (stop - start, csr.shape[1])
    return Csr._from_arrays(
        csr.executor, shape, csr.data[first:last], csr.indices[first:last], indptr
    )


#: Rows of which the host reads the ends in one wait when it iterates over all rows.
ROWS_AT_ONCE = 1024


def each_row(matrix: Matrix) -> Iterator[SparseVector]:
    """Yield the rows as sparse vectors; the host waits once for the ends of many rows."""
    csr = as_rows(matrix)
    for start in range(0, csr.shape[0], ROWS_AT_ONCE):
        ends = csr.executor.to_host(csr.indptr[start : start + ROWS_AT_ONCE + 1])
        for i in range(len(ends) - 1):
            first, last = int(ends[i]), int(ends[i + 1])
            row = _rows_between(csr, start + i, start + i + 1, first, last)
            yield SparseVector._of(row.copy())


def take_columns(matrix: Matrix, chosen: Array) -> Csr:
    """Return the columns with the given numbers, a native array, in this order.

    If the matrix has sorted rows, so has the result.
    """
    csr, xp = as_rows(matrix), matrix.executor.xp
    count, width = int(chosen.size), csr.shape[1]
    numbers = xp.full(width, -1, csr.index_dtype)
    places = xp.arange(count, dtype=csr.index_dtype)
    numbers[chosen] = places
    if count < 2:
        return _picked(csr, numbers, count)
    falls, twice = xp.any(chosen[1:] <= chosen[:-1]), xp.any(numbers[chosen] != places)
    if bool(twice):
        return take_rows(csr.transpose(), chosen).transpose()
    made = _picked(csr, numbers, count)
    return sorted_once(made) if bool(falls) else made


def masked_columns(matrix: Matrix, mask: Array) -> Csr:
    """Return the columns for which a boolean array, on any device, is True.

    The number of columns and the number of entries are copied to the host in one wait.
    """
    csr, executor = as_rows(matrix), matrix.executor
    mask = _placed_mask(executor, mask)
    before = executor.allocate((csr.shape[1] + 1,), csr.index_dtype)
    executor.run(scan.pointers, mask.astype(csr.index_dtype), before)
    numbers = executor.xp.where(mask, before[:-1], csr.index_dtype.type(-1))
    return _picked(csr, numbers, before[-1:])


#: Length from which a boolean mask of the host is packed to bits before it is copied to a device
#: with its own memory: an eighth of the bytes crosses the bus, and packing a million booleans takes
#: a core 30 microseconds. The value is an estimate.
PACKED = 1 << 16


def _placed_mask(executor: Executor, mask: Array) -> Array:
    """Return a boolean array on an executor; long host arrays cross the bus as bits."""
    if not isinstance(mask, np.ndarray) or executor.xp is np or mask.size < PACKED:
        return native(executor, mask, "columns")
    bits = executor.from_host(np.packbits(mask))
    return executor.xp.unpackbits(bits)[: mask.size].view(np.bool_)


def _picked(csr: Csr, numbers: Array, count: int | Array) -> Csr:
    """Return ``count`` columns: column ``j`` becomes ``numbers[j]`` and is left out if negative.

    ``count`` may be an array of one number on the executor.
    """
    known = count if isinstance(count, int) else None

    def move(csr: Csr) -> Csr:
        arguments = (*row_bounds(csr), csr.indices, numbers, csr.data)
        made = counted(
            csr,
            csr.shape[0],
            rows.count_picked,
            rows.pick,
            *arguments,
            beside=count if known is None else None,
        )
        columns = made.beside if known is None else known
        assert columns is not None
        return filled_in(csr, (csr.shape[0], columns), made, rows.pick)

    return moved(csr, move)


def sorted_once(csr: Csr) -> Csr:
    """Return a temporary matrix with sorted rows; the order is not stored."""
    indices, data, _ = rearranged(csr, structure.csr_sort)
    return Csr._from_arrays(csr.executor, csr.shape, data, indices, csr.indptr)


def column_slice(matrix: Matrix, start: int, stop: int) -> Csr:
    """Return adjacent columns; on a GPU a repeated call reuses the pattern.

    CPU cores make the pattern again in the time in which one core gathers the values.
    """
    csr, stop = as_rows(matrix), max(start, stop)

    def move(csr: Csr) -> Csr:
        arguments = (*row_bounds(csr), csr.indices, start, stop, csr.data)
        shape = (csr.shape[0], stop - start)
        return filled(csr, shape, rows.count_between, rows.between, *arguments)

    kept = repeated(csr, _COLUMNS) if csr.executor.keeps_launches else None
    part = None if kept is None else kept.of((start, stop), lambda: _numbered(csr, move))
    return moved(csr, move) if part is None else of_pattern(part, csr.data.take(part.data))


def _numbered(csr: Csr, move: Callable[[Csr], Csr]) -> Csr:
    """Return a part of a matrix; its values are the positions of its entries in the matrix."""
    places = csr.executor.xp.arange(csr.nnz, dtype=np.float64)
    made = move(of_pattern(csr, places))
    return of_pattern(made, made.data.astype(made.index_dtype))


def values_at(matrix: Matrix, row: Array, column: Array) -> Array:
    """Return the entries at positions, arrays of equal shape; 0 where none is stored."""
    executor, xp = matrix.executor, matrix.executor.xp
    csr = canonical_rows(matrix)
    if csr.nnz == 0:
        return xp.zeros(row.shape, matrix.dtype)
    at = [
        xp.ascontiguousarray(numbers).reshape(-1).astype(csr.index_dtype)
        for numbers in (row, column)
    ]
    direct = csr.dtype in COMPUTED
    # Values of other dtypes are gathered by their positions, counted from 1; 0 means no entry.
    values = csr.data if direct else xp.arange(1, csr.nnz + 1, dtype=np.float64)
    found = executor.allocate((int(at[0].size),), values.dtype)
    executor.run(rows.at, *at, csr.indptr, csr.indices, values, found)
    if not direct:
        position = found.astype(np.int64)
        entries = csr.data[xp.maximum(position - 1, 0)]
        found = xp.where(position > 0, entries, xp.zeros((), csr.dtype))
    return found.astype(matrix.dtype, copy=False).reshape(row.shape)


def from_dense(matrix: Any, dense: Array) -> Csr:
    """Return a two-dimensional native array as a Csr of its nonzero entries."""
    shape = (int(dense.shape[0]), int(dense.shape[1]))
    made: Csr = Dense._from_arrays(matrix.executor, shape, dense).asformat("csr")
    return made


def vector_of(matrix: Any, dense: Array) -> SparseVector:
    """Return a one-dimensional native array as a sparse vector of its nonzero entries."""
    return SparseVector._of(from_dense(matrix, dense.reshape(1, -1)))
