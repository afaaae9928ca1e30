"""Operations on compressed rows; entries are listed with their rows for NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.distinct import distinct
from ...core.executor import Array, Executor
from ...core.operations import rows as operations
from ...core.operations import scan
from .sums import by_place
from .table import RowPattern, Rows, kernel, kernel_of


@kernel(scan.pointers)
def pointers(executor: Executor, lengths: Array, indptr: Array) -> None:
    """Set indptr_i = the sum of the lengths before i."""
    indptr[0] = 0
    np.cumsum(lengths, out=indptr[1:])


def entries(begin: Array, end: Array) -> tuple[Array, Array]:
    """Return the row and the position of each entry."""
    lengths = (end - begin).astype(np.int64)
    row = np.repeat(np.arange(begin.size), lengths)
    first = np.cumsum(lengths) - lengths
    return row, np.arange(row.size) - first[row] + begin[row]


@kernel(operations.examine)
def examine(
    executor: Executor, begin: Array, end: Array, indices: Array, falls: Array, repeats: Array
) -> None:
    """Compare each entry with its predecessor in the row."""
    row, e = entries(begin, end)
    later = e[1:][row[1:] == row[:-1]]
    falls[0] = np.count_nonzero(indices[later] < indices[later - 1])
    repeats[0] = np.count_nonzero(indices[later] == indices[later - 1])


@kernel(operations.falls)
def falls(executor: Executor, begin: Array, end: Array, falls: Array) -> None:
    """Count the rows with an end before their beginning."""
    falls[0] = np.count_nonzero(end < begin)


@kernel(operations.count_nonzeros)
def count_nonzeros(
    executor: Executor, begin: Array, end: Array, values: Array, lengths: Array, total: Array
) -> None:
    """Count the nonzero entries of each row."""
    row, e = entries(begin, end)
    lengths[:] = np.bincount(row[values[e] != 0], minlength=begin.size)
    total[0] = lengths.sum(dtype=np.int64)


@kernel(operations.total)
def total(executor: Executor, begin: Array, end: Array, values: Array, y: Array) -> None:
    """Set y_i = the sum of the entries of row i."""
    row, e = entries(begin, end)
    first, sums = by_place(values[e], row)
    y[:] = 0
    y[row[first]] = sums


def extremes(
    function: np.ufunc, begin: Array, end: Array, values: Array, width: int, y: Array
) -> None:
    """Set y_i = a reduction of the entries of row i, including 0 if the row is not full."""
    row, e = entries(begin, end)
    y[:] = 0
    first = np.flatnonzero(np.diff(row, prepend=-1))
    if first.size:
        y[row[first]] = function.reduceat(values[e], first)
    partly = (end > begin) & (end - begin < width)
    y[partly] = function(y[partly], y.dtype.type(0))


@kernel(operations.largest)
def largest(
    executor: Executor, begin: Array, end: Array, values: Array, width: int, y: Array
) -> None:
    """Compute the maximum of each row with NumPy."""
    extremes(np.maximum, begin, end, values, width, y)


@kernel(operations.smallest)
def smallest(
    executor: Executor, begin: Array, end: Array, values: Array, width: int, y: Array
) -> None:
    """Compute the minimum of each row with NumPy."""
    extremes(np.minimum, begin, end, values, width, y)


@kernel_of(operations.diagonal, Rows)
def diagonal(executor: Executor, A: Rows, offset: int, d: Array) -> None:
    """Set d_i = the sum of the entries of row i in column i + offset."""
    row, e = entries(A.begin, A.end)
    on = A.indices[e] == row + offset
    first, sums = by_place(A.values[e[on]], row[on])
    d[:] = 0
    d[row[on][first]] = sums


@kernel_of(operations.set_diagonal, RowPattern)
def set_diagonal(
    executor: Executor, A: RowPattern, new_values: Array, offset: int, values: Array, stored: Array
) -> None:
    """Overwrite the entries of a diagonal."""
    row, e = entries(A.begin, A.end)
    on = A.indices[e] == row + offset
    values[e[on]] = new_values[row[on]]
    stored[0] = np.count_nonzero(on)


@kernel_of(operations.scale, Rows)
def scale(
    executor: Executor, A: Rows, dense: Array, row_step: int, column_step: int, result: Array
) -> None:
    """Multiply each entry by the element of ``dense`` at its position."""
    row, e = entries(A.begin, A.end)
    at = row * row_step + A.indices[e].astype(np.int64) * column_step
    result[e] = A.values[e] * dense[at]


@kernel(operations.longest)
def longest(executor: Executor, begin: Array, end: Array, longest: Array) -> None:
    """Compute the length of the longest row."""
    longest[0] = np.max(end - begin, initial=0)


@kernel(operations.number)
def number(executor: Executor, begin: Array, end: Array, row: Array) -> None:
    """Set row_e = the row of entry e."""
    rows, e = entries(begin, end)
    row[e] = rows


@kernel(operations.lengths)
def lengths(executor: Executor, rows: Array, indptr: Array, lengths: Array, total: Array) -> None:
    """Set lengths_i = the number of entries of row rows_i."""
    lengths[:] = indptr[rows + 1] - indptr[rows]
    total[0] = lengths.sum(dtype=np.int64)


@kernel(operations.take)
def take(
    executor: Executor,
    rows: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Copy the entries of the given rows."""
    _, e = entries(indptr[rows], indptr[rows + 1])
    new_indices[:], new_values[:] = indices[e], values[e]


