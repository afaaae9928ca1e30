"""Substitution for matrices that are triangular after a permutation of rows and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.errors import InvalidMatrix
from ...core.operations import ordering
from ...core.registry import executor as executor_by_name
from ...core.registry import host_name
from .engine import Engine, EngineFactors, LogDeterminant

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.formats import Csr


class TriangularOrder(NamedTuple):
    """Permutations that make a matrix lower triangular.

    Attributes
    ----------
    rows, columns : array of int, shape (n,)
        The row and column indices in the new order.
    """

    rows: Array
    columns: Array


def triangular_order(A: Csr) -> TriangularOrder | None:
    """Return permutations that make a square matrix lower triangular, None without them.

    Parameters
    ----------
    A : Csr, shape (n, n)
        The matrix, on the host and without duplicates.

    Notes
    -----
    A row with one entry comes first. Its column is removed, and the next row with one remaining
    entry follows. Each entry is visited twice.
    """
    n, host = A.shape[0], executor_by_name(host_name())
    rows, columns = np.zeros(n, A.indices.dtype), np.zeros(n, A.indices.dtype)
    found = np.zeros(1, np.int64)
    host.run(ordering.substitution, A.indptr, A.indices, rows, columns, found)
    return TriangularOrder(rows, columns) if int(found[0]) == n else None


class Substitution(Engine):
    """Substitution by rows of a permuted triangular matrix, without a factorization."""

    name = "substitution"
    library = "substitution"
    licence = "BSD-3-Clause"
    orderings = ()

    _order: TriangularOrder | None = None

    @classmethod
    def objection(cls, executor: Executor) -> str:
        """Return why the engine cannot be used here: never."""
        return ""

    @property
    def executor(self) -> str:
        """The fastest executor of the host."""
        return host_name()

    @property
    def follows_exactly(self) -> bool:
        """True: the analysis does not depend on values."""
        return True

    def analyse(self, A: Csr) -> None:
        """Compute the permutations of rows and columns."""
        self._order = triangular_order(A.without_duplicates())

    def factorize(self, A: Csr) -> EngineFactors:
        """Permute the rows and columns.

        Raises
        ------
        InvalidMatrix
            If no permutation makes the matrix triangular, or if it is singular.
        """
        if self._order is None:
            raise InvalidMatrix(
                "Direct: no order of rows and columns makes the matrix triangular; use "
                "engine='auto'"
            )
        return Triangular(A.without_duplicates(), self._order)


class Triangular(EngineFactors):
    """A matrix that is permuted to lower triangular form."""

    def __init__(self, A: Csr, order: TriangularOrder) -> None:
        self._rows, self._columns = order
        self._lower: Csr = A[self._rows][:, self._columns]
        self._diagonal = np.asarray(self._lower.diagonal())
        if np.any(self._diagonal == 0):
            raise InvalidMatrix(
                "Direct: the matrix is triangular with a zero on its diagonal: it is singular; use "
                "least squares"
            )
        self.nnz = int(self._lower.nnz)
        self.notes = ["direct: the matrix is triangular after its rows and columns are permuted"]

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides."""
        before, after = self._rows, self._columns
        if transposed != "N":
            before, after = after, before
        solved = self._lower.solve_triangular(np.ascontiguousarray(b[before]), trans=transposed)
        x = np.empty_like(solved)
        x[after] = solved
        return x

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant from the diagonal and the signs of both permutations."""
        sizes = np.abs(self._diagonal)
        sign = np.prod(self._diagonal / sizes) if sizes.size else 1.0
        if (_transpositions(self._rows) + _transpositions(self._columns)) % 2:
            sign = -sign
        sign = sign if np.iscomplexobj(self._diagonal) else float(np.real(sign))
        return LogDeterminant(sign, float(np.sum(np.log(sizes))))


def _transpositions(order: Array) -> int:
    """Return the number of exchanges of a permutation, modulo two."""
    seen, cycles = np.zeros(order.size, bool), 0
    following = order.tolist()
    for first in range(order.size):
        if seen[first]:
            continue
        cycles += 1
        place = first
        while not seen[place]:
            seen[place] = True
            place = following[place]
    return int(order.size) - cycles
