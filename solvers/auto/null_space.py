"""Systems with a Laplacian: the null space is spanned by the constants of each component.

Such a system has a solution if the right-hand side sums to zero in each component of the pattern.
No ``x`` reduces the remaining part, so that the verdict is known in advance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.formats import Csr, Matrix
from ...core.linop import LinOp
from ...core.notes import Note, Topic, without
from ...core.operands import as_block, like
from ...core.result import Result
from ...core.status import Stop
from ...core.wording import counted, percentage
from ..driver.scaling import column_norms, exponents_near_one, times_powers
from .attempts import LEAST, SHORTEST
from .kept import facts_of, kept_with
from .methods import RequestedMethod

Numbers = np.ndarray[Any, Any]

#: A right-hand side is compatible if its norm in the null space is at most this fraction of the
#: threshold.
COMPATIBLE = 0.5


#: Name of the solver with errors along the null space: it factorizes a singular matrix.
BY_FACTORS = "Direct"


@dataclass(frozen=True)
class ConstantNullSpace:
    """The null space of a matrix that is spanned by the constants of each component.

    Attributes
    ----------
    labels : array of int, shape (n,)
        The component of each row.
    sizes : array of int, shape (components,)
        Number of rows of each component.
    is_whole : bool
        Whether the matrix is known to have no other null vectors.
    """

    labels: Numbers
    sizes: Numbers
    is_whole: bool = True

    def means(self, block: Numbers) -> Numbers:
        """Return the projection of a block onto the null space: the mean over each component."""
        exponents = exponents_near_one(block)  # sums of large numbers overflow
        parts = [self._mean(np.ascontiguousarray(c)) for c in times_powers(block, exponents).T]
        means = np.stack(parts, axis=1) if parts else block
        return times_powers(means, -exponents).astype(block.dtype)

    def _mean(self, column: Numbers) -> Numbers:
        sums = np.bincount(self.labels, column.real, self.sizes.size)
        if np.iscomplexobj(column):
            sums = sums + 1j * np.bincount(self.labels, column.imag, self.sizes.size)
        means: Numbers = (sums / self.sizes)[self.labels]
        return means


def constant_null_space(A: LinOp, method: RequestedMethod) -> ConstantNullSpace | None:
    """Return the null space of a Hermitian matrix that maps constants to zero, else None.

    The null space is used only if method and preconditioner are to be chosen. If the diagonal is
    positive and no other entry is, the matrix is semidefinite and has no further null vectors.
    Other matrices, such as matrices of quadratic finite elements, may be indefinite; constants are
    still orthogonal to their range.
    """
    if not method.is_open or not isinstance(A, Matrix) or A.partition is not None:
        return None
    cache = kept_with(A)
    if cache.null is None:
        cache.null = _find_null_space(A) or ()
    return cache.null or None


def _find_null_space(A: Matrix) -> ConstantNullSpace | None:
    facts = facts_of(A)
    if not facts.may_be_definite or not facts.rows:
        return None
    if not facts.annihilates_constants:
        return None
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    rows: Csr = A.asformat("csr")
    data, indices, indptr = (
        np.asarray(a) for a in A.executor.transfer(rows.data, rows.indices, rows.indptr).read()
    )
    lines = np.repeat(np.arange(facts.rows), np.diff(indptr))
    others = data[lines != indices]
    is_whole = not np.any((others.real > 0) | (others.imag != 0))
    count, labels = connected_components(
        csr_array((data.real, indices, indptr), shape=A.shape), directed=False
    )
    return ConstantNullSpace(labels, np.bincount(labels, minlength=count), is_whole)


def solve_projected(
    A: LinOp,
    null: ConstantNullSpace,
    solve: Callable[..., Result],
    b: Any,
    rtol: float,
    atol: float,
) -> Result:
    """Solve the system with the null space projected out of ``b`` and ``x``.

    Parameters
    ----------
    A : matrix
        The matrix.
    null : ConstantNullSpace
        Its null space.
    solve : callable
        Called as ``solve(b, x0, rtol=, atol=)``.
    b : array, shape (n,) or (n, k)
        Right-hand sides.
    rtol, atol : float
        The tolerance.

    Returns
    -------
    Result
        The solution with mean zero in each component. It is the shortest one if there are no
        further null vectors. If ``b`` is not in the range, it is a least squares solution, and the
        verdict says so.
    """
    block = np.asarray(A.executor.to_host(as_block(A.executor, b, A.shape[0], "b")))
    # squares, and thresholds, may be out of range: columns are judged near one
    exponents = exponents_near_one(block)
    near = times_powers(block, exponents)
    outside = null.means(near)
    size, left = column_norms(near), column_norms(outside)
    threshold = np.maximum(rtol * size, times_powers(np.array(atol), exponents))
    start = np.zeros(block.shape, block.dtype)
    # fractions of the thresholds, so that both parts together meet the tolerance
    limits = times_powers(threshold, -exponents)
    least = float(np.min(limits[limits > 0], initial=np.inf))
    atol = 0.8 * least if np.isfinite(least) else atol
    inside = times_powers(near - outside, -exponents).astype(block.dtype)
    result = solve(inside, start, rtol=0.8 * rtol, atol=atol)
    x = np.asarray(result.x) - null.means(np.asarray(result.x))
    norm = np.hypot(times_powers(np.atleast_1d(result.residual_norm), exponents), left)
    unmet = left > COMPATIBLE * threshold
    stops = [
        Stop.LEAST_SQUARES if bad and stop == Stop.CONVERGED else stop
        for bad, stop in zip(unmet, result.stops, strict=True)
    ]
    norm, threshold, b_norms = (times_powers(v, -exponents) for v in (norm, threshold, size))
    worst = float((left / np.where(size > 0, size, 1.0)).max(initial=0.0))
    notes = _notes(result, null, worst if unmet.any() else 0.0, bool(unmet.all()))
    attempts = list(result.attempts)
    if attempts and Stop.LEAST_SQUARES in stops:  # it solved for the part of b in the range
        outcome = Stop.LEAST_SQUARES.sentence.partition(":")[0]
        attempts[-1] = replace(attempts[-1], reason=outcome)
    one = np.ndim(b) == 1
    native = A.executor.from_host(np.ascontiguousarray(x))
    return replace(
        result,
        x=like(A.executor, native, b),
        stops=stops,
        residual_norm=float(norm[0]) if one else norm,
        residuals=result.residuals[:, 0] if one else result.residuals,
        threshold=float(threshold[0]) if one else threshold,
        norm_of_b=float(b_norms[0]) if one else b_norms,
        is_shortest=null.is_whole,
        error=None if result.solver == BY_FACTORS else result.error,
        attempts=attempts,
        notes=notes,
    )


def _notes(result: Result, null: ConstantNullSpace, outside: float, all_outside: bool) -> list[str]:
    """Return the notes on a projected solution; ``outside`` is a fraction of the norm of b."""
    notes_of_solver = without(result.notes, Topic.LONGER)
    if result.solver == BY_FACTORS:
        notes_of_solver = without(notes_of_solver, Topic.ERROR)
    text = (
        f"the matrix maps constants to zero, on {counted(null.sizes.size, 'component')}: they were "
        "taken out of b and x"
    )
    if null.is_whole and not all_outside:
        text = Note(f"{text}, and {SHORTEST}", Topic.SHORTEST)
    notes = [*notes_of_solver, text]
    if outside:
        notes.append(
            f"b does not add up to zero: {percentage(outside)} of its length lies outside of the "
            "range of A"
        )
        if null.is_whole:
            notes.append(LEAST)
    return notes
