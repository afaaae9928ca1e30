"""Systems with a Laplacian: each component of the pattern has the constants as its null space.

Such a system has a solution if the right-hand side adds up to zero in each component. The remaining
part cannot be reduced by any ``x``, so that the verdict is known at once.
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
from .attempts import LEAST, SHORTEST
from .kept import facts_of, kept_with
from .methods import AskedMethod

Numbers = np.ndarray[Any, Any]

#: The part of the tolerance that a right-hand side may have in the null space.
COMPATIBLE = 0.5


#: The solver with errors along the null space: its factors are of a singular matrix.
BY_FACTORS = "Direct"


@dataclass(frozen=True)
class ConstantNullSpace:
    """The constants of the components of a pattern.

    Attributes
    ----------
    labels : array of int, shape (n,)
        The component of each row.
    sizes : array of int, shape (components,)
        The rows of each.
    is_whole : bool
        Whether the matrix is known to have no further null vectors.
    """

    labels: Numbers
    sizes: Numbers
    is_whole: bool = True

    def means(self, block: Numbers) -> Numbers:
        """Return the part of a block in the null space: the mean over each component."""
        parts = [self._mean(np.ascontiguousarray(column)) for column in block.T]
        return np.stack(parts, axis=1) if parts else block

    def _mean(self, column: Numbers) -> Numbers:
        sums = np.bincount(self.labels, column.real, self.sizes.size)
        if np.iscomplexobj(column):
            sums = sums + 1j * np.bincount(self.labels, column.imag, self.sizes.size)
        found: Numbers = (sums / self.sizes)[self.labels].astype(column.dtype)
        return found


def constant_null_space(A: LinOp, asked: AskedMethod) -> ConstantNullSpace | None:
    """Return the null space of a Hermitian matrix that maps constants to zero, None of others.

    Only where method and preconditioner are to be chosen. With a positive diagonal and other
    entries that are not positive the matrix is semidefinite, and there are no further null vectors.
    Other matrices, such as those of finite elements of degree two, may be indefinite; constants
    stay out of their range.
    """
    if not asked.is_open or not isinstance(A, Matrix) or A.partition is not None:
        return None
    kept = kept_with(A)
    if kept.null is None:
        kept.null = _found(A) or ()
    return kept.null or None


def _found(A: Matrix) -> ConstantNullSpace | None:
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
    """Solve with the null space taken out of ``b`` and ``x``.

    Parameters
    ----------
    A : matrix
        The matrix.
    null : ConstantNullSpace
        Its null space.
    solve : callable
        Solves for a right-hand side, with ``x0``, ``rtol`` and ``atol``.
    b : array, shape (n,) or (n, k)
        Right-hand sides.
    rtol, atol : float
        The tolerance.

    Returns
    -------
    Result
        The solution without constants, which is the shortest one if there are no further null
        vectors. Where ``b`` is not in the range it is a least squares solution, and the verdict
        says so.
    """
    block = np.asarray(A.executor.to_host(as_block(A.executor, b, A.shape[0], "b")))
    left_over = null.means(block)
    size, left = np.linalg.norm(block, axis=0), np.linalg.norm(left_over, axis=0)
    threshold = np.maximum(rtol * size, atol)
    start = np.zeros(block.shape, block.dtype)
    # of the norm of b that is left, so that both parts together meet the tolerance
    least = float(np.min(threshold[threshold > 0], initial=np.inf))
    atol = 0.8 * least if np.isfinite(least) else atol
    found = solve(block - left_over, start, rtol=0.8 * rtol, atol=atol)
    x = np.asarray(found.x) - null.means(np.asarray(found.x))
    norm = np.hypot(np.atleast_1d(found.residual_norm), left)
    unmet = left > COMPATIBLE * threshold
    stops = [
        Stop.LEAST_SQUARES if bad and stop == Stop.CONVERGED else stop
        for bad, stop in zip(unmet, found.stops, strict=True)
    ]
    worst = float((left / np.where(size > 0, size, 1.0)).max(initial=0.0))
    notes = _notes(found, null, worst if unmet.any() else 0.0, bool(unmet.all()))
    attempts = list(found.attempts)
    if attempts and Stop.LEAST_SQUARES in stops:  # its residual was that of b in the range
        outcome = Stop.LEAST_SQUARES.sentence.partition(":")[0]
        attempts[-1] = replace(attempts[-1], reason=outcome)
    one = np.ndim(b) == 1
    native = A.executor.from_host(np.ascontiguousarray(x))
    return replace(
        found,
        x=like(A.executor, native, b),
        stops=stops,
        residual_norm=float(norm[0]) if one else norm,
        residuals=found.residuals[:, 0] if one else found.residuals,
        threshold=float(threshold[0]) if one else threshold,
        norm_of_b=float(size[0]) if one else size,
        is_shortest=null.is_whole,
        error=None if found.solver == BY_FACTORS else found.error,
        attempts=attempts,
        notes=notes,
    )


def _notes(found: Result, null: ConstantNullSpace, outside: float, all_outside: bool) -> list[str]:
    """Return the notes on a solution without its constants; ``outside`` is the part of ``b``."""
    kept = without(found.notes, Topic.LONGER)
    if found.solver == BY_FACTORS:
        kept = without(kept, Topic.ERROR)
    said = (
        f"the matrix maps constants to zero, on {counted(null.sizes.size, 'component')}: they were "
        "taken out of b and x"
    )
    if null.is_whole and not all_outside:
        said = Note(f"{said}, and {SHORTEST}", Topic.SHORTEST)
    notes = [*kept, said]
    if outside:
        notes.append(
            f"b does not add up to zero: {percentage(outside)} of its length lies outside of the "
            "range of A"
        )
        if null.is_whole:
            notes.append(LEAST)
    return notes
