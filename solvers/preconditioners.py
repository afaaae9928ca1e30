"""Preconditioners: operators that approximate an inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ..core.formats import Diagonal, Matrix
from ..core.linop import LinOp
from ..core.operator import as_linop


class Jacobi(Diagonal):
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

    def __init__(self, A: Any) -> None:
        operator = as_linop(A)
        if not isinstance(operator, Matrix):
            raise InvalidArgument(
                f"Jacobi needs a matrix to take the diagonal of, got {type(A).__name__}"
            )
        if operator.shape[0] != operator.shape[1]:
            raise ShapeMismatch(f"Jacobi needs a square matrix, got {operator.shape}")
        diagonal = np.array(operator.executor.to_host(operator.diagonal()))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            inverse = 1.0 / diagonal
        bad = np.flatnonzero(~np.isfinite(inverse) | ~np.isfinite(diagonal))
        if bad.size:
            raise InvalidMatrix(
                f"Jacobi: the diagonal has {diagonal[bad[0]]} in row {bad[0]} "
                f"({bad.size} such rows); reorder the matrix or use another preconditioner"
            )
        super().__init__(inverse, executor=operator.executor)


#: What ``M="..."`` may say.
BY_NAME = {"jacobi": Jacobi}


def preconditioner(M: Any, A: LinOp) -> Any:
    """Return the preconditioner that ``M`` names; what is not a name is returned as it is."""
    if not isinstance(M, str):
        return M
    if M == "none":
        return None
    try:
        return BY_NAME[M](A)
    except KeyError:
        known = ", ".join(["none", *BY_NAME])
        raise InvalidArgument(f"no preconditioner is called {M!r}; known: {known}") from None