@kernel_of(operations.drop_zeros, Rows)
def drop_zeros(
    executor: Executor, A: Rows, target: Array, new_indices: Array, new_values: Array
) -> None:
    """Copy the nonzero entries."""
    _, e = entries(A.begin, A.end)
    kept = e[A.values[e] != 0]
    new_indices[:], new_values[:] = A.indices[kept], A.values[kept]


def union(one: RowPattern, two: RowPattern) -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """Return rows and columns of the positions that either matrix has, sorted by rows.

    For each of the two matrices, also return the indices of its entries in this list, and the
    entries.
    """
    places, sides = [], []
    for begin, end, columns in (one, two):
        row, e = entries(begin, end)
        places.append(np.stack([row, columns[e]]).astype(np.int64))
        sides.append(e)
    width = int(max((p[1].max(initial=-1) for p in places), default=-1)) + 1
    keys = [p[0] * width + p[1] for p in places]
    joined = distinct(np.concatenate(keys))
    at = [(np.searchsorted(joined, key), e) for key, e in zip(keys, sides, strict=True)]
    return joined // max(width, 1), joined % max(width, 1), at


class UnionEntries(NamedTuple):
    """The values of two matrices at all positions of either matrix, 0 where absent."""

    row: Array
    column: Array
    first: Array
    second: Array


def union_entries(one: Rows, two: Rows) -> UnionEntries:
    """Return the values of two matrices at the union of their positions."""
    row, column, sides = union(one.pattern, two.pattern)
    pair = np.zeros((2, row.size), one.values.dtype)
    for side, (at, e), values in zip(pair, sides, (one.values, two.values), strict=True):
        side[at] = values[e]
    return UnionEntries(row, column, pair[0], pair[1])


def products(one: Rows, two: Rows) -> tuple[Array, Array, Array]:
    """Return rows, columns and values of the nonzero entry-wise products, in order."""
    entries = union_entries(one, two)
    with np.errstate(invalid="ignore", over="ignore"):
        product = entries.first * entries.second
    kept = product != 0
    return entries.row[kept], entries.column[kept], product[kept]


@kernel_of(operations.count_products, Rows, Rows)
def count_products(executor: Executor, one: Rows, two: Rows, lengths: Array, total: Array) -> None:
    """Count the nonzero products of each row."""
    row, _, _ = products(one, two)
    lengths[:] = np.bincount(row, minlength=one.begin.size)
    total[0] = row.size


