"""Aggregates of nodes: the matrix of nodes, their roots, and orthonormal bases on aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.executor import Array, Executor
from ...core.operations import coarsen as operations
from .coarsen import count, fill, hashed, size_of, sums_of
from .rows import entries
from .table import Rows, kernel, kernel_of

#: Keys of undecided rows are at least UNDECIDED, and keys of roots at least ROOT.
UNDECIDED, ROOT = 1 << 40, 2 << 40


def _coupled(
    begin: Array, end: Array, indices: Array, values: Array, d: Array, theta: float
) -> Any:
    row, e = entries(begin, end)
    column, size = indices[e], size_of(values[e])
    limit = size.dtype.type(theta)
    limit = limit * limit * size_of(d)[row] * size_of(d)[column]
    return row, e, (row != column) & (size > 0) & (size * size >= limit)


@kernel_of(operations.count_coupled, Rows)
def count_coupled(
    executor: Executor, A: Rows, d: Array, theta: float, lengths: Array, total: Array
) -> None:
    """Count the entries that are large relative to both of their diagonal entries."""
    row, _, keep = _coupled(A.begin, A.end, A.indices, A.values, d, theta)
    count(row[keep], lengths, total)


@kernel_of(operations.coupled, Rows)
def coupled(
    executor: Executor,
    A: Rows,
    d: Array,
    theta: float,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Copy the entries that are large relative to both of their diagonal entries."""
    _, e, keep = _coupled(A.begin, A.end, A.indices, A.values, d, theta)
    fill(A.indices[e[keep]], A.values[e[keep]], new_indices, new_values)


def _nodes(indptr: Array, indices: Array, values: Array, size: int, rows: int) -> Any:
    real = real_dtype(values.dtype).type
    result: list[dict[int, Any]] = []
    for i in range(rows):
        squares: dict[int, Any] = {}
        # blocks from left to right, and row by row within a block
        for row in range(i * size, i * size + size):
            for e in range(indptr[row], indptr[row + 1]):
                a, block = values[e], int(indices[e]) // size
                square = a.real * a.real + a.imag * a.imag if values.dtype.kind == "c" else a * a
                squares[block] = squares.get(block, real(0)) + square
        result.append(squares)
    return result


@kernel(operations.count_nodes)
def count_nodes(
    executor: Executor,
    indptr: Array,
    indices: Array,
    values: Array,
    size: int,
    lengths: Array,
    total: Array,
) -> None:
    """Count the blocks of each row of blocks."""
    found = _nodes(indptr, indices, values, size, lengths.size)
    lengths[:] = [len(squares) for squares in found]
    total[0] = lengths.sum(dtype=np.int64)


