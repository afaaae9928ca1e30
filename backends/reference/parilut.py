"""Incomplete factors with a pattern found by sweeps; NumPy sums listed terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.distinct import distinct
from ...core.dtypes import is_complex, real_dtype
from ...core.executor import Array, Executor
from ...core.operations import parilut as operations
from .coarsen import hashed
from .rows import entries
from .table import Rows, kernel, kernel_of

#: The key of NaN, by the number of bytes of a real number.
NAN = {4: 0x7FC00000, 8: 0x7FF8000000000000}


def sizes(values: Array) -> Array:
    """Return moduli with every operation rounded: NumPy's last bit depends on the platform."""
    if not is_complex(values.dtype):
        return np.abs(values)
    x, y = np.abs(values.real), np.abs(values.imag)
    big, small = np.maximum(x, y), np.minimum(x, y)
    with np.errstate(all="ignore"):
        q = small / big
        made = big * np.sqrt(big.dtype.type(1) + q * q)
    return np.where((big == 0) | np.isinf(big) | np.isnan(big), big, made)


def keys(values: Array) -> Array:
    """Return integers in the order of the moduli."""
    size = sizes(values)
    width = real_dtype(values.dtype).itemsize
    bits = np.ascontiguousarray(size).view(f"i{width}").astype(np.int64)
    return np.where(np.isnan(size), NAN[width], bits)


def hashed_places(row: Array, column: Array) -> Array:
    """Return a 32-bit hash of each position."""
    return hashed(hashed(row) + column.astype(np.int64))


