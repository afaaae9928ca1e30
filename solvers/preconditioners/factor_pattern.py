"""The pattern of incomplete factors: the diagonal, both triangles, and the order of sweeps.

The pattern is computed by operations on the executor of the matrix, once for all values. Only
numbers of entries are copied to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.formats import Csr
from ...core.formats.arithmetic import add, matmul
from ...core.formats.rowwise import known_canonical, row_bounds
from ...core.operations import ilu, rows, scan
from .factors import identity

if TYPE_CHECKING:
    from ...core.executor import Array


class Sweep(NamedTuple):
    """A sorted pattern with a full diagonal, as ``parilu.sweep`` expects it.

    ``columns[j]:columns[j + 1]`` is the range of ``entries`` with the positions of column ``j``,
    ordered by rows; ``diagonal`` has the positions of the diagonal entries.
    """

    indptr: Array
    indices: Array
    rows: Array
    columns: Array
    entries: Array
    diagonal: Array


class FactorPattern:
    """The pattern of the factors for a level of fill-in.

    Parameters
    ----------
    A : Csr, shape (n, n)
        The matrix, with sorted rows without duplicates.
    level : int
        Level 0 adds the diagonal; level 1 also the fill-in of one elimination.
    by_rows : bool
        Whether factors are computed row by row, which needs no columns.
    hermitian : bool
        Whether the lower factor is the adjoint of the upper one, and has its pattern.

    Attributes
    ----------
    indptr, indices : array
        The pattern.
    diagonal : array, shape (n,)
        The positions of its diagonal entries.
    lower, upper : Csr
        The strict triangles, with arbitrary values.
    mirror : array or None
        For Hermitian factors: the position in the upper triangle of each entry of the lower one.
    sweep : Sweep or None
        The order of sweeps, if factors are not computed row by row.
    """

    def __init__(self, A: Csr, level: int, by_rows: bool, hermitian: bool) -> None:
        #: Number of entries of the matrix that defined the pattern.
        self.entries = A.nnz
        found = _located(A)
        if level or found.missing:
            A = _widened(A, level)
            found = _located(A)
        self.indptr, self.indices, self.diagonal = A.indptr, A.indices, found.diagonal
        self.upper = _triangle(A, found, upper=True)
        self.mirror: Array | None = None
        if hermitian:
            transposed, order = self.upper.transposed_pattern()
            self.mirror = order.astype(A.index_dtype)
            arrays = transposed.indices, transposed.indices, transposed.indptr
            self.lower = known_canonical(Csr._from_arrays(A.executor, A.shape, *arrays))
        else:
            self.lower = _triangle(A, found, upper=False)
        self.sweep = None if by_rows else _sweep(A, self.diagonal)

    @property
    def nnz(self) -> int:
        """Number of entries of both factors in one array."""
        return int(self.indices.shape[0])

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The first and the last position of each row's entries."""
        return self.indptr[:-1], self.indptr[1:]

    def fits(self, A: Csr) -> bool:
        """Return whether a matrix has the number of entries of the original one."""
        return self.entries == A.nnz

    def triangles(self, dtype: Any) -> tuple[Csr, Csr]:
        """Return a lower and an upper triangle with uninitialized values."""
        lower, upper = (
            part._with_data(part.executor.allocate((part.nnz,), dtype))
            for part in (self.lower, self.upper)
        )
        return lower, upper


class _Located(NamedTuple):
    """The diagonal of a matrix, and the number of entries on either side of it in each row."""

    diagonal: Array
    below: Array
    above: Array
    missing: int
    lower: int
    upper: int


def _located(A: Csr) -> _Located:
    executor, n, index = A.executor, A.shape[0], A.index_dtype
    diagonal, below, above = (executor.allocate((n,), index) for _ in range(3))
    totals = [executor.allocate((1,), np.int64) for _ in range(3)]
    executor.run(ilu.locate, *row_bounds(A), A.indices, diagonal, below, above, *totals)
    missing, lower, upper = (int(total[0]) for total in executor.transfer(*totals).read())
    return _Located(diagonal, below, above, missing, lower, upper)


def _triangle(A: Csr, located: _Located, *, upper: bool) -> Csr:
    """Return a strict triangle with arbitrary values."""
    executor, n, index = A.executor, A.shape[0], A.index_dtype
    first, length, count = located.diagonal + 1, located.above, located.upper
    if not upper:
        first, length, count = A.indptr[:-1], located.below, located.lower
    indptr, indices = executor.allocate((n + 1,), index), executor.allocate((count,), index)
    executor.run(scan.pointers, length, indptr)
    executor.run(ilu.part, first, length, A.indices, indptr, indices)
    # column indices serve as values, which saves memory
    return known_canonical(Csr._from_arrays(executor, A.shape, indices, indices, indptr))


def _widened(A: Csr, level: int) -> Csr:
    """Return a matrix with the pattern of a level's factors, and arbitrary values."""
    S = add(_with_ones(A, A.dtype), identity(A))  # positive numbers, without cancellation
    for _ in range(level):
        found = _located(S)
        lower, upper = (_triangle(S, found, upper=upper) for upper in (False, True))
        S = add(S, matmul(_with_ones(lower, A.dtype), _with_ones(upper, A.dtype)))
    return S


def _with_ones(A: Csr, dtype: Any) -> Csr:
    return A._with_data(A.executor.xp.ones(A.nnz, dtype=dtype))


def _sweep(A: Csr, diagonal: Array) -> Sweep:
    index = A.index_dtype
    row = A.executor.allocate((A.nnz,), index)
    A.executor.run(rows.number, *row_bounds(A), row)
    transposed, order = A.transposed_pattern()
    return Sweep(A.indptr, A.indices, row, transposed.indptr, order.astype(index), diagonal)
