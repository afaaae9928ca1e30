"""Text descriptions of solves, for the graphs of other libraries."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...core.batch import BatchCsr
from ...core.errors import InvalidArgument, InvalidMatrix, SystemNotSolved, UnsupportedOperation
from ...core.formats import Csr
from ...core.result import Result
from ...core.settings import Settings
from ...core.status import Stop
from ...core.suggest import hint
from ..auto.choose import solve as solve_by_choice
from ..configuration import from_settings
from ..direct.engine import Singular
from ..registry import SOLVERS

#: Default tolerances: gradients are no more accurate than the solutions they are computed from.
TOLERANCES = {"float64": 1e-10, "float32": 1e-5, "complex128": 1e-10, "complex64": 1e-5}

#: Factorize symmetric systems with at most this many rows immediately.
FACTORED = 128

#: Iteration limit of MINRES, after which a system is factorized instead.
MOST_ITERATIONS = 2000


def describe(solver: Any, M: Any, rtol: float | None, atol: float, maxiter: int | None) -> str:
    """Return the description of a solve as text.

    Parameters
    ----------
    solver : str or Settings
        A name, ``"auto"``, ``"direct"``, or the settings of a solver, which then contain all
        options.
    M : str or Settings
        A name, ``"auto"``, ``"none"`` or the settings of a preconditioner.
    rtol, atol, maxiter
        As for :func:`wollemi.solve`.

    Raises
    ------
    InvalidArgument
        If an argument belongs to one matrix, such as an operator, or the solver does not have the
        option.
    """
    if isinstance(solver, Settings):
        if (M, rtol, atol, maxiter) != ("auto", None, 0.0, None):
            raise InvalidArgument(
                "solver: its settings say M, rtol, atol and maxiter; give them there: "
                "wl.solvers.Cg(rtol=1e-10, M=wl.preconditioners.Jacobi())"
            )
        return json.dumps({"settings": solver.to_dict()})
    if solver == "direct":
        for name, is_given in (("M", M != "auto"), ("maxiter", maxiter is not None)):
            if is_given:
                raise InvalidArgument(
                    f'{name}: solver="direct" factorizes the matrix and takes no {name}; leave it '
                    "away, or take an iterative solver"
                )
        limits = {} if rtol is None else {"rtol": rtol}
        limits |= {"atol": atol} if atol else {}
        return json.dumps({"settings": {"solver": "direct", **limits}})
    if isinstance(getattr(solver, "settings", None), Settings):
        raise InvalidArgument(
            f"solver: this {type(solver).__name__} has a matrix already: pass solver.settings"
        )
    if not isinstance(solver, str) or (solver != "auto" and solver not in SOLVERS):
        near = hint(solver, ("auto", "direct", *SOLVERS)) if isinstance(solver, str) else ""
        raise InvalidArgument(
            f"solver: {near}expected auto, direct, {', '.join(SOLVERS)} or settings such as "
            f"wl.solvers.Cg(rtol=1e-10), got {solver!r}"
        )
    if not isinstance(M, (str, Settings)):
        raise InvalidArgument(
            f"M: expected a name or settings such as wl.preconditioners.Jacobi(), got a "
            f"{type(M).__name__}; it must be made anew for new values and for the transpose"
        )
    description_of_M = M if isinstance(M, str) else M.to_dict()
    return json.dumps(
        {"method": solver, "M": description_of_M, "rtol": rtol, "atol": atol, "maxiter": maxiter}
    )


def describe_symmetric(solver: Any, M: Any, rtol: float | None, n: int) -> str:
    """Return the description of solves of symmetric indefinite systems with ``n`` unknowns.

    ``"auto"`` is MINRES without a preconditioner: systems of eigenpairs need few iterations if the
    eigenvalues are well separated. Small systems, and systems that MINRES does not solve, are
    factorized.

    Parameters
    ----------
    solver, M, rtol
        As for :func:`describe`.
    n : int
        Number of rows of a system.
    """
    if solver != "auto" or M != "auto":
        return describe(solver, M, rtol, 0.0, None)
    if n <= FACTORED:
        return describe("direct", "auto", rtol, 0.0, None)
    first = json.loads(describe("minres", "none", rtol, 0.0, MOST_ITERATIONS))
    last = json.loads(describe("direct", "auto", None, 0.0, None))
    return json.dumps({**first, "otherwise": last})


def solved(A: Csr, b: Any, request: str) -> Any:
    """Return the solution of ``A x = b``, shape (n, k), by a description.

    Raises
    ------
    SystemNotSolved
        If a column is not solved.
    """
    description = json.loads(request)
    result: Result = _run(A, b, description)
    if not result.converged and "otherwise" in description:
        result = _run(A, b, description["otherwise"])
    if not result.converged:
        singular = Stop.LEAST_SQUARES in result.stops
        raise SystemNotSolved(_unsolved("the system was not solved", result.reason, singular))
    return result.x


def solved_together(A: Csr, values: Any, b: Any, request: str) -> Any:
    """Return the solutions of many systems with one pattern, by a description.

    Parameters
    ----------
    A : Csr, shape (n, n)
        The pattern.
    values : array, shape (s, nnz)
        The values of each matrix, native and contiguous.
    b : array, shape (s, n, k)
        Right-hand sides, native.
    request : str
        The description. A solver without batches solves one system after the other.

    Returns
    -------
    array, shape (s, n, k)

    Raises
    ------
    SystemNotSolved
        If a system is not solved.
    """
    on = A.executor
    pattern = _with_values(A, on.zeros((A.nnz,), values.dtype))
    batch = BatchCsr._from_values(pattern, (int(values.shape[0]),), values)
    description = json.loads(request)
    try:
        result = _run(batch, b, description)
    except UnsupportedOperation:
        x = on.allocate(b.shape, b.dtype)
        for s in range(int(values.shape[0])):
            on.copy_into(x[s], solved(_with_values(A, values[s]), b[s], request))
        return x
    failed = np.flatnonzero(~result.converged)
    if failed.size and "otherwise" in description:
        for s in failed.tolist():
            one = solved(_with_values(A, values[s]), b[s], json.dumps(description["otherwise"]))
            on.copy_into(result.x[s], one)
        return result.x
    if failed.size:
        first = int(failed[0])
        raise SystemNotSolved(
            _unsolved(
                f"{failed.size} of {result.converged.size} systems were not solved",
                f"system {first}: {result.reason[first]}",
                Stop.LEAST_SQUARES in result.stops.reshape(result.converged.size, -1)[first],
            )
        )
    return result.x


def _with_values(A: Csr, values: Any) -> Csr:
    matrix = Csr._from_arrays(A.executor, A.shape, values, A.indices, A.indptr)
    matrix._pattern = A._pattern
    return matrix


def _run(A: Csr | BatchCsr, b: Any, description: dict[str, Any]) -> Any:
    """Return the result of one system, or of a batch."""
    if "settings" in description:
        try:
            return from_settings(description["settings"]).on(A).solve(b)
        except Singular as error:
            # wl.solve, which the message names, has no derivatives.
            raise InvalidMatrix(f"{error}, without derivatives; {_WITH_DAMP}") from None
    options = {name: value for name, value in description.items() if name != "otherwise"}
    if options["rtol"] is None:
        options["rtol"] = TOLERANCES[A.dtype.name]
    if isinstance(options["M"], dict):
        options["M"] = from_settings({"solver": "cg", "M": options["M"]}).options["M"]
    return solve_by_choice(A, b, **options)


#: The remedy for singular systems, and for least squares of matrices without full rank.
_WITH_DAMP = (
    "least_squares of wollemi.interop.torch or wollemi.interop.jax has derivatives of a least "
    "squares solution; where A has no full rank, give it damp > 0"
)


def _unsolved(caller: str, reason: str, singular: bool) -> str:
    """Return the message on an unsolved system; ``singular`` if b is out of the range."""
    remedy = "Loosen rtol, raise maxiter or take another solver or preconditioner"
    if singular:
        remedy = _WITH_DAMP
    return f"{caller}, so there is nothing to differentiate: {reason}. {remedy}"
