"""The set-up of multigrid; entries are listed with their rows and summed in this order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.executor import Array, Executor
from ...core.operations import coarsen as operations
from .rows import entries
from .table import RowPattern, Rows, kernel, kernel_of


def size_of(values: Array) -> Array:
    """Return |re a| + |im a|, which needs neither a root nor a product."""
    return np.abs(values.real) + np.abs(values.imag) if values.dtype.kind == "c" else np.abs(values)


def sums_of(rows: int, row: Array, terms: Array) -> Array:
    """Return the sum of the terms of each row, added one after the other."""
    sums = np.zeros(rows, terms.dtype)
    np.add.at(sums, row, terms)
    return sums


def largest_of(rows: int, row: Array, terms: Array) -> Array:
    """Return the largest term of each row, or 0 if it is negative."""
    result = np.zeros(rows, terms.dtype)
    np.maximum.at(result, row, terms)
    return result


def diagonal_of(row: Array, columns: Array, values: Array, rows: int) -> Array:
    """Return the values on the diagonal."""
    on = row == columns
    return sums_of(rows, row[on], values[on])


def hashed(number: Array) -> Array:
    """Return a permutation of the 32-bit numbers (the finalizer of MurmurHash3)."""
    x = number.astype(np.uint32) + np.uint32(0x9E3779B9)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    return (x ^ (x >> np.uint32(16))).astype(np.int64)


def count(row: Array, lengths: Array, total: Array) -> None:
    """Count the entries of each row."""
    lengths[:] = np.bincount(row, minlength=lengths.size)
    total[0] = lengths.sum(dtype=np.int64)


def fill(columns: Array, values: Array, new_indices: Array, new_values: Array) -> None:
    """Store the entries of a new matrix, listed by rows."""
    new_indices[: columns.size], new_values[: columns.size] = columns, values


@kernel(operations.absolute_sums)
def absolute_sums(executor: Executor, begin: Array, end: Array, values: Array, y: Array) -> None:
    """Add up the magnitudes of each row's values."""
    row, e = entries(begin, end)
    y[:] = sums_of(begin.size, row, size_of(values[e]))


@kernel_of(operations.invert_sums, Rows)
def invert_sums(executor: Executor, A: Rows, inverse: Array, bad: Array) -> None:
    """Divide the sign of the diagonal by the row's sum of magnitudes."""
    row, e = entries(A.begin, A.end)
    sums = sums_of(A.begin.size, row, size_of(A.values[e]))
    d = diagonal_of(row, A.indices[e], A.values[e], A.begin.size)
    with np.errstate(all="ignore"):
        inverted = sums.dtype.type(1) / sums
        length = np.abs(d)
        sign = np.where(length > 0, d.conj() / np.where(length > 0, length, 1), 1)
    usable = (sums > 0) & np.isfinite(sums) & np.isfinite(inverted) & np.isfinite(length)
    inverse[:] = np.where(usable, inverted * np.where(usable, sign, 1), 0)
    bad[0] = np.count_nonzero(~usable)


@kernel(operations.radius)
def radius(
    executor: Executor, begin: Array, end: Array, indices: Array, values: Array, y: Array
) -> None:
    """Divide a row's sum of magnitudes by the magnitude of its diagonal entry."""
    row, e = entries(begin, end)
    sums = sums_of(begin.size, row, size_of(values[e]))
    d = size_of(diagonal_of(row, indices[e], values[e], begin.size))
    y[:] = np.where(d > 0, sums / np.where(d > 0, d, 1), 0)


@kernel_of(operations.balanced, Rows)
def balanced(executor: Executor, A: Rows, least: float, most: float, balanced: Array) -> None:
    """Count rows with nearly zero sum and mostly negative off-diagonal entries."""
    row, e = entries(A.begin, A.end)
    off, terms = row != A.indices[e], A.values[e].real
    d = sums_of(A.begin.size, row[~off], terms[~off])
    row, terms = row[off], terms[off]
    negative = sums_of(A.begin.size, row, np.where(terms < 0, -terms, 0))
    positive = sums_of(A.begin.size, row, np.where(terms < 0, 0, terms))
    with np.errstate(all="ignore"):
        s, half = negative - positive, positive + positive <= negative
        bound = (d > 0) & (s >= d.dtype.type(least) * d) & (s <= d.dtype.type(most) * d)
    balanced[0] = np.count_nonzero(bound & half)


@kernel(operations.start)
def start(executor: Executor, first: int, x: Array) -> None:
    """Scale hashes to numbers between -1 and 1."""
    real = real_dtype(x.dtype).type
    x[:] = hashed(first + np.arange(x.size)).astype(real) / real(2.0**31) - real(1)