def product(a: Array, b: Array) -> Array:
    """Return products; for complex numbers, round the partial products before adding them."""
    if not is_complex(a.dtype):
        return a * b
    result = np.empty(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    result.real = a.real * b.real - a.imag * b.imag
    result.imag = a.real * b.imag + a.imag * b.real
    return result


def _below(begin: Array, end: Array, indices: Array) -> tuple[Array, Array, Array]:
    """Return rows, columns and positions of the entries below the diagonal."""
    row, e = entries(begin, end)
    below = indices[e] < row
    return row[below], indices[e][below].astype(np.int64), e[below]


def _candidates(patterns: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, list[Array]]:
    """Return rows and columns of the union, and each pattern's positions of them (-1 if absent)."""
    found = [_below(*pattern) for pattern in patterns]
    width = 1 + max((int(column.max(initial=-1)) for _, column, _ in found), default=0)
    numbers = [row * max(width, 1) + column for row, column, _ in found]
    every = distinct(np.concatenate(numbers))
    places = []
    for number, (_, _, e) in zip(numbers, found, strict=True):
        place = np.full(every.size, -1, np.int64)
        place[np.searchsorted(every, number)] = e
        places.append(place)
    return every // max(width, 1), every % max(width, 1), places


def _diagonal(row: Array, column: Array, values: Array, rows: int) -> Array:
    """Return the diagonal entries, 0 where absent."""
    d = np.zeros(rows, values.dtype)
    own = row == column
    d[row[own]] = values[own]
    return d


@kernel_of(operations.scaling, Rows)
def scaling(executor: Executor, A: Rows, scale: Array, phase: Array, bad: Array) -> None:
    """Compute the inverse roots of the diagonal's magnitudes, and the phases of the diagonal."""
    row, e = entries(A.begin, A.end)
    d = _diagonal(row, A.indices[e], A.values[e], A.begin.size)
    size = sizes(d)
    usable = size > 0
    scale[:], phase[:] = 1, 1
    scale[usable] = size.dtype.type(1) / np.sqrt(size[usable])
    phase[usable] = _over(d[usable], size[usable])
    bad[0] = np.count_nonzero(~np.isfinite(A.values[e]))


def _over(a: Array, b: Array) -> Array:
    """Divide numbers by real numbers, part by part."""
    if not is_complex(a.dtype):
        return a / b
    result = np.empty_like(a)
    result.real, result.imag = a.real / b, a.imag / b
    return result


@kernel_of(operations.measure, Rows)
def measure(executor: Executor, A: Rows, drop: float, d: Array, least: Array) -> None:
    """Compute each row's drop tolerance, and extract the diagonal."""
    row, e = entries(A.begin, A.end)
    d[:] = _diagonal(row, A.indices[e], A.values[e], A.begin.size)
    size, squares = sizes(A.values[e]), np.zeros_like(least)
    np.add.at(squares, row, size * size)
    least[:] = least.dtype.type(drop) * np.sqrt(squares)


@kernel(operations.shifted)
def shifted(
    executor: Executor, d: Array, phase: Array, shift: float, a: Array, inverse: Array
) -> None:
    """Add a multiple of the phases to the diagonal, and invert it."""
    a[:] = d + product(np.full(d.size, shift, d.dtype), phase)
    with np.errstate(all="ignore"):
        inverse[:] = 1 / a


@kernel(operations.scale_columns)
def scale_columns(
    executor: Executor,
    indices: Array,
    values: Array,
    d: Array,
    sign: float,
    conjugated: int,
    result: Array,
) -> None:
    """Multiply each entry by its column's number."""
    made = values.dtype.type(sign) * product(values, d[indices])
    result[:] = made.conj() if conjugated else made


@kernel(operations.unfit)
def unfit(
    executor: Executor, values: Array, smallest: float, largest: float, of_real: int, count: Array
) -> None:
    """Count entries outside of two bounds."""
    size = sizes(values)
    within = (size < largest) & ((values.real if of_real else size) > smallest)
    count[0] = np.count_nonzero(~within)


@kernel(operations.moved)
def moved(executor: Executor, values: Array, before: Array, limit: float, count: Array) -> None:
    """Count the values that changed by more than the limit."""
    with np.errstate(all="ignore"):
        count[0] = np.count_nonzero(~(sizes(values - before) <= limit))


@kernel(operations.count_candidates)
def count_candidates(executor: Executor, *arrays: Array) -> None:
    """Count the columns below the diagonal that any of the three matrices has in each row."""
    *patterns, lengths, total = arrays
    row, _, _ = _candidates([tuple(patterns[at : at + 3]) for at in (0, 3, 6)])
    lengths[:] = np.bincount(row, minlength=lengths.size)
    total[0] = lengths.sum(dtype=np.int64)


@kernel(operations.candidates)
def candidates(executor: Executor, *arrays: Array) -> None:
    """Set each candidate to the first matrix's value, or to the second's minus the third's."""
    *matrices, target, new_indices, new_values = arrays
    parts: list[Any] = [tuple(matrices[at : at + 4]) for at in (0, 4, 8)]
    row, column, places = _candidates([part[:3] for part in parts])
    x, a, p = (_at(part[3], place) for part, place in zip(parts, places, strict=True))
    first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=parts[0][0].size))])
    to = target[row] + np.arange(row.size) - first[row]
    new_indices[to] = column
    new_values[to] = np.where(places[0] >= 0, x, np.where(places[2] >= 0, a - p, a))


def _at(values: Array, place: Array) -> Array:
    if not values.size:
        return np.zeros(place.size, values.dtype)
    return np.where(place >= 0, values[place], values.dtype.type(0))


