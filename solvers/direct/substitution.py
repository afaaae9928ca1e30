"""Substitution: matrices that are triangular after their rows and columns are permuted."""

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
    """Orders in which a matrix is lower triangular.

    Attributes
    ----------
    rows, columns : array of int, shape (n,)
        The rows and the columns in these orders.
    """

    rows: Array
    columns: Array


def triangular_order(A: Csr) -> TriangularOrder | None:
    """Return orders in which a square matrix is lower triangular, None if there are none.

    Parameters
    ----------
    A : Csr, shape (n, n)
        On the host, without duplicates.

    Notes
    -----
    A row with one entry comes first; its column is taken out, and the next row with one entry left
    follows. Each entry is visited twice.
    """
    n, host = A.shape[0], executor_by_name(host_name())
    rows, columns = np.zeros(n, A.indices.dtype), np.zeros(n, A.indices.dtype)
    found = np.zeros(1, np.int64)
    host.run(ordering.substitution, A.indptr, A.indices, rows, columns, found)
    return TriangularOrder(rows, columns) if int(found[0]) == n else None


class Substitution(Engine):
    """Substitution by rows in an order in which the matrix is triangular; nothing is factorized."""

    name = "substitution"
    library = "substitution"
    licence = "that of wollemi"
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
        """True: the analysis reads no values."""
        return True

    def analyse(self, A: Csr) -> None:
        """Find the orders of rows and columns."""
        self._order = triangular_order(A.without_duplicates())

    def factorize(self, A: Csr) -> EngineFactors:
        """Put the rows and columns in order.

        Raises
        ------
        InvalidMatrix
            If no order makes the matrix triangular, or it is singular.
        """
        if self._order is None:
            raise InvalidMatrix(
                "Direct: no order of rows and columns makes the matrix triangular; use "
                "engine='auto'"
            )
        return Triangular(A.without_duplicates(), self._order)


class Triangular(EngineFactors):
    """A matrix in an order in which it is lower triangular."""

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
        """Return the determinant from the diagonal and the signs of both orders."""
        sizes = np.abs(self._diagonal)
        sign = np.prod(self._diagonal / sizes) if sizes.size else 1.0
        if (_transpositions(self._rows) + _transpositions(self._columns)) % 2:
            sign = -sign
        sign = sign if np.iscomplexobj(self._diagonal) else float(np.real(sign))
        return LogDeterminant(sign, float(np.sum(np.log(sizes))))


def _transpositions(order: Array) -> int:
    """Return how many exchanges make an order, up to a multiple of two."""
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