@kernel(operations.power)
def power(
    executor: Executor, begin: Array, end: Array, indices: Array, values: Array, x: Array, y: Array
) -> None:
    """Multiply by the matrix, then divide by the diagonal."""
    row, e = entries(begin, end)
    products = sums_of(begin.size, row, values[e] * x[indices[e]])
    d = diagonal_of(row, indices[e], values[e], begin.size)
    y[:] = np.where(d != 0, products / np.where(d != 0, d, 1), 0)


# ---- strength of connection


def _strong(begin: Array, end: Array, indices: Array, values: Array, theta: float) -> Any:
    row, e = entries(begin, end)
    rows, column, a = begin.size, indices[e], values[e]
    d = diagonal_of(row, column, a, rows)[row]
    if a.dtype.kind == "c":
        towards = -(a.real * d.real + a.imag * d.imag)
    else:
        towards = np.where(d < 0, a, -a)
    towards = np.where(row == column, 0, towards)
    largest = largest_of(rows, row, towards)
    return row, e, (towards > 0) & (towards >= a.real.dtype.type(theta) * largest[row])


@kernel_of(operations.count_strong, Rows)
def count_strong(executor: Executor, A: Rows, theta: float, lengths: Array, total: Array) -> None:
    """Count the entries of at least theta times the row's largest entry."""
    row, _, keep = _strong(A.begin, A.end, A.indices, A.values, theta)
    count(row[keep], lengths, total)


@kernel_of(operations.strong, Rows)
def strong(
    executor: Executor, A: Rows, theta: float, target: Array, new_indices: Array, new_values: Array
) -> None:
    """Copy the entries of at least theta times the row's largest entry."""
    _, e, keep = _strong(A.begin, A.end, A.indices, A.values, theta)
    fill(A.indices[e[keep]], A.values[e[keep]], new_indices, new_values)


# ---- coarse and fine rows


@kernel(operations.rank)
def rank(
    executor: Executor,
    begin: Array,
    end: Array,
    first: int,
    key: Array,
    state: Array,
    undecided: Array,
) -> None:
    """Order rows by the number of rows that depend on them, then by a hash."""
    lengths = (end - begin).astype(np.int64)
    key[:] = (lengths << 32) + hashed(first + np.arange(begin.size))
    state[:] = np.where(lengths > 0, 0, -1)
    undecided[0] = np.count_nonzero(lengths)


@kernel_of(operations.select, RowPattern, RowPattern)
def select(
    executor: Executor, A: RowPattern, B: RowPattern, key: Array, state: Array, next: Array
) -> None:
    """Make rows coarse that have a larger key than all of their undecided neighbours."""
    rival = np.full(A.begin.size, -1, np.int64)
    for first, last, columns in ((A.begin, A.end, A.indices), (B.begin, B.end, B.indices)):
        row, e = entries(first, last)
        column = columns[e]
        np.maximum.at(rival, row, np.where(state[column] == 0, key[column], -1))
    own = state[: A.begin.size]
    next[:] = np.where((own == 0) & (key[: A.begin.size] >= rival), 1, own)


@kernel_of(operations.reject, RowPattern)
def reject(executor: Executor, A: RowPattern, state: Array, next: Array, undecided: Array) -> None:
    """Make rows fine that depend on a coarse row."""
    row, e = entries(A.begin, A.end)
    beside = np.zeros(A.begin.size, bool)
    np.logical_or.at(beside, row, state[A.indices[e]] == 1)
    own = state[: A.begin.size]
    next[:] = np.where((own == 0) & beside, -1, own)
    undecided[0] = np.count_nonzero(next == 0)


@kernel(operations.chosen)
def chosen(executor: Executor, state: Array, lengths: Array, total: Array) -> None:
    """Mark coarse rows."""
    lengths[:] = state == 1
    total[0] = lengths.sum(dtype=np.int64)


# ---- interpolation


def _nearest(begin: Array, end: Array, indices: Array, state: Array) -> Any:
    row, e = entries(begin, end)
    fine = (state[row] != 1) & (state[indices[e]] == 1)
    row, e = row[fine], e[fine]
    coarse = np.flatnonzero(state[: begin.size] == 1)
    # position -1 is the unit entry of a coarse row
    rows = np.concatenate([row, coarse])
    places = np.concatenate([e, np.full(coarse.size, -1)])
    order = np.argsort(rows, kind="stable")
    return rows[order], places[order]


@kernel_of(operations.count_nearest, Rows)
def count_nearest(
    executor: Executor, A: Rows, state: Array, number: Array, lengths: Array, total: Array
) -> None:
    """Count entries in coarse columns."""
    row, _ = _nearest(A.begin, A.end, A.indices, state)
    count(row, lengths, total)