@kernel(operations.nodes)
def nodes(
    executor: Executor,
    indptr: Array,
    indices: Array,
    values: Array,
    size: int,
    lengths: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Compute the Frobenius norms of blocks, from left to right."""
    for i, squares in enumerate(_nodes(indptr, indices, values, size, lengths.size)):
        for place, block in enumerate(sorted(squares), start=int(target[i])):
            new_indices[place], new_values[place] = block, np.sqrt(squares[block])


@kernel(operations.spread)
def spread(
    executor: Executor, begin: Array, end: Array, indices: Array, key: Array, next: Array
) -> None:
    """Set next = the largest key of a row and its neighbours."""
    row, e = entries(begin, end)
    next[:] = key
    np.maximum.at(next, row, key[indices[e]])


@kernel(operations.decide)
def decide(executor: Executor, key: Array, spread: Array, next: Array, undecided: Array) -> None:
    """Make an undecided row a root if its own key is the largest, and rule out rows near a root."""
    open_ = (key >= UNDECIDED) & (key < ROOT)
    root = open_ & (spread == key)
    out = open_ & ~root & (spread >= ROOT)
    next[:] = np.where(root, key + UNDECIDED, np.where(out, key - UNDECIDED, key))
    undecided[0] = np.count_nonzero(open_ & ~root & ~out)


@kernel_of(operations.join, Rows)
def join(executor: Executor, A: Rows, label: Array, next: Array, total: Array) -> None:
    """Give each unlabeled row the label of its most strongly coupled labeled neighbour."""
    next[:] = label
    for i in np.flatnonzero(label < 0):
        best = -1.0
        for e in range(A.begin[i], A.end[i]):
            size = size_of(A.values[e : e + 1])[0]
            if label[A.indices[e]] >= 0 and size > best:
                best, next[i] = size, label[A.indices[e]]
    total[0] = np.count_nonzero(next < 0)


@kernel(operations.open_keys)
def open_keys(executor: Executor, begin: Array, end: Array, key: Array, undecided: Array) -> None:
    """Rule out rows without neighbours."""
    key[:] = hashed(np.arange(begin.size)) + np.where(end > begin, UNDECIDED, 0)
    undecided[0] = np.count_nonzero(end > begin)


@kernel(operations.roots)
def roots(executor: Executor, key: Array, lengths: Array, total: Array) -> None:
    """Mark roots."""
    lengths[:] = key >= ROOT
    total[0] = lengths.sum()


@kernel(operations.label)
def label(executor: Executor, lengths: Array, number: Array, label: Array) -> None:
    """Set label = the number of marked rows, and -1 elsewhere."""
    label[:] = np.where(lengths > 0, number[:-1], -1)


@kernel(operations.unknowns)
def unknowns(executor: Executor, label: Array, size: int, unknown: Array) -> None:
    """Give every unknown the label of its node."""
    unknown[:] = label[np.arange(unknown.size) // size]


@kernel(operations.count_basis)
def count_basis(
    executor: Executor, label: Array, columns: int, values: Array, lengths: Array, total: Array
) -> None:
    """Count the entries of rows with a label: one per column of the basis."""
    lengths[:] = np.where(label >= 0, columns, 0)
    total[0] = lengths.sum(dtype=np.int64)


@kernel(operations.basis)
def basis(
    executor: Executor,
    label: Array,
    columns: int,
    values: Array,
    target: Array,
    new_indices: Array,
    new_values: Array,
) -> None:
    """Copy the rows of values to the columns of their labels."""
    rows = np.flatnonzero(label >= 0)
    within = np.arange(columns)
    found = (label[rows, None] * columns + within).ravel()
    fill(found, values[(rows[:, None] * columns + within).ravel()], new_indices, new_values)


@kernel(operations.orthonormalize)
def orthonormalize(
    executor: Executor,
    begin: Array,
    end: Array,
    members: Array,
    size: int,
    columns: int,
    vectors: Array,
    basis: Array,
    coarse: Array,
) -> None:
    """Orthogonalize each column against the earlier ones (modified Gram-Schmidt)."""
    vectors, basis = vectors.reshape(-1, columns), basis.reshape(-1, columns)
    coarse = coarse.reshape(-1, columns, columns)
    eps = np.finfo(real_dtype(vectors.dtype)).eps
    for i in range(begin.size):
        nodes = members[begin[i] : end[i]].astype(np.int64)
        rows = (nodes[:, None] * size + np.arange(size)).ravel()
        Q = vectors[rows].copy()
        R = np.zeros((columns, columns), Q.dtype)
        for j in range(columns):
            before = _dot(Q[:, j], Q[:, j]).real
            for k in range(j):
                R[k, j] = _dot(Q[:, k], Q[:, j])
                Q[:, j] = Q[:, j] - R[k, j] * Q[:, k]
            after = _dot(Q[:, j], Q[:, j]).real
            if after > 64 * eps * before:
                R[j, j] = np.sqrt(after)
                Q[:, j] = Q[:, j] / R[j, j].real
            else:
                Q[:, j] = 0
        basis[rows], coarse[i] = Q, R


def _dot(x: Array, y: Array) -> Any:
    return sums_of(1, np.zeros(x.size, np.int64), x.conj() * y)[0]
