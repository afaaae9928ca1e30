"""Compute several properties of a square matrix in one pass."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import summary as operations
from . import coarsen, facts
from .matrix import majors
from .table import Rows, kernel


@kernel(operations.square)
def square(
    executor: Executor,
    indptr: Array,
    indices: Array,
    values: Array,
    least: float,
    most: float,
    counts: Array,
    bound: Array,
) -> None:
    """Combine the kernels of the individual properties."""
    n = indptr.size - 1
    counts[:], bound[:] = 0, 0
    row = majors(indptr)
    counts[0] = np.count_nonzero((np.diff(row) == 0) & (np.diff(indices.astype(np.int64)) <= 0))
    counts[1] = np.count_nonzero(~np.isfinite(values))
    if counts[:2].any() or n == 0:
        return
    begin, end, one = indptr[:-1], indptr[1:], np.zeros(1, np.int64)
    facts.mirrored(executor, begin, end, indices, values, one)
    counts[2] = one[0] != 0
    d = np.zeros(n, values.dtype)
    on = row == indices
    d[row[on]] = values[on]
    facts.diagonal(executor, d[:, None], np.empty((n, 1), d.dtype), 1.0, counts[3:4], counts[4:5])
    facts.repeated(executor, d, counts[5:6])
    rows = Rows(begin, end, indices, values)
    coarsen.balanced(executor, rows, least, most, counts[6:7])
    radius = np.empty(n, bound.dtype)
    coarsen.radius(executor, begin, end, indices, values, radius)
    bound[0] = radius.max()
