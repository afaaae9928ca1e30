"""Whether an operator is Hermitian, asked after a method that needs it has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.result import Result
from ...core.status import Stop

if TYPE_CHECKING:
    from ...core.linop import LinOp
    from ..krylov.base import KrylovSolver


class Answer(NamedTuple):
    """Whether a matrix is Hermitian, with the version of its values that was asked."""

    version: int
    hermitian: bool


#: The ends of a solve for which an operator that is not Hermitian may be the reason.
MAY_BE_OF_SYMMETRY = frozenset(
    {Stop.INDEFINITE, Stop.BREAKDOWN, Stop.STAGNATED, Stop.NOT_FINITE, Stop.MAX_ITERATIONS}
)

#: Units of rounding, times the root of the rows, by which products of a Hermitian operator differ.
SLACK = 64.0


def is_hermitian_in_products(operator: LinOp) -> bool:
    """Return whether ``<u, A v>`` equals ``<A u, v>`` to rounding, for two vectors.

    Two products tell it of any operator, also of one without entries.
    """
    n = operator.shape[0]
    dtype = np.dtype(operator.dtype)
    rng = np.random.default_rng(n)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    u, v = rng.uniform(-1, 1, (2, n)).astype(dtype)
    images = [np.asarray(operator @ x).astype(wide) for x in (u, v)]
    u, v = u.astype(wide), v.astype(wide)
    with np.errstate(all="ignore"):
        apart = abs(np.vdot(u, images[1]) - np.vdot(images[0], v))
        size = _length(u) * _length(images[1]) + _length(images[0]) * _length(v)
    eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2.0**-7
    return bool(not np.isfinite(apart) or apart <= SLACK * eps * max(n, 1) ** 0.5 * size)


def _length(x: Any) -> float:
    return float(np.linalg.norm(x))


def notes_on_symmetry(solver: KrylovSolver, result: Result) -> list[str]:
    """Return notes on operators that are not Hermitian, of a failed method that needs it.

    Parameters
    ----------
    solver : KrylovSolver
        The solver.
    result : Result
        Its result.
    """
    if not solver.HERMITIAN or MAY_BE_OF_SYMMETRY.isdisjoint(result.stops):
        return []
    if solver.partition is not None or not result.iterations:
        return []  # members of a group have rows of their own
    notes = []
    for name in solver.HERMITIAN:
        operator = solver.A if name == "A" else solver.M
        if operator is None or operator.varies or _is_hermitian(solver, name, operator):
            continue
        another = ", or another M" if name == "M" else ""
        notes.append(f"{name} is not Hermitian, as the method needs it: use gmres{another}")
    return notes


def _is_hermitian(solver: KrylovSolver, name: str, operator: LinOp) -> bool:
    """Return whether an operator of a solver is Hermitian.

    Matrices are asked once for each set of values: the two products take longer than a solve of few
    iterations, and solves that end at their limit are repeated.
    """
    version: int | None = getattr(operator, "_values_version", None)
    if version is None:
        return is_hermitian_in_products(operator)
    known = solver._hermitian.get(name)
    if known is None or known.version != version:
        known = Answer(version, is_hermitian_in_products(operator))
        solver._hermitian[name] = known
    return known.hermitian
