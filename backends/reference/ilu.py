"""Incomplete factors on a known pattern: entries are listed with their rows, and NumPy does it."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import ilu as operations
from .rows import entries
from .table import kernel


@kernel(operations.locate)
def locate(
    executor: Executor,
    begin: Array,
    end: Array,
    indices: Array,
    diagonal: Array,
    below: Array,
    above: Array,
    missing: Array,
    lower: Array,
    upper: Array,
) -> None:
    """Count the entries on either side of the diagonal."""
    row, e = entries(begin, end)
    column = indices[e]
    below[:] = np.bincount(row[column < row], minlength=begin.size)
    above[:] = np.bincount(row[column > row], minlength=begin.size)
    diagonal[:] = begin + below
    missing[0] = begin.size - np.unique(row[column == row]).size
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
    """Copy a run of entries of each row."""
    _, e = entries(first, first + length)
    _, to = entries(target[:-1], target[:-1] + length)
    new_indices[to] = indices[e]


@kernel(operations.scale)
def scale(
    executor: Executor,
    a_begin: Array,
    a_end: Array,
    a_indices: Array,
    a: Array,
    begin: Array,
    end: Array,
    indices: Array,
    scale: Array,
    phase: Array,
    shift: float,
    v: Array,
    outside: Array,
) -> None:
    """Look for the entries of the matrix in the pattern."""
    (of_a, f), (row, e) = entries(a_begin, a_end), entries(begin, end)
    i, j = row, indices[e].astype(np.int64)
    width = 1 + max(int(j.max(initial=-1)), int(a_indices.max(initial=-1)))
    pattern, given = i * width + j, of_a * width + a_indices[f]
    at = np.searchsorted(pattern, given)
    inside = at < pattern.size
    inside[inside] = pattern[at[inside]] == given[inside]
    value = np.zeros(pattern.size, v.dtype)
    value[at[inside]] = a[f[inside]]
    value = value * scale[i] * scale[j]
    own = i == j
    value[own] += v.dtype.type(shift) * phase[i[own]]
    v[e] = value
    outside[0] = np.count_nonzero(~inside)


@kernel(operations.guess)
def guess(
    executor: Executor, rows: Array, indices: Array, diagonal: Array, a: Array, v: Array
) -> None:
    """Divide entries below the diagonal by the diagonal entry of their column."""
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
    """Count entries outside of two bounds."""
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
    """Divide entries above the diagonal by the pivot of their row."""
    row, e = entries(diagonal + 1, end)
    _, to = entries(target[:-1], target[1:])
    factor = 1 / v[diagonal]
    inverse[:] = factor.real if of_real else factor
    upper[to] = -v[e] * factor[row]


@kernel(operations.lower)
def lower(
    executor: Executor, begin: Array, diagonal: Array, v: Array, target: Array, lower: Array
) -> None:
    """Take the entries below the diagonal."""
    _, to = entries(target[:-1], target[1:])
    lower[to] = -v[entries(begin, diagonal)[1]]


@kernel(operations.adjoint)
def adjoint(executor: Executor, places: Array, upper: Array, lower: Array) -> None:
    """Take conjugates in another order."""
    lower[:] = upper[places].conj()


def _lost(made: Array, given: Array) -> int:
    return int(np.count_nonzero(~np.isfinite(made) | ((made == 0) != (given == 0))))


@kernel(operations.join)
def join(
    executor: Executor,
    lower_begin: Array,
    lower_end: Array,
    lower_indices: Array,
    lower: Array,
    upper_begin: Array,
    upper_end: Array,
    upper_indices: Array,
    upper: Array,
    inverse: Array,
    left: Array,
    right: Array,
    below: Array,
    above: Array,
    first: Array,
    lost: Array,
) -> None:
    """Divide the triangles by pivots and scaling."""
    row, e = entries(lower_begin, lower_end)
    _, f = entries(upper_begin, upper_end)
    first[:] = inverse * left
    below[e] = lower[e] / (inverse[lower_indices[e]] * left[row])
    above[f] = upper[f] / right[upper_indices[f]]
    lost[0] = _lost(first, inverse) + _lost(below[e], lower[e]) + _lost(above[f], upper[f])


@kernel(operations.rescale)
def rescale(
    executor: Executor,
    lower_begin: Array,
    lower_end: Array,
    lower_indices: Array,
    lower: Array,
    upper_begin: Array,
    upper_end: Array,
    upper_indices: Array,
    upper: Array,
    inverse: Array,
    left: Array,
    right: Array,
    below: Array,
    above: Array,
    between: Array,
    lost: Array,
) -> None:
    """Move the scaling from both sides in between the triangles."""
    row, e = entries(lower_begin, lower_end)
    i, f = entries(upper_begin, upper_end)
    between[:] = left * inverse * right
    below[e] = lower[e] * (left[lower_indices[e]] / left[row])
    above[f] = upper[f] * (right[i] / right[upper_indices[f]])
    lost[0] = _lost(between, inverse) + _lost(below[e], lower[e]) + _lost(above[f], upper[f])
