"""Work on compressed rows: entries are listed with their rows, and NumPy does the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import rows as operations
from ...core.operations import scan
from .sums import by_place
from .table import kernel


@kernel(scan.pointers)
def pointers(executor: Executor, lengths: Array, indptr: Array) -> None:
    """Set indptr_i = the sum of the lengths before i."""
    indptr[0] = 0
    np.cumsum(lengths, out=indptr[1:])


def entries(begin: Array, end: Array) -> tuple[Array, Array]:
    """Return the row of each entry, and where it is."""
    lengths = (end - begin).astype(np.int64)
    row = np.repeat(np.arange(begin.size), lengths)
    first = np.cumsum(lengths) - lengths
    return row, np.arange(row.size) - first[row] + begin[row]


@kernel(operations.examine)
def examine(
    executor: Executor, begin: Array, end: Array, indices: Array, falls: Array, repeats: Array
) -> None:
    """Compare each entry with the one before it in its row."""
    row, e = entries(begin, end)
    later = e[1:][row[1:] == row[:-1]]
    falls[0] = np.count_nonzero(indices[later] < indices[later - 1])
    repeats[0] = np.count_nonzero(indices[later] == indices[later - 1])


@kernel(operations.falls)
def falls(executor: Executor, begin: Array, end: Array, falls: Array) -> None:
    """Count the rows that end before they begin."""
    falls[0] = np.count_nonzero(end < begin)


@kernel(operations.count_nonzeros)
def count_nonzeros(
    executor: Executor, begin: Array, end: Array, values: Array, lengths: Array, total: Array
) -> None:
    """Count the entries of each row that are not 0."""
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
    """Set y_i = what a function makes of the entries of row i, and of 0 if the row is not full."""
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
    """Use NumPy's maximum."""
    extremes(np.maximum, begin, end, values, width, y)


@kernel(operations.smallest)
def smallest(
    executor: Executor, begin: Array, end: Array, values: Array, width: int, y: Array
) -> None:
    """Use NumPy's minimum."""
    extremes(np.minimum, begin, end, values, width, y)


@kernel(operations.diagonal)
def diagonal(
    executor: Executor,
    begin: Array,
    end: Array,
    indices: Array,
    values: Array,
    offset: int,
    d: Array,
) -> None:
    """Set d_i = the sum of the entries of row i in column i + offset."""
    row, e = entries(begin, end)
    on = indices[e] == row + offset
    first, sums = by_place(values[e[on]], row[on])
    d[:] = 0
    d[row[on][first]] = sums


@kernel(operations.scale)
def scale(
    executor: Executor,
    begin: Array,
    end: Array,
    indices: Array,
    values: Array,
    dense: Array,
    row_step: int,
    column_step: int,
    result: Array,
) -> None:
    """Multiply each entry by the number of ``dense`` at its place."""
    row, e = entries(begin, end)
    at = row * row_step + indices[e].astype(np.int64) * column_step
    result[e] = values[e] * dense[at]


@kernel(operations.longest)
def longest(executor: Executor, begin: Array, end: Array, longest: Array) -> None:
    """Use NumPy's maximum."""
    longest[0] = np.max(end - begin, initial=0)


@kernel(operations.number)
def number(executor: Executor, begin: Array, end: Array, row: Array) -> None:
    """Set row_e = the row of entry e."""
    rows, e = entries(begin, end)
    row[e] = rows


@kernel(operations.lengths)
def lengths(executor: Executor, rows: Array, indptr: Array, lengths: Array, total: Array) -> None:
    """Set lengths_i = how many entries row rows_i has."""
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
    """Copy the entries of rows that are named."""
    _, e = entries(indptr[rows], indptr[rows + 1])
    new_indices[:], new_values[:] = indices[e], values[e]


@kernel(operations.drop_zeros)
def drop_zeros(
    executor: Executor,
    begin: Array,
    end: Array,
    indices: Array,
    values: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Copy the entries that are not 0."""
    _, e = entries(begin, end)
    kept = e[values[e] != 0]
    new_indices[:], new_values[:] = indices[kept], values[kept]


def union(
    begin: Array,
    end: Array,
    indices: Array,
    other_begin: Array,
    other_end: Array,
    other_indices: Array,
) -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """Return rows and columns of the places that one or both have, by rows, sorted.

    With them goes for each of the two where its entries are among these places, and which they are.
    """
    places, sides = [], []
    for b, f, columns in ((begin, end, indices), (other_begin, other_end, other_indices)):
        row, e = entries(b, f)
        places.append(np.stack([row, columns[e]]).astype(np.int64))
        sides.append(e)
    width = int(max((p[1].max(initial=-1) for p in places), default=-1)) + 1
    keys = [p[0] * width + p[1] for p in places]
    joined = np.unique(np.concatenate(keys))
    at = [(np.searchsorted(joined, key), e) for key, e in zip(keys, sides, strict=True)]
    return joined // max(width, 1), joined % max(width, 1), at


def products(
    begin: Array,
    end: Array,
    indices: Array,
    values: Array,
    other_begin: Array,
    other_end: Array,
    other_indices: Array,
    other_values: Array,
) -> tuple[Array, Array, Array]:
    """Return rows, columns and values of the entry-wise products that are not 0, in their order."""
    row, column, sides = union(begin, end, indices, other_begin, other_end, other_indices)
    factors = np.zeros((2, row.size), values.dtype)
    for factor, (at, e), data in zip(factors, sides, (values, other_values), strict=True):
        factor[at] = data[e]
    with np.errstate(invalid="ignore", over="ignore"):
        product = factors[0] * factors[1]
    kept = product != 0
    return row[kept], column[kept], product[kept]


@kernel(operations.count_products)
def count_products(executor: Executor, begin: Array, *arguments: Any) -> None:
    """Count the products of each row that are not 0."""
    *pair, lengths, total = arguments
    row, _, _ = products(begin, *pair)
    lengths[:] = np.bincount(row, minlength=begin.size)
    total[0] = row.size


@kernel(operations.multiply)
def multiply(executor: Executor, *arguments: Any) -> None:
    """Keep the products that are not 0."""
    *pair, _, new_indices, new_values = arguments
    _, new_indices[:], new_values[:] = products(*pair)


@kernel(operations.count_union)
def count_union(executor: Executor, begin: Array, *arguments: Any) -> None:
    """Count the places of each row."""
    *pair, lengths, total = arguments
    row, _, _ = union(begin, *pair)
    lengths[:] = np.bincount(row, minlength=begin.size)
    total[0] = row.size


@kernel(operations.add)
def add(
    executor: Executor,
    begin: Array,
    end: Array,
    indices: Array,
    values: Array,
    other_begin: Array,
    other_end: Array,
    other_indices: Array,
    other_values: Array,
    alpha: complex,
    beta: complex,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Put the terms of one matrix at their places, and add those of the other."""
    scalar = values.dtype.type
    _, column, sides = union(begin, end, indices, other_begin, other_end, other_indices)
    (at, e), (other_at, f) = sides
    new_indices[:], new_values[:] = column, 0
    new_values[at] = scalar(alpha) * values[e]
    new_values[other_at] += scalar(beta) * other_values[f]
