"""The inverse of the diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import InvalidMatrix
from ...core.formats import Diagonal, Matrix
from .base import Preconditioner

if TYPE_CHECKING:
    from ...core.executor import Array


class Jacobi(Preconditioner):
    """The inverse of the diagonal.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any format.

    Raises
    ------
    InvalidMatrix
        If the diagonal has a value without an inverse: a zero, one that is not finite, or one so
        small that its inverse overflows; names the row.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.preconditioners.Jacobi(wl.Csr(np.array([[4.0, 1.0], [1.0, 2.0]]))) @ np.ones(2)
    array([0.25, 0.5 ])
    """

    parts = ("inverse",)

    inverse: Diagonal

    def _setup(self, A: Matrix) -> None:
        self.inverse = inverse_diagonal(A, "Jacobi")

    def _refresh(self, A: Matrix) -> None:
        self.inverse.update_values(inverse_diagonal(A, "Jacobi").data)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.inverse._apply(x, y, alpha, beta)

    @property
    def T(self) -> Jacobi:
        """The inverse of the transpose's diagonal: the same."""
        return self

    @property
    def H(self) -> Jacobi:
        """The inverse of the diagonal of the conjugate transpose."""
        return self._remade(lambda part: part.H)


def inverse_diagonal(A: Matrix, who: str) -> Diagonal:
    """Return the inverse of the diagonal, made where the matrix is.

    Raises
    ------
    InvalidMatrix
        In the words of ``who`` asks, if a value has no inverse.
    """
    xp = A.executor.xp
    diagonal = A.diagonal()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = 1.0 / diagonal
        bad = ~(xp.isfinite(inverse) & xp.isfinite(diagonal))
    count = int(bad.sum())
    if count:
        row = int(xp.argmax(bad))
        raise InvalidMatrix(
            f"{who}: the diagonal has {diagonal[row]} in row {row} ({count} such rows); reorder "
            "the matrix or use another preconditioner"
        )
    return Diagonal._from_arrays(A.executor, A.shape, inverse)