@kernel_of(operations.nearest, Rows)
def nearest(
    executor: Executor,
    A: Rows,
    state: Array,
    number: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Divide the entries in coarse columns by their sum."""
    row, e = _nearest(A.begin, A.end, A.indices, state)
    unit = e < 0
    if unit.all():
        fill(number[row], np.ones(row.size, new_values.dtype), new_indices, new_values)
        return
    a = np.where(unit, A.values.dtype.type(1), A.values[e])
    sums, sizes = sums_of(A.begin.size, row, a), sums_of(A.begin.size, row, size_of(a))
    cancels = ~(size_of(sums) >= _rounding_of_rows(a) * sizes)
    sums = np.where(cancels, sizes.astype(a.dtype), sums)
    column = np.where(unit, row, A.indices[e])
    fill(number[column], a / sums[row], new_indices, new_values)


def _rounding_of_rows(values: Array) -> float:
    """Return the relative rounding error of the sum of a row that adds up to zero."""
    return 1e-5 if values.real.dtype == np.float32 else 1e-8


def _weights(
    begin: Array,
    end: Array,
    indices: Array,
    values: Array,
    strong_begin: Array,
    strong_end: Array,
    strong_indices: Array,
    state: Array,
    near: Array,
) -> tuple[list[tuple[int, Any]], list[int]]:
    """Return the new entries, row by row, and the number of new entries per row."""
    found: list[tuple[int, Any]] = []
    lengths = []
    for i in range(begin.size):
        before = len(found)
        if state[i] == 1:
            found.append((i, values.dtype.type(1)))
        else:
            found += _weights_of_row(
                i,
                indices[begin[i] : end[i]],
                values[begin[i] : end[i]],
                strong_indices[strong_begin[i] : strong_end[i]],
                near,
            )
        lengths.append(len(found) - before)
    return found, lengths


def _weights_of_row(i: int, columns: Array, values: Array, strong: Array, near: Array) -> Any:
    kept, at = [], 0
    divisor = diagonal = values.dtype.type(0)
    for j, a in zip(columns, values, strict=True):
        is_strong = at < strong.size and strong[at] == j
        at += is_strong
        if is_strong and near[j] < near[j + 1]:
            kept.append((int(j), a))
            continue
        divisor = divisor + a
        if j == i:
            diagonal = a
    least = _rounding_of_rows(values)
    if not size_of(np.asarray(divisor)) >= least * size_of(np.asarray(diagonal)):
        divisor = diagonal
    largest = size_of(np.array([a for _, a in kept], values.dtype)).max(initial=0)
    if not (size_of(np.asarray(divisor)) >= least * largest and largest > 0):
        return [(j, values.dtype.type(0)) for j, _ in kept]
    with np.errstate(all="ignore"):
        return [(j, -a / divisor) for j, a in kept]


@kernel_of(operations.count_weights, Rows, RowPattern)
def count_weights(
    executor: Executor,
    A: Rows,
    B: RowPattern,
    state: Array,
    near: Array,
    lengths: Array,
    total: Array,
) -> None:
    """Count the strong columns that interpolate."""
    pattern = (A.begin, A.end, A.indices, A.values, B.begin, B.end, B.indices, state, near)
    lengths[:] = _weights(*pattern)[1]
    total[0] = lengths.sum(dtype=np.int64)


@kernel_of(operations.weights, Rows, RowPattern)
def weights(
    executor: Executor,
    A: Rows,
    B: RowPattern,
    state: Array,
    near: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Divide strong entries by the sum of all other entries of the row."""
    pattern = (A.begin, A.end, A.indices, A.values, B.begin, B.end, B.indices, state, near)
    for place, (column, value) in enumerate(_weights(*pattern)[0]):
        new_indices[place], new_values[place] = column, value


@kernel(operations.count_largest)
def count_largest(
    executor: Executor,
    begin: Array,
    end: Array,
    values: Array,
    width: int,
    lengths: Array,
    total: Array,
) -> None:
    """Count the entries of each row, at most ``width``."""
    lengths[:] = np.minimum(end - begin, width)
    total[0] = lengths.sum(dtype=np.int64)


@kernel_of(operations.largest, Rows)
def largest(
    executor: Executor, A: Rows, width: int, target: Array, new_indices: Array, new_values: Array
) -> None:
    """Keep the largest entries of each row, and preserve its sum."""
    for i in range(A.begin.size):
        e = np.arange(A.begin[i], A.end[i])
        kept = e
        factor = A.values.dtype.type(1)
        if e.size > width:
            first = np.argsort(-size_of(A.values[e]), kind="stable")[:width]
            kept = e[np.sort(first)]
            whole = sums_of(1, np.zeros(e.size, np.int64), A.values[e])[0]
            part = sums_of(1, np.zeros(kept.size, np.int64), A.values[kept])[0]
            if size_of(np.asarray(part)) > 1e-3 * size_of(np.asarray(whole)):
                factor = whole / part
        to = slice(target[i], target[i] + kept.size)
        new_indices[to], new_values[to] = A.indices[kept], A.values[kept] * factor
