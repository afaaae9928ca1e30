"""Notes on the accuracy of solutions: large errors, and the rounding limit of a dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formats import Matrix
from ...core.notes import Note, Topic
from ...core.operands import as_block
from ...core.vector_conversions import vector_converter
from ...core.wording import percentage
from ..driver.constants import outside_of_range
from .kept import facts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.formats import Csr
    from ...core.linop import LinOp

#: Warn in the result when the estimated relative error of ``x`` exceeds this value.
LARGE_ERROR = 0.01

#: Treat the part of a right-hand side outside of the range as rounding error if its norm, relative
#: to that of ``b``, is below this value.
CONSISTENT = 1e-13


def about_error(error: float | None, condition: float | None) -> list[str]:
    """Return a note on a large estimated error, none if it is small or unknown.

    Parameters
    ----------
    error : float or None
        The estimated relative error of the solution.
    condition : float or None
        The estimated condition number of the matrix.
    """
    if error is None or not error > LARGE_ERROR:
        return []
    why = "" if condition is None else f" (condition number of at least {condition:.1g})"
    text = (
        f"the matrix is ill-conditioned{why}: x may be off by a relative error of {error:.1g} "
        "although the residual meets the tolerance; lower rtol, or scale the system"
    )
    return [Note(text, Topic.ERROR)]


def about_constants(A: LinOp, b: Any) -> list[str]:
    """Return a note if ``b`` is not in the range of a matrix that maps constants to zero.

    Parameters
    ----------
    A : LinOp, shape (n, n)
        The matrix; other operators have no note.
    b : array, shape (n,) or (n, k)
        Right-hand sides that the direct solver did not solve, or solved inaccurately.
    """
    if not isinstance(A, Matrix):
        return []
    facts = facts_of(A)
    if not (facts.hermitian and facts.annihilates_constants):
        return []
    block = np.asarray(A.executor.to_host(as_block(A.executor, b, A.shape[0], "b")))
    part = outside_of_range(block)
    if part < CONSISTENT:
        return []
    return [
        f"A maps constants to zero, so that it is singular, and {percentage(part)} of the length "
        "of b lies outside of its range; wl.solve(A, b) gives the shortest solution"
    ]


def rounding_of(A: LinOp, x: Any) -> NDArray[np.float64]:
    """Return the norms of ``|A| |x|`` times the unit roundoff, per column.

    Rounding ``x`` to its dtype alone leaves residuals of about this norm.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix. Its entries are copied to the host: only failed solves ask for this.
    x : array, shape (n,) or (n, k)
        A solution.

    Returns
    -------
    array, shape (k,)
        The norm for each column.
    """
    (block,) = vector_converter(A).to_blocks(x=x)
    assert block is not None
    rows: Csr = A.asformat("csr")  # type: ignore[attr-defined]
    read = A.executor.transfer(rows.indptr, rows.indices, rows.data, block).read()
    indptr, indices, data, sides = (np.asarray(a) for a in read)
    lines = np.repeat(np.arange(A.shape[0]), np.diff(indptr))
    sizes, entries = np.abs(sides).astype(np.float64), np.abs(data).astype(np.float64)
    columns = [np.bincount(lines, entries * column[indices], A.shape[0]) for column in sizes.T]
    eps = float(np.finfo(sides.dtype).eps)
    return np.array([eps * float(np.linalg.norm(column)) for column in columns])