@kernel_of(operations.multiply, Rows, Rows)
def multiply(
    executor: Executor,
    one: Rows,
    two: Rows,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Store the nonzero products."""
    _, new_indices[:], new_values[:] = products(one, two)


@kernel_of(operations.count_union, RowPattern, RowPattern)
def count_union(
    executor: Executor, one: RowPattern, two: RowPattern, lengths: Array, total: Array
) -> None:
    """Count the positions of each row that either matrix has."""
    row, _, _ = union(one, two)
    lengths[:] = np.bincount(row, minlength=one.begin.size)
    total[0] = row.size


@kernel_of(operations.add, Rows, Rows)
def add(
    executor: Executor,
    one: Rows,
    two: Rows,
    alpha: complex,
    beta: complex,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Store the terms of one matrix, and add the terms of the other."""
    scalar = one.values.dtype.type
    _, column, sides = union(one.pattern, two.pattern)
    (at, e), (other_at, f) = sides
    new_indices[:], new_values[:] = column, 0
    new_values[at] = scalar(alpha) * one.values[e]
    new_values[other_at] += scalar(beta) * two.values[f]


@kernel_of(operations.merge, RowPattern, RowPattern)
def merge(
    executor: Executor,
    one: RowPattern,
    two: RowPattern,
    target: Array,
    new_indices: Array,
    first: Array,
    second: Array,
) -> None:
    """Find the entries of both matrices at each position of the union."""
    _, new_indices[:], sides = union(one, two)
    for entry, (at, e) in zip((first, second), sides, strict=True):
        entry[:] = -1
        entry[at] = e


def selected(lengths: Array, total: Array, row: Array, is_selected: Array) -> None:
    """Count the kept entries of each row."""
    lengths[:] = np.bincount(row[is_selected], minlength=lengths.size)
    total[0] = np.count_nonzero(is_selected)


@kernel_of(operations.count_picked, RowPattern)
def count_picked(
    executor: Executor, A: RowPattern, numbers: Array, lengths: Array, total: Array
) -> None:
    """Count the entries of the numbered columns."""
    row, e = entries(A.begin, A.end)
    selected(lengths, total, row, numbers[A.indices[e]] >= 0)


@kernel_of(operations.pick, RowPattern)
def pick(
    executor: Executor,
    A: RowPattern,
    numbers: Array,
    values: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Copy the entries of the numbered columns."""
    _, e = entries(A.begin, A.end)
    kept = e[numbers[A.indices[e]] >= 0]
    new_indices[:], new_values[:] = numbers[A.indices[kept]], values[kept]


def within(row: Array, columns: Array, lower: int, upper: int) -> Array:
    """Return which entries lie on the diagonals ``lower`` to ``upper``."""
    diagonals = columns.astype(np.int64) - row
    return (diagonals >= lower) & (diagonals <= upper)


@kernel_of(operations.count_between, RowPattern)
def count_between(
    executor: Executor, A: RowPattern, first: int, last: int, lengths: Array, total: Array
) -> None:
    """Count the entries in a range of columns."""
    row, e = entries(A.begin, A.end)
    selected(lengths, total, row, (first <= A.indices[e]) & (A.indices[e] < last))


@kernel_of(operations.between, RowPattern)
def between(
    executor: Executor,
    A: RowPattern,
    first: int,
    last: int,
    values: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Copy the entries in a range of columns."""
    _, e = entries(A.begin, A.end)
    kept = e[(first <= A.indices[e]) & (A.indices[e] < last)]
    new_indices[:], new_values[:] = A.indices[kept] - first, values[kept]


@kernel_of(operations.count_band, RowPattern)
def count_band(
    executor: Executor, A: RowPattern, lower: int, upper: int, lengths: Array, total: Array
) -> None:
    """Count the entries in a band of diagonals."""
    row, e = entries(A.begin, A.end)
    selected(lengths, total, row, within(row, A.indices[e], lower, upper))


@kernel_of(operations.band, RowPattern)
def band(
    executor: Executor,
    A: RowPattern,
    lower: int,
    upper: int,
    values: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Copy the entries in a band of diagonals."""
    row, e = entries(A.begin, A.end)
    kept = e[within(row, A.indices[e], lower, upper)]
    new_indices[:], new_values[:] = A.indices[kept], values[kept]


@kernel_of(operations.put, Rows)
def put(
    executor: Executor, A: Rows, offset: int, target: Array, new_indices: Array, new_values: Array
) -> None:
    """Copy the entries of each row to their positions."""
    row, e = entries(A.begin, A.end)
    to = e - A.begin[row] + target[row]
    new_indices[to], new_values[to] = A.indices[e] + offset, A.values[e]


def compared(comparison: int, a: Array, b: Any) -> Array:
    """Return where a comparison holds; complex numbers compare by real, then imaginary part."""
    name = operations.COMPARISONS[comparison]
    function: np.ufunc = getattr(np, name)
    if a.dtype.kind != "c" or name in ("equal", "not_equal"):
        return function(a, b)
    b = np.broadcast_to(np.asarray(b, a.dtype), a.shape)
    low, high = (a, b) if name.startswith("less") else (b, a)
    least = (low.real < high.real) | ((low.real == high.real) & (low.imag < high.imag))
    return least | (a == b) if name.endswith("equal") else least


@kernel_of(operations.count_compared, Rows, Rows)
def count_compared(
    executor: Executor, one: Rows, two: Rows, comparison: int, lengths: Array, total: Array
) -> None:
    """Count the columns in which the comparison holds."""
    entries = union_entries(one, two)
    selected(lengths, total, entries.row, compared(comparison, entries.first, entries.second))


@kernel_of(operations.compare, Rows, Rows)
def compare(
    executor: Executor, one: Rows, two: Rows, comparison: int, target: Array, new_indices: Array
) -> None:
    """List the columns in which the comparison holds."""
    entries = union_entries(one, two)
    new_indices[:] = entries.column[compared(comparison, entries.first, entries.second)]


def larger_or_smaller(larger: int, a: Array, b: Array) -> Array:
    """Return the element-wise maximum or minimum of two arrays; NaN if either is NaN."""
    made: Array = (np.maximum if larger else np.minimum)(a, b)
    return made


@kernel_of(operations.count_extremes, Rows, Rows)
def count_extremes(
    executor: Executor, one: Rows, two: Rows, larger: int, lengths: Array, total: Array
) -> None:
    """Count the columns with a nonzero maximum or minimum."""
    entries = union_entries(one, two)
    extremes = larger_or_smaller(larger, entries.first, entries.second)
    selected(lengths, total, entries.row, extremes != 0)


@kernel_of(operations.extremes, Rows, Rows)
def extremes_of_both(
    executor: Executor,
    one: Rows,
    two: Rows,
    larger: int,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """List the nonzero maxima or minima."""
    entries = union_entries(one, two)
    extremes = larger_or_smaller(larger, entries.first, entries.second)
    new_indices[:], new_values[:] = entries.column[extremes != 0], extremes[extremes != 0]


@kernel(operations.at)
def at(
    executor: Executor,
    rows: Array,
    columns: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    y: Array,
) -> None:
    """Add up the entries of each row in the given column."""
    row, e = entries(indptr[rows], indptr[1:][rows])
    here = indices[e] == columns[row]
    y[:] = 0
    np.add.at(y, row[here], values[e[here]])


@kernel_of(operations.count_compared_number, Rows)
def count_compared_number(
    executor: Executor, A: Rows, number: complex, comparison: int, lengths: Array, total: Array
) -> None:
    """Count the entries that satisfy the comparison."""
    row, e = entries(A.begin, A.end)
    selected(lengths, total, row, compared(comparison, A.values[e], A.values.dtype.type(number)))


@kernel_of(operations.compare_number, Rows)
def compare_number(
    executor: Executor, A: Rows, number: complex, comparison: int, target: Array, new_indices: Array
) -> None:
    """List the columns of the entries that satisfy the comparison."""
    _, e = entries(A.begin, A.end)
    new_indices[:] = A.indices[e[compared(comparison, A.values[e], A.values.dtype.type(number))]]


@kernel(operations.kron_pointers)
def kron_pointers(
    executor: Executor, indptr: Array, other_indptr: Array, other_rows: int, new_indptr: Array
) -> None:
    """Compute row pointers: multiply the row lengths of both matrices."""
    lengths, others = np.diff(indptr), np.diff(other_indptr)
    new_indptr[0] = 0
    np.cumsum(np.multiply.outer(lengths, others).reshape(-1), out=new_indptr[1:])


@kernel(operations.shift)
def shift(executor: Executor, indptr: Array, by: int, new_indptr: Array) -> None:
    """Add a constant to row pointers."""
    new_indptr[...] = indptr + indptr.dtype.type(by)


@kernel(operations.contract)
def contract(
    executor: Executor,
    begin: Array,
    end: Array,
    first: Array,
    second: Array,
    x: Array,
    y: Array,
    sums: Array,
) -> None:
    """Set sums_i = the sum of products of the pairs of numbers that row i lists."""
    row, e = entries(begin, end)
    found, totals = by_place(x[first[e]] * y[second[e]], row)
    sums[:] = 0
    sums[row[found]] = totals


@kernel_of(operations.kron, Rows, Rows)
def kron(
    executor: Executor,
    A: Rows,
    B: Rows,
    other_rows: int,
    width: int,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Multiply each entry of a row by all entries of a row of the other matrix."""
    i, k = np.divmod(np.arange(target.size), max(other_rows, 1))
    factors, e = entries(A.begin[i], A.end[i])
    long = (B.end - B.begin)[k[factors]].astype(np.int64)
    pair, f = entries(B.begin[k[factors]], B.begin[k[factors]] + long)
    order = np.arange(pair.size)
    row = factors[pair]
    first = np.cumsum(np.bincount(row, minlength=target.size)) - np.bincount(
        row, minlength=target.size
    )
    to = order - first[row] + target[row]
    new_indices[to] = A.indices[e[pair]].astype(np.int64) * width + B.indices[f]
    with np.errstate(invalid="ignore", over="ignore"):
        new_values[to] = A.values[e[pair]] * B.values[f]


class BlockedEntries(NamedTuple):
    """The blocks with an entry in order of rows, and the place of each entry.

    Attributes
    ----------
    block_row, block_column : array, shape (blocks,)
        The row and the column of each block, counted in blocks.
    row, block : array, shape (nnz,)
        The row and the block of each entry.
    """

    block_row: Array
    block_column: Array
    row: Array
    block: Array


def blocked_entries(indptr: Array, indices: Array, height: int, width: int) -> BlockedEntries:
    """Return the blocks of ``height`` rows and ``width`` columns that have an entry."""
    row, _ = entries(indptr[:-1], indptr[1:])
    order = np.lexsort((indices // width, row // height))
    places = np.stack([row // height, indices // width])[:, order]
    new = np.ones(row.size, bool)
    new[1:] = np.any(places[:, 1:] != places[:, :-1], axis=0)
    block = np.empty(row.size, np.int64)
    block[order] = np.cumsum(new) - 1
    return BlockedEntries(places[0, new], places[1, new], row, block)


@kernel(operations.count_blocks)
def count_blocks(
    executor: Executor,
    indptr: Array,
    indices: Array,
    height: int,
    width: int,
    lengths: Array,
    total: Array,
) -> None:
    """Count the blocks of each block row."""
    block_row = blocked_entries(indptr, indices, height, width).block_row
    lengths[:] = np.bincount(block_row, minlength=lengths.size)
    total[0] = block_row.size


@kernel(operations.fill_blocks)
def fill_blocks(
    executor: Executor,
    lengths: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    height: int,
    width: int,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Store each entry in its block; other elements of a block are 0."""
    blocked = blocked_entries(indptr, indices, height, width)
    new_indices[:] = blocked.block_column
    new_values[:] = 0
    blocks = new_values.reshape(-1, height, width)
    blocks[blocked.block, blocked.row % height, indices % width] = values
