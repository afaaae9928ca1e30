"""Incomplete factorizations, by rows or by sweeps, and triangular substitution."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import parilu, triangular
from .sums import squares
from .table import kernel


@kernel(parilu.sweep)
def sweep(
    executor: Executor,
    indptr: Array,
    indices: Array,
    rows: Array,
    columns: Array,
    entries: Array,
    diagonal: Array,
    a: Array,
    v: Array,
    next: Array,
    change: Array,
) -> None:
    """Compute every entry of the factors from the previous sweep's values."""
    for e in range(indices.size):
        i, j = rows[e], indices[e]
        row = slice(indptr[i], indptr[i + 1])
        column = entries[columns[j] : columns[j + 1]]
        common, left, below = np.intersect1d(indices[row], rows[column], return_indices=True)
        inside = common < min(i, j)
        value = a[e].copy()
        for x, y in zip(left[inside], below[inside], strict=True):
            value -= v[indptr[i] + x] * v[column[y]]
        next[e] = value / v[diagonal[j]] if i > j else value
    change[:] = np.sqrt(squares(next - v))


@kernel(triangular.factorize)
def factorize(executor: Executor, indptr: Array, indices: Array, diagonal: Array, v: Array) -> None:
    """Eliminate row by row; drop entries outside of the pattern."""
    for i in range(diagonal.size):
        row = slice(indptr[i], indptr[i + 1])
        for q in range(indptr[i], diagonal[i]):
            above = indices[q]
            v[q] /= v[diagonal[above]]
            rest = slice(diagonal[above] + 1, indptr[above + 1])
            _, here, there = np.intersect1d(indices[row], indices[rest], return_indices=True)
            v[indptr[i] + here] -= v[q] * v[rest][there]


@kernel(triangular.levels)
def levels(executor: Executor, indptr: Array, indices: Array, upper: int, level: Array) -> None:
    """Set each row's level to one more than the largest level that it depends on."""
    order = range(level.size)
    for i in reversed(order) if upper else order:
        row = indices[indptr[i] : indptr[i + 1]]
        level[i] = np.max(level[_needed(row, i, upper)] + 1, initial=0)


@kernel(triangular.level)
def level(
    executor: Executor,
    rows: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    inverse: Array,
    factor: complex,
    upper: int,
    x: Array,
) -> None:
    """Solve the rows of one level, which do not depend on one another."""
    for i in rows:
        entries = slice(indptr[i], indptr[i + 1])
        row = indices[entries]
        part = (row > i) if upper else (row < i)
        x[i] = inverse[i] * (x[i] + factor * (data[entries][part] @ x[row[part]]))


@kernel(triangular.substitute)
def substitute(executor: Executor, rows: Array, bounds: Array, *arguments: Any) -> None:
    """Solve one row after the other."""
    level(executor, rows, *arguments)


@kernel(triangular.lanes)
def lanes(executor: Executor, *arguments: Any) -> None:
    """Solve one row after the other, as work-groups of one thread would."""
    indptr, upper = arguments[6], arguments[11]
    rows = np.arange(indptr.size - 1)
    level(executor, rows[::-1] if upper else rows, *arguments[6:])


@kernel(triangular.threshold)
def threshold(
    executor: Executor,
    indptr: Array,
    indices: Array,
    a: Array,
    drop: float,
    fill: int,
    lower_length: Array,
    lower_indices: Array,
    lower: Array,
    upper_length: Array,
    upper_indices: Array,
    upper: Array,
) -> None:
    """Eliminate row by row; drop small entries, and keep only the largest ones."""
    for i in range(lower_length.size):
        entries = slice(indptr[i], indptr[i + 1])
        row = dict(zip(indices[entries].tolist(), a[entries], strict=True))
        smallest = lower.real.dtype.type(drop) * np.sqrt(squares(a[entries].reshape(-1, 1))[0])
        left = sorted(j for j in row if j < i)
        while left:
            k = heapq.heappop(left)
            first = k * (fill + 1)
            row[k] = row[k] / upper[first]
            if abs(row[k]) < smallest:
                del row[k]
                continue
            for q in range(first + 1, first + upper_length[k]):
                j = int(upper_indices[q])
                if j not in row:
                    row[j] = upper.dtype.type(0)
                    if j < i:
                        heapq.heappush(left, j)
                row[j] -= row[k] * upper[q]
        halves = (lower_indices, lower, i * fill), (upper_indices, upper, i * (fill + 1) + 1)
        upper_indices[i * (fill + 1)], upper[i * (fill + 1)] = i, row.get(i, 0)
        for (to_indices, to, at), below in zip(halves, (True, False), strict=True):
            half = {j: value for j, value in row.items() if (j < i if below else j > i)}
            large = [j for j, value in half.items() if not abs(value) < smallest and value != 0]
            kept = sorted(sorted(large, key=lambda j: (-abs(half[j]), j))[:fill])
            to_indices[at : at + len(kept)] = kept
            to[at : at + len(kept)] = [half[j] for j in kept]
            (lower_length if below else upper_length)[i] = len(kept) + (not below)


def _needed(row: Array, i: int, upper: int) -> Array:
    return row[row > i] if upper else row[row < i]
