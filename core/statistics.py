"""Statistics of the row lengths of a matrix, for the selection rules."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .executor import Array, Executor


#: Rows that are processed at once: their lengths fit into a cache of 256 KiB.
ROWS_AT_ONCE = 1 << 14


class RowStatistics(NamedTuple):
    """The distribution of row lengths of a sparse matrix in a few numbers."""

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
    known = None if executor.scans is None else executor.scans.row_lengths(executor, indptr)
    if known is None:
        return lengths_in_numbers(executor.to_host(indptr), columns)
    return in_numbers(
        int(indptr.size) - 1, columns, int(indptr[-1]), known.squares, known.longest, known.filled
    )


def lengths_in_numbers(indptr: Array, columns: int) -> RowStatistics:
    """Return the statistics for a host array ``indptr``."""
    m = int(indptr.size) - 1
    nnz = int(indptr[-1]) - int(indptr[0]) if m else 0
    longest = squares = filled = 0
    for begin in range(0, m, ROWS_AT_ONCE):
        part = indptr[begin : begin + ROWS_AT_ONCE + 1]
        length = part[1:] - part[:-1]
        most = int(length.max())
        if most * nnz < 2**53:  # float64 holds the sums exactly
            wide = length.astype(np.float64)
            squares += int(np.einsum("i,i->", wide, wide))
        else:
            squares += sum(int(n) ** 2 for n in length)
        longest, filled = max(longest, most), filled + int(np.count_nonzero(length))
    return in_numbers(m, columns, nnz, squares, longest, filled)


def in_numbers(
    rows: int, columns: int, nnz: int, squares: int, longest: int, filled: int
) -> RowStatistics:
    """Return the statistics of rows from integer sums, so that they are equal on every executor.

    Parameters
    ----------
    squares : int
        The sum of the squared lengths.
    filled : int
        Number of nonempty rows.

    Examples
    --------
    >>> from wollemi.core.statistics import in_numbers
    >>> in_numbers(rows=4, columns=4, nnz=8, squares=20, longest=3, filled=4).deviation
    1.0
    """
    if rows == 0:
        return RowStatistics(0, columns, 0, 0.0, 0.0, 0, 0.0)
    return RowStatistics(
        rows=rows,
        columns=columns,
        nnz=nnz,
        mean=nnz / rows,
        deviation=sqrt(max(rows * squares - nnz * nnz, 0)) / rows,
        longest=longest,
        empty=1 - filled / rows,
    )
