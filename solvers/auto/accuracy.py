"""Notes on the accuracy of solutions: large errors, and the rounding limit of a dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.formats import Matrix
from ...core.formats.rowwise import row_bounds
from ...core.notes import Note, Topic, is_about
from ...core.operands import as_block
from ...core.operations import coarsen
from ...core.result import Result, changed
from ...core.vector_conversions import vector_converter
from ...core.wording import percentage
from ..driver.constants import outside_of_range
from ..driver.scaling import column_norms
from .kept import facts_of, kept_with

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.formats import Csr
    from ...core.linop import LinOp

#: Warn in the result when the estimated relative error of ``x`` exceeds this value.
LARGE_ERROR = 0.01

#: Treat the part of a right-hand side outside of the range as rounding error if its norm, relative
#: to that of ``b``, is below this value.
CONSISTENT = 1e-13

#: Look at the residual of each row if the absolute sums of two rows have a larger ratio than this.
RATIO_OF_ROWS = 1e6

#: The residual of a row is compared with the square root of ``rtol``, but of at least this number.
LEAST_RTOL_OF_ROWS = 1e-8


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
    return np.array([eps * float(column_norms(column)) for column in columns])


def with_note_on_rows(A: LinOp, b: Any, result: Result, rtol: float) -> Result:
    """Return a result with a note if its residual is large in rows of small size.

    Parameters
    ----------
    A : LinOp, shape (n, n)
        The operator; only the rows of a matrix of one process on the host are compared.
    b : array, shape (n,) or (n, k)
        The right-hand sides.
    result : Result
        The result, with a verdict from the norm of the residual.
    rtol : float
        The relative tolerance, at least :data:`LEAST_RTOL_OF_ROWS`. A row with a residual above its
        square root, relative to the sizes of the terms of the row, counts as not solved.

    References
    ----------
    W. Oettli and W. Prager, Compatibility of approximate solution of linear equations with given
    error bounds, Numerische Mathematik 6 (1964) 405-409, for the componentwise backward error.
    """
    cache = A.__dict__.get("_for_solvers")
    if cache is None or cache.ratio_of_rows == 1.0 or not result.converged:
        return result
    if A.dtype.kind not in "fc" or A.partition is not None or A.executor.xp is not np:
        return result
    assert isinstance(A, Matrix)
    ratio = _ratio_of_rows(A)
    if ratio == 1.0 or any(is_about(note, Topic.ERROR) for note in result.notes):
        return result
    error = _error_of_rows(A, b, result.x)
    if not error > max(rtol, LEAST_RTOL_OF_ROWS) ** 0.5:
        return result
    text = (
        f"the rows of A differ in size by a factor of {ratio:.0e}, and the residual of a row is up "
        f"to {error:.1g} of the sizes of its terms: x may be far off although the norm of the "
        "residual meets the tolerance; scale the rows of A and b, or use method='direct'"
    )
    return changed(result, notes=[*result.notes, Note(text, Topic.ERROR)])


def _ratio_of_rows(A: Matrix) -> float:
    """Return the ratio of the largest to the smallest nonzero row sum of ``|A|``, once per values.

    It is 1 up to :data:`RATIO_OF_ROWS`.
    """
    cache = kept_with(A)
    if cache.ratio_of_rows is None:
        rows: Csr = A.asformat("csr")
        sums = A.executor.allocate((A.shape[0],), real_dtype(A.dtype))
        A.executor.run(coarsen.absolute_sums, *row_bounds(rows), rows.data, sums)
        sizes = np.asarray(A.executor.to_host(sums)).astype(np.float64)
        sizes = sizes[sizes > 0]
        ratio = float(sizes.max() / sizes.min()) if sizes.size else 1.0
        cache.ratio_of_rows = ratio if ratio > RATIO_OF_ROWS else 1.0
    return cache.ratio_of_rows


def _error_of_rows(A: Matrix, b: Any, x: Any) -> float:
    """Return the largest componentwise backward error ``|b - A x| / (|A| |x| + |b|)``."""
    on = A.executor
    sides, solution = (as_block(on, block, A.shape[0], "b") for block in (b, x))
    with np.errstate(all="ignore"):
        residual = abs(sides - A @ solution)
        sizes = abs(A) @ abs(solution) + abs(sides)
        errors = on.xp.where(sizes > 0, residual / on.xp.where(sizes > 0, sizes, 1), 0)
        return float(errors.max())
