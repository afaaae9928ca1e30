"""How a system is to be solved, as a text that graphs of other libraries carry."""

from __future__ import annotations

import json
from typing import Any

from ...core.errors import InvalidArgument, SystemNotSolved
from ...core.formats import Csr
from ...core.result import Result
from ...core.settings import Settings
from ..auto.choose import solve as solve_by_choice
from ..configuration import from_settings
from ..registry import SOLVERS

#: Tolerances where none is given: gradients are no better than the solutions that they are made of.
TOLERANCES = {"float64": 1e-10, "float32": 1e-5, "complex128": 1e-10, "complex64": 1e-5}


def describe(solver: Any, M: Any, rtol: float | None, atol: float, maxiter: int | None) -> str:
    """Return the text of how to solve.

    Parameters
    ----------
    solver : str or Settings
        A name, ``"auto"``, ``"direct"``, or the settings of a solver, which then say everything.
    M : str or Settings
        A name, ``"auto"``, ``"none"`` or the settings of a preconditioner.
    rtol, atol, maxiter
        As for :func:`wollemi.solve`.

    Raises
    ------
    InvalidArgument
        If it is something that belongs to one matrix, such as an operator.
    """
    if isinstance(solver, Settings):
        if (M, rtol, atol, maxiter) != ("auto", None, 0.0, None):
            raise InvalidArgument(
                "solver: its settings say M, rtol, atol and maxiter; give them there: "
                "wl.solvers.Cg(rtol=1e-10, M=wl.preconditioners.Jacobi())"
            )
        return json.dumps({"settings": solver.to_dict()})
    if solver == "direct":
        return json.dumps({"settings": {"solver": "direct"}})
    if solver != "auto" and solver not in SOLVERS:
        raise InvalidArgument(
            f"solver: expected auto, direct, {', '.join(SOLVERS)} or settings such as "
            f"wl.solvers.Cg(rtol=1e-10), got {solver!r}"
        )
    if not isinstance(M, (str, Settings)):
        raise InvalidArgument(
            f"M: expected a name or settings such as wl.preconditioners.Jacobi(), got a "
            f"{type(M).__name__}; it must be made anew for new values and for the transpose"
        )
    told = M if isinstance(M, str) else M.to_dict()
    return json.dumps({"method": solver, "M": told, "rtol": rtol, "atol": atol, "maxiter": maxiter})


def solved(A: Csr, b: Any, how: str) -> Any:
    """Return the solution of ``A x = b``, shape (n, k), as a description says.

    Raises
    ------
    SystemNotSolved
        If a column is not solved.
    """
    told = json.loads(how)
    if "settings" in told:
        result: Result = from_settings(told["settings"]).on(A).solve(b)
    else:
        if told["rtol"] is None:
            told["rtol"] = TOLERANCES[A.dtype.name]
        if isinstance(told["M"], dict):
            told["M"] = from_settings({"solver": "cg", "M": told["M"]}).options["M"]
        result = solve_by_choice(A, b, **told)
    if not result.converged:
        raise SystemNotSolved(
            f"the system was not solved, so there is nothing to differentiate: {result.reason}. "
            "Loosen rtol, raise maxiter or take another solver or preconditioner"
        )
    return result.x
