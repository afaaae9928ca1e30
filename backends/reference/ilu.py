"""Incomplete factors, by rows and by sweeps, and substitution with triangular matrices."""

from __future__ import annotations

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
    """Compute every entry of the factors from those of the sweep before."""
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
    """Eliminate row by row, and drop what falls outside of the pattern."""
    for i in range(diagonal.size):
        row = slice(indptr[i], indptr[i + 1])
        for q in range(indptr[i], diagonal[i]):
            above = indices[q]
            v[q] /= v[diagonal[above]]
            rest = slice(diagonal[above] + 1, indptr[above + 1])
            _, here, there = np.intersect1d(indices[row], indices[rest], return_indices=True)
            v[indptr[i] + here] -= v[q] * v[rest][there]


@kernel(triangular.forward)
def forward(executor: Executor, indptr: Array, indices: Array, data: Array, x: Array) -> None:
    """Add to every row what the rows above it give."""
    for i in range(x.shape[0]):
        _add(indptr, indices, data, x, i, indices[indptr[i] : indptr[i + 1]] < i)


@kernel(triangular.backward)
def backward(executor: Executor, indptr: Array, indices: Array, data: Array, x: Array) -> None:
    """Add to every row what the rows below it give, from the last row up."""
    for i in reversed(range(x.shape[0])):
        _add(indptr, indices, data, x, i, indices[indptr[i] : indptr[i + 1]] > i)


def _add(indptr: Array, indices: Array, data: Array, x: Array, i: int, part: Array) -> None:
    row = slice(indptr[i], indptr[i + 1])
    x[i] += data[row][part] @ x[indices[row][part]]