def _less_products(
    value: Array,
    rows: tuple[Array, Array, Array, Array],
    others: tuple[Array, Array, Array, Array],
    inverse: Array,
    conjugated: int,
) -> Array:
    """Subtract the products of entries of two rows with equal columns from each value."""
    begin, end, indices, x = rows
    of_x, e = entries(begin, end)
    of_y, f = entries(*others[:2])
    width = max(inverse.size, 1)
    mine = of_x.astype(np.int64) * width + indices[e]
    other = of_y.astype(np.int64) * width + others[2][f]
    shared, here, there = np.intersect1d(mine, other, assume_unique=True, return_indices=True)
    b = others[3][f[there]]
    terms = product(x[e[here]], b.conj() if conjugated else b)
    terms = product(terms, inverse[shared % width])
    value = value.copy()
    np.subtract.at(value, shared // width, terms)
    return value


@kernel(operations.sweep)
def sweep(
    executor: Executor,
    rows: Array,
    indices: Array,
    indptr: Array,
    x: Array,
    other_indptr: Array,
    other_indices: Array,
    other: Array,
    inverse: Array,
    a_indptr: Array,
    a_indices: Array,
    a: Array,
    conjugated: int,
    next: Array,
) -> None:
    """Subtract the product of a row and a column, up to the entry, from each entry of A."""
    j = indices.astype(np.int64)
    width = max(inverse.size, 1)
    of_a, e = entries(a_indptr[:-1], a_indptr[1:])
    known = of_a.astype(np.int64) * width + a_indices[e]
    wanted = rows.astype(np.int64) * width + j
    at = np.minimum(np.searchsorted(known, wanted), max(known.size - 1, 0))
    value = np.zeros(rows.size, x.dtype)
    if known.size:
        value = np.where(known[at] == wanted, a[e[at]], value)
    before = indptr[rows], np.arange(rows.size), indices, x
    column = other_indptr[j], other_indptr[j + 1], other_indices, other
    with np.errstate(all="ignore"):
        next[:] = _less_products(value, before, column, inverse, conjugated)


@kernel_of(operations.pivots, Rows, Rows)
def pivots(
    executor: Executor,
    A: Rows,
    B: Rows,
    a: Array,
    inverse: Array,
    conjugated: int,
    d: Array,
    next: Array,
) -> None:
    """Subtract the product of a row of each matrix from each diagonal entry, and invert it."""
    rows, others = (
        (A.begin, A.end, A.indices, A.values),
        (B.begin, B.end, B.indices, B.values),
    )
    with np.errstate(all="ignore"):
        d[:] = _less_products(a, rows, others, inverse, conjugated)
        if conjugated:
            d[:] = d.real
        next[:] = 1 / d


@kernel(operations.narrow)
def narrow(
    executor: Executor,
    rows: Array,
    indices: Array,
    values: Array,
    tie: Array,
    shift: int,
    rank: int,
    low: Array,
    reached: Array,
    above: Array,
) -> None:
    """Find the largest of eight bounds that at least ``rank`` keys reach."""
    key = keys(values)
    if tie[0] >= 0:
        key = np.where(key == tie[0], hashed_places(rows, indices), -1)
    steps = np.arange(1, 2**operations.BITS, dtype=np.int64) << shift
    counts = np.count_nonzero(key[:, None] - low[0] >= steps, axis=0)
    digit = int(np.count_nonzero(counts >= rank))
    low[0] += digit << shift
    if digit > 0:
        reached[0] = counts[digit - 1]
    if digit < steps.size:
        above[0] = counts[digit]


def _large(
    begin: Array,
    end: Array,
    indices: Array,
    values: Array,
    least: Array,
    of_column: int,
    low: Array,
    tie: Array,
) -> tuple[Array, Array]:
    """Return the rows of the kept entries, and their positions."""
    row, e = entries(begin, end)
    value, column = values[e], indices[e]
    key = keys(value)
    large = (key > low[0]) | ((key == low[0]) & (hashed_places(row, column) >= tie[0]))
    keep = large & (value != 0) & ~(sizes(value) < least[column if of_column else row])
    return row[keep], e[keep]


@kernel(operations.count_large)
def count_large(executor: Executor, *arrays: Any) -> None:
    """Count the kept entries of each row."""
    *matrix, lengths, total = arrays
    lengths[:] = np.bincount(_large(*matrix)[0], minlength=lengths.size)
    total[0] = lengths.sum(dtype=np.int64)


@kernel(operations.large)
def large(executor: Executor, *arrays: Any) -> None:
    """Copy the kept entries."""
    *matrix, target, new_indices, new_values = arrays
    row, e = _large(*matrix)
    first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=target.size - 1))])
    to = target[row] + np.arange(row.size) - first[row]
    new_indices[to], new_values[to] = matrix[2][e], matrix[3][e]
