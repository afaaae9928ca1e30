"""What the selection rules know of a matrix: how long its rows are."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .executor import Array, Executor


class RowStatistics(NamedTuple):
    """The row lengths of a sparse matrix in a few numbers."""

    rows: int
    columns: int
    nnz: int
    mean: float
    deviation: float
    longest: int
    empty: float

    def __str__(self) -> str:
        return (
            f"{self.rows} rows of {self.mean:.3g} +- {self.deviation:.3g} entries, "
            f"longest {self.longest}, {self.empty:.1%} empty"
        )


def row_statistics(executor: Executor, indptr: Array, columns: int) -> RowStatistics:
    """Return the statistics of the rows that ``indptr`` delimits."""
    return lengths_in_numbers(np, executor.to_host(indptr), columns)


def lengths_in_numbers(xp: Any, indptr: Array, columns: int) -> RowStatistics:
    """Return the same by ``xp``: NumPy, or what has its functions for ``indptr``.

    Sums and maxima alone: CuPy's mean and standard deviation were compiled for 6 seconds when a
    machine first met them.
    """
    m = int(indptr.size) - 1
    if m == 0:
        return RowStatistics(0, columns, 0, 0.0, 0.0, 0, 0.0)
    length = xp.diff(indptr.astype(np.int64))
    nnz = int(length.sum())
    mean = nnz / m
    away = length - mean
    return RowStatistics(
        rows=m,
        columns=columns,
        nnz=nnz,
        mean=mean,
        deviation=sqrt(float((away * away).sum()) / m),
        longest=int(length.max()),
        empty=1 - int(xp.minimum(length, 1).sum()) / m,
    )
