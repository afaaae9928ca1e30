"""Compute properties of a matrix before a system with it is solved."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import facts as operations
from .matrix import majors
from .table import kernel

#: Tolerance, in units of rounding, for the difference between an entry and its mirror image.
SLACK = 8


@kernel(operations.diagonal)
def diagonal(
    executor: Executor,
    d: Array,
    inverse: Array,
    replacement: complex,
    replaced: Array,
    positive: Array,
) -> None:
    """Invert the invertible diagonal blocks."""
    with np.errstate(all="ignore"):
        inverted = d.dtype.type(1) / d
    usable = np.isfinite(d) & np.isfinite(inverted)
    inverse[...] = np.where(usable, inverted, d.dtype.type(replacement))
    replaced[:] = np.count_nonzero(~usable, axis=0)
    positive[:] = np.count_nonzero(d.real > 0, axis=0)


@kernel(operations.repeated)
def repeated(executor: Executor, d: Array, equal: Array) -> None:
    """Compare every value with the first one."""
    equal[0] = np.count_nonzero(d == d[:1])


@kernel(operations.symmetry)
def symmetry(
    executor: Executor,
    data: Array,
    indices: Array,
    indptr: Array,
    rows: int,
    disorder: Array,
    mismatch: Array,
) -> None:
    """Compare every nonzero entry with its mirror image."""
    row, column = majors(indptr).astype(np.int64), indices.astype(np.int64)
    disorder[:] = np.count_nonzero((np.diff(row) == 0) & (np.diff(column) <= 0))
    if disorder.any():
        mismatch[:] = -1
        return
    image = np.searchsorted(row * rows + column, column * rows + row)
    image = np.minimum(image, max(row.size - 1, 0))
    stored = (row[image] == column) & (column[image] == row)
    value = np.where(stored[:, None], data[image], 0).conj()
    with np.errstate(all="ignore"):
        slack = SLACK * np.finfo(data.dtype).eps * (np.abs(data) + np.abs(value))
        differs = ~(np.abs(data - value) <= slack)
    upper, lower = (column > row)[:, None], (column < row)[:, None]
    nonzero = data != 0
    surplus = (nonzero & upper).sum(axis=0) - (nonzero & lower).sum(axis=0)
    counted = differs & (lower & nonzero | (row == column)[:, None])
    mismatch[:] = counted.sum(axis=0) + np.abs(surplus)


@kernel(operations.mirrored)
def mirrored(
    executor: Executor, begin: Array, end: Array, indices: Array, values: Array, mismatch: Array
) -> None:
    """Compare entries with their mirror images, as :func:`symmetry` does."""
    indptr = np.append(begin, end[-1:])
    disorder = np.zeros(1, np.int64)
    symmetry(executor, values[:, None], indices, indptr, begin.size, disorder, mismatch)


@kernel(operations.bounds)
def bounds(executor: Executor, indices: Array, low: Array, high: Array) -> None:
    """Compute the smallest and the largest index."""
    low[0], high[0] = (indices.min(), indices.max()) if indices.size else (0, -1)
