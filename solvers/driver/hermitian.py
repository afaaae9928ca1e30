"""Explain failed solves: an operator that is not Hermitian, is singular, or gives NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.check_operator import fault_of_products
from ...core.operands import as_block
from ...core.result import Result
from ...core.status import Stop
from .constants import why_unsolved
from .scaling import products_near_one

if TYPE_CHECKING:
    from ...core.linop import LinOp
    from ..krylov.base import KrylovSolver

    Numbers = np.ndarray[Any, Any]


class Answer(NamedTuple):
    """Whether a matrix has a property, and the version of the values that were tested."""

    version: int
    holds: bool


class Asymmetry(NamedTuple):
    """A message on an operator that is not Hermitian, with the remedy."""

    cause: str
    remedy: str

    @classmethod
    def of(cls, name: str, operator: LinOp | None = None) -> Asymmetry:
        """Return the message on ``A`` or on ``M``."""
        another = ", or another M" if name == "M" else ""
        if operator is not None and name == "M" and _is_own(operator):
            another += f"; {_CHECK}"
        return cls(f"{name} is not Hermitian, as the method needs it", f"use gmres{another}")


#: Stops that a non-Hermitian operator may have caused.
MAY_BE_OF_SYMMETRY = frozenset(
    {Stop.INDEFINITE, Stop.BREAKDOWN, Stop.STAGNATED, Stop.NOT_FINITE, Stop.MAX_ITERATIONS}
)

#: Check first after this many iterations whether non-Hermitian operators keep the residual from
#: falling. A device runs as many iterations before the host reads.
FIRST_LOOK = 1024

#: A residual falls if the second half of all iterations reduced the smallest norm at least by the
#: factor FALLS, or the last quarter reduced the median at least by the factor MEDIAN_FALLS.
FALLS, MEDIAN_FALLS = 0.9, 0.5

#: Estimated residuals are useless if the true residual exceeds them by this factor.
DRIFT = 2.0

#: A non-Hermitian operator explains a failure if its skew part exceeds this fraction of
#: ``<v, M v>``.
MATERIAL = 0.1

#: Products of a Hermitian operator agree to this many unit roundoffs, times the square root of the
#: number of rows.
SLACK = 64.0


#: Products of a user's class with larger relative differences than this explain a failed solve.
WRONG = 1e-3

#: The remedy for a preconditioner of the user's own class.
_CHECK = "wollemi.extend.check_operator(M) tests a preconditioner of your own"


def _is_own(operator: LinOp) -> bool:
    """Return whether an operator is of a class outside of this package."""
    return type(operator).__module__.partition(".")[0] != __name__.partition(".")[0]


def gives_numbers(operator: LinOp) -> bool:
    """Return whether the product with a vector of ones is finite."""
    with np.errstate(all="ignore"):
        (image,) = products_near_one(operator, np.ones(operator.shape[1], operator.dtype))
    return bool(np.isfinite(image).all())


def is_hermitian_in_products(operator: LinOp) -> bool:
    """Return whether ``<u, A v>`` equals ``<A u, v>`` to rounding, for two vectors.

    Two products suffice for any operator, also for one without known entries.
    """
    n = operator.shape[0]
    dtype = np.dtype(operator.dtype)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    # random bytes take a twelfth of the time of random doubles, and any dtype holds them
    drawn = np.frombuffer(np.random.default_rng(n).bytes(2 * n), np.int8).reshape(2, n)
    u, v = drawn.astype(wide) / 128.0
    with np.errstate(all="ignore"):
        images = products_near_one(operator, *(x.astype(dtype, copy=False) for x in (u, v)))
        apart = abs(np.vdot(u, images[1]) - np.vdot(images[0], v))
        size = _length(u) * _length(images[1]) + _length(images[0]) * _length(v)
    eps = float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2.0**-7
    return bool(not np.isfinite(apart) or apart <= SLACK * eps * max(n, 1) ** 0.5 * size)


def _length(x: Any) -> float:
    return float(np.linalg.norm(x))


def has_fallen(norms: Sequence[float]) -> bool:
    """Return whether the norms of iterations fall.

    Either the smallest norm of the second half is below that of the first half, or the median of
    the last quarter is well below that of the quarter before it, as after a hump.
    """
    half, quarter = len(norms) // 2, len(norms) // 4
    if min(norms[half:]) <= FALLS * min(norms[:half]):
        return True
    before, last = (np.median(part) for part in (norms[half:-quarter], norms[-quarter:]))
    return bool(last <= MEDIAN_FALLS * before)


def are_the_reason(
    solver: KrylovSolver, b: np.ndarray[Any, Any], x: np.ndarray[Any, Any], r: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return the columns for which non-Hermitian operators keep the residual from falling.

    The methods require ``<M v, A x> = <A M v, x>`` for ``v`` equal to the residual and to ``b``,
    and ``<M r, b> = <r, M b>``. An operator may differ from a Hermitian one by rounding errors of
    its entries, or on vectors that do not occur in the iteration, for example for a matrix with
    rows of boundary values. The method then converges, and the differences are small relative to
    ``<v, M v>``.

    Parameters
    ----------
    solver : KrylovSolver
        The solver.
    b, x, r : ndarray, shape (n, k)
        Right-hand sides, iterates and true residuals. ``A`` has the scale that makes
        ``b - r = A x``.
    """
    M = solver.M if "M" in solver.HERMITIAN else None
    if M is not None and M.varies:
        M = None
    dtype = r.dtype
    wide = np.complex128 if dtype.kind == "c" else np.float64
    b, x, r = (block.astype(wide) for block in (b, x, r))

    def product(operator: LinOp, block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(operator @ block.astype(dtype)).astype(wide)

    with np.errstate(all="ignore"):
        image = b - r  # A x
        is_material = np.zeros(b.shape[1], bool)
        images = []
        for v in (r, b):
            images.append(v if M is None else product(M, v))
            apart = _inner(images[-1], image) - _inner(product(solver.A, images[-1]), x)
            is_material |= np.abs(apart) > MATERIAL * np.abs(_inner(v, images[-1]))
        if M is not None:
            apart = _inner(images[0], b) - _inner(r, images[1])
            is_material |= np.abs(apart) > MATERIAL * np.abs(_inner(r, images[0]))
    return is_material


def _inner(u: np.ndarray[Any, Any], v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray((u.conj() * v).sum(axis=0))


def explained(solver: KrylovSolver, b: Any, result: Result) -> Result:
    """Return the result of a failed solve with an explanation, if its operators give one.

    Parameters
    ----------
    solver : KrylovSolver
        The solver.
    b : array, shape (n,) or (n, k)
        Right-hand sides.
    result : Result
        The result of the solve.
    """
    stops = MAY_BE_OF_SYMMETRY.intersection(result.stops)
    if not stops or solver.partition is not None:
        return result  # members of a group hold different rows
    why, notes = _about_products(solver, stops), list[str]()
    if why is None and not result.iterations:
        return result
    if why is None:
        asymmetries = asymmetries_of(solver)
        notes = [": ".join(asymmetry) for asymmetry in asymmetries]
        why = "; ".join(asymmetries[0]) if asymmetries else _about_constants(solver, b, stops)
    if why is None:
        return result
    sentences = {stop: f"{stop.sentence.partition(':')[0]}: {why}" for stop in stops}
    return replace(result, notes=[*result.notes, *notes], explained=sentences)


def _about_products(solver: KrylovSolver, stops: AbstractSet[Stop]) -> str | None:
    """Return the fault in products with ``A`` or ``M`` that explains a failed solve, or None."""
    M = None if solver.M is None or solver.M.varies else solver.M
    if Stop.NOT_FINITE in stops and not _holds(solver, "numbers of A", solver.A, gives_numbers):
        return "A has NaN or Inf, or its products have; numpy.isfinite(A.data) shows the entries"
    if M is not None and _is_own(M):
        fault = fault_of_products(M, WRONG)
        if fault is not None:
            return f"{fault}; {_CHECK}"
    if M is None or Stop.NOT_FINITE not in stops:
        return None
    if _holds(solver, "numbers of M", M, gives_numbers):
        return None
    return "the product of M with a vector of ones has NaN or Inf; use another M"


def _about_constants(solver: KrylovSolver, b: Any, stops: AbstractSet[Stop]) -> str | None:
    """Return why the solve failed, for a matrix with constants in its null space.

    None for other matrices. Operators without known entries are tested only if the method needs a
    Hermitian one: their products may be slow, and the answer is not kept.
    """
    A, hermitian = solver.A, bool(solver.HERMITIAN)
    if not hermitian and not hasattr(A, "_values_version"):
        return None

    def block() -> Numbers:
        return np.asarray(solver.executor.to_host(as_block(solver.executor, b, A.shape[0], "b")))

    return why_unsolved(
        block,
        lambda name, test: _holds(solver, name, A, test),
        hermitian=hermitian,
        at_limit=stops == {Stop.MAX_ITERATIONS},
        kin=" or minres" if hermitian and not solver.TAKES_SINGULAR else "",
    )


def asymmetries_of(solver: KrylovSolver) -> list[Asymmetry]:
    """Return messages on the operators that are not Hermitian, although the method needs it."""
    asymmetries = []
    for name in solver.HERMITIAN:
        operator = solver.A if name == "A" else solver.M
        if operator is None or operator.varies:
            continue
        if _holds(solver, name, operator, is_hermitian_in_products):
            continue
        asymmetries.append(Asymmetry.of(name, operator))
    return asymmetries


def _holds(
    solver: KrylovSolver, name: str, operator: LinOp, holds: Callable[[LinOp], bool]
) -> bool:
    """Return whether an operator of a solver has a property; the answer is kept by name.

    Matrices and preconditioners are tested once for each set of values: the two products take
    longer than a solve of few iterations (27 ms on an H200), and solves that end at their limit are
    often repeated.
    """
    version: int | None = getattr(operator, "_values_version", getattr(operator, "_updates", None))
    if version is None:
        return holds(operator)
    known = solver._hermitian.get(name)
    if known is None or known.version != version:
        known = Answer(version, holds(operator))
        solver._hermitian[name] = known
    return known.holds
