"""Incomplete factors on a known pattern; entries are listed with their rows for NumPy."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import ilu as operations
from .rows import entries
from .table import RowPattern, Rows, kernel, kernel_of


@kernel_of(operations.locate, RowPattern)
def locate(
    executor: Executor,
    A: RowPattern,
    diagonal: Array,
    below: Array,
    above: Array,
    missing: Array,
    lower: Array,
    upper: Array,
) -> None:
    """Count the entries on each side of the diagonal."""
    row, e = entries(A.begin, A.end)
    column = A.indices[e]
    below[:] = np.bincount(row[column < row], minlength=A.begin.size)
    above[:] = np.bincount(row[column > row], minlength=A.begin.size)
    diagonal[:] = A.begin + below
    missing[0] = A.begin.size - np.unique(row[column == row]).size
    lower[0], upper[0] = below.sum(dtype=np.int64), above.sum(dtype=np.int64)


@kernel(operations.part)
def part(
    executor: Executor,
    first: Array,
    length: Array,
    indices: Array,
    target: Array,
    new_indices: Array,
) -> None:
    """Copy a contiguous run of entries of each row."""
    _, e = entries(first, first + length)
    _, to = entries(target[:-1], target[:-1] + length)
    new_indices[to] = indices[e]


@kernel_of(operations.scale, Rows, RowPattern)
def scale(
    executor: Executor,
    A: Rows,
    B: RowPattern,
    scale: Array,
    phase: Array,
    shift: float,
    v: Array,
    outside: Array,
) -> None:
    """Scale the entries of A that lie in the pattern, add the shift, and count the others."""
    (of_a, f), (row, e) = entries(A.begin, A.end), entries(B.begin, B.end)
    i, j = row, B.indices[e].astype(np.int64)
    width = 1 + max(int(j.max(initial=-1)), int(A.indices.max(initial=-1)))
    pattern, given = i * width + j, of_a * width + A.indices[f]
    at = np.searchsorted(pattern, given)
    inside = at < pattern.size
    inside[inside] = pattern[at[inside]] == given[inside]
    value = np.zeros(pattern.size, v.dtype)
    value[at[inside]] = A.values[f[inside]]
    value = value * scale[i] * scale[j]
    own = i == j
    value[own] += v.dtype.type(shift) * phase[i[own]]
    v[e] = value
    outside[0] = np.count_nonzero(~inside)


@kernel(operations.guess)
def guess(
    executor: Executor, rows: Array, indices: Array, diagonal: Array, a: Array, v: Array
) -> None:
    """Divide entries below the diagonal by their column's diagonal entry."""
    below = rows > indices
    v[:] = a
    v[below] = a[below] / a[diagonal[indices[below]]]


@kernel(operations.unfit)
def unfit(
    executor: Executor,
    begin: Array,
    end: Array,
    diagonal: Array,
    v: Array,
    smallest: float,
    largest: float,
    of_real: int,
    count: Array,
) -> None:
    """Count too small pivots and too large entries."""
    pivots = v[diagonal]
    above = (pivots.real if of_real else np.abs(pivots)) > smallest
    bounded = np.abs(v[entries(begin, end)[1]]) < largest
    count[0] = np.count_nonzero(~above) + np.count_nonzero(~bounded)


@kernel(operations.upper)
def upper(
    executor: Executor,
    diagonal: Array,
    end: Array,
    v: Array,
    target: Array,
    of_real: int,
    upper: Array,
    inverse: Array,
) -> None:
    """Divide entries above the diagonal by their row's pivot."""
    row, e = entries(diagonal + 1, end)
    _, to = entries(target[:-1], target[1:])
    factor = 1 / v[diagonal]
    inverse[:] = factor.real if of_real else factor
    upper[to] = -v[e] * factor[row]


@kernel(operations.lower)
def lower(
    executor: Executor, begin: Array, diagonal: Array, v: Array, target: Array, lower: Array
) -> None:
    """Copy the entries below the diagonal."""
    _, to = entries(target[:-1], target[1:])
    lower[to] = -v[entries(begin, diagonal)[1]]


@kernel(operations.adjoint)
def adjoint(executor: Executor, places: Array, upper: Array, lower: Array) -> None:
    """Copy the conjugates in transposed order."""
    lower[:] = upper[places].conj()


def _lost(after: Array, before: Array) -> int:
    return int(np.count_nonzero(~np.isfinite(after) | ((after == 0) != (before == 0))))


@kernel_of(operations.join, Rows, Rows)
def join(
    executor: Executor,
    lower: Rows,
    upper: Rows,
    inverse: Array,
    left: Array,
    right: Array,
    below: Array,
    above: Array,
    first: Array,
    lost: Array,
) -> None:
    """Divide the triangles by the pivots and the scaling."""
    row, e = entries(lower.begin, lower.end)
    _, f = entries(upper.begin, upper.end)
    first[:] = inverse * left
    below[e] = lower.values[e] / (inverse[lower.indices[e]] * left[row])
    above[f] = upper.values[f] / right[upper.indices[f]]
    lost[0] = (
        _lost(first, inverse) + _lost(below[e], lower.values[e]) + _lost(above[f], upper.values[f])
    )


@kernel_of(operations.rescale, Rows, Rows)
def rescale(
    executor: Executor,
    lower: Rows,
    upper: Rows,
    inverse: Array,
    left: Array,
    right: Array,
    below: Array,
    above: Array,
    between: Array,
    lost: Array,
) -> None:
    """Move the scaling from both sides to between the triangles."""
    row, e = entries(lower.begin, lower.end)
    i, f = entries(upper.begin, upper.end)
    between[:] = left * inverse * right
    below[e] = lower.values[e] * (left[lower.indices[e]] / left[row])
    above[f] = upper.values[f] * (right[i] / right[upper.indices[f]])
    lost[0] = (
        _lost(between, inverse)
        + _lost(below[e], lower.values[e])
        + _lost(above[f], upper.values[f])
    )
