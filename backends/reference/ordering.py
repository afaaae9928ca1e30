"""Orderings and colorings of rows and columns."""

from __future__ import annotations

import heapq

import numpy as np

from ...core.distinct import distinct
from ...core.executor import Array, Executor
from ...core.operations import ordering
from .table import kernel


@kernel(ordering.matching)
def matching(
    executor: Executor,
    indptr: Array,
    indices: Array,
    cost: Array,
    column: Array,
    u: Array,
    v: Array,
) -> None:
    """Match every row with a column through shortest augmenting paths."""
    n, cost = column.size, cost.real
    rows = [slice(indptr[i], indptr[i + 1]) for i in range(n)]
    row_of = np.full(n, -1, column.dtype)
    column[...] = -1
    least = np.full(n, np.inf, cost.dtype)
    np.minimum.at(least, indices, cost)
    v[...] = np.where(np.isfinite(least), least, 0)
    u[...] = 0
    for i, row in enumerate(rows):
        if indices[row].size == 0:
            continue
        reduced = cost[row] - v[indices[row]].real
        u[i] = reduced.min()
        tight = indices[row][(reduced == u[i].real) & (row_of[indices[row]] < 0)]
        if tight.size:
            column[i], row_of[tight[0]] = tight[0], i
    closed: dict[int, int] = {}
    closing: list[int] = []
    for unmatched in np.flatnonzero(column < 0):
        _augment(int(unmatched), rows, indices, cost, column, row_of, u, v, closed, closing)
    _shift(rows, indices, cost, column, u, v, closed, closing)


def _shift(
    rows: list[slice],
    indices: Array,
    cost: Array,
    column: Array,
    u: Array,
    v: Array,
    closed: dict[int, int],
    closing: list[int],
) -> None:
    """Make all entries feasible again, by a shift for the columns and rows of each search."""
    last = len(closing) + 1
    of_row = np.array([closed.get(j, last) for j in column.tolist()], np.int64)
    of_row[closing] = np.arange(1, last)
    of_column = np.array([closed.get(j, 0) for j in range(column.size)], np.int64)
    shifts = np.zeros(last + 1, cost.dtype)
    for i in np.argsort(-of_row, kind="stable").tolist():
        columns = indices[rows[i]]
        excess = u[i].real + v[columns].real - cost[rows[i]]
        for m, size in zip(of_column[columns].tolist(), excess, strict=True):
            if 0 < m < of_row[i]:
                shifts[m] = max(shifts[m], shifts[of_row[i]] + size)
    u += shifts[of_row]
    v -= shifts[of_column]


def _augment(
    first: int,
    rows: list[slice],
    indices: Array,
    cost: Array,
    column: Array,
    row_of: Array,
    u: Array,
    v: Array,
    closed: dict[int, int],
    closing: list[int],
) -> None:
    """Follow the shortest augmenting path from a row to a free column.

    Columns that a search without such a path has reached are closed to later ones: the rows matched
    to them have no entry in other columns.
    """
    distance: dict[int, float] = {}
    origin: dict[int, int] = {}
    done: set[int] = set()
    heap: list[tuple[float, int]] = []
    row, base = first, cost.dtype.type(0)
    end, least = -1, np.inf  # the nearest free column
    while True:
        for j, c in zip(indices[rows[row]].tolist(), cost[rows[row]], strict=True):
            length = base + (c - u[row].real - v[j].real)
            if j in done or j in closed or not length < min(distance.get(j, np.inf), least):
                continue
            distance[j], origin[j] = length, row
            if row_of[j] < 0:
                end, least = j, length
            else:
                heapq.heappush(heap, (length, j))
        while heap and heap[0][1] in done:
            heapq.heappop(heap)
        if not heap or not heap[0][0] < least:
            break
        _, nearest = heapq.heappop(heap)
        done.add(nearest)
        base, row = distance[nearest], int(row_of[nearest])
    if end < 0:
        closing.append(first)
        closed |= dict.fromkeys(done, len(closing))
        return
    length = distance[end]
    u[first] += length
    for j in done:
        v[j] += distance[j] - length
        u[row_of[j]] += length - distance[j]
    at = end
    while True:
        row = origin[at]
        before, column[row], row_of[at] = int(column[row]), at, row
        if row == first:
            return
        at = before


@kernel(ordering.colors)
def colors(executor: Executor, indptr: Array, indices: Array, color: Array) -> None:
    """Give every row the first color that no earlier neighbour has."""
    for i in range(color.size):
        row = indices[indptr[i] : indptr[i + 1]]
        taken = set(color[row[row < i]].tolist())
        color[i] = next(c for c in range(color.size) if c not in taken)


@kernel(ordering.fill)
def fill(
    executor: Executor,
    indptr: Array,
    indices: Array,
    order: Array,
    most: int,
    entries: Array,
    operations: Array,
) -> None:
    """Count fill-in: walk from each row's columns up the elimination tree to the row."""
    n = order.size
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    parent, seen, count = [-1] * n, [-1] * n, [1] * n
    found = 0
    for k, row in enumerate(order.tolist()):
        if found > most:
            break
        seen[k] = k
        found += 1
        for first in place[indices[indptr[row] : indptr[row + 1]]].tolist():
            j = first
            while j < k and seen[j] != k:
                parent[j] = k if parent[j] < 0 else parent[j]
                count[j] += 1
                found += 1
                seen[j] = k
                j = parent[j]
    entries[0], operations[0] = found, sum(length * length for length in count)


@kernel(ordering.search)
def search(executor: Executor, indptr: Array, indices: Array, start: int, level: Array) -> None:
    """Compute breadth-first search levels from ``start``."""
    if not 0 <= start < level.size or level[start] != -1:
        return
    reached = np.array([start])
    steps = 0
    while reached.size:
        level[reached] = steps
        counts = indptr[reached + 1] - indptr[reached]
        first = np.repeat(indptr[reached] - np.cumsum(counts) + counts, counts)
        neighbours = indices[first + np.arange(first.size)]
        reached = distinct(neighbours[level[neighbours] == -1])
        steps += 1


@kernel(ordering.substitution)
def substitution(
    executor: Executor, indptr: Array, indices: Array, row: Array, column: Array, count_out: Array
) -> None:
    """Order the rows with one remaining entry, as they become available."""
    n = row.size
    lines = np.repeat(np.arange(n), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    begin = np.searchsorted(indices[order], np.arange(n + 1))
    left = np.diff(indptr).astype(np.int64)
    total = np.zeros(n, np.int64)
    np.add.at(total, lines, indices)
    ready = np.flatnonzero(left == 1).tolist()
    count = 0
    for i in ready:
        if left[i] != 1:  # another row has used its last column
            continue
        j = total[i]
        row[count], column[count] = i, j
        count += 1
        for other in lines[order[begin[j] : begin[j + 1]]].tolist():
            total[other] -= j
            left[other] -= 1
            if left[other] == 1:
                ready.append(other)
    count_out[0] = count
