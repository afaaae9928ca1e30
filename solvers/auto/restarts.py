"""The cycle length of restarted methods, and the notes on it."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgument
from ...core.factors import whole_number
from ...core.linop import LinOp
from ...core.settings import option_names
from ..krylov.gmres import RESTART
from ..registry import SOLVERS
from .candidates import Candidate
from .methods import RequestedMethod

#: Run GMRES without restarts if its basis has at most this many values over all columns: 1000
#: unknowns and one column. Measured on two cores of an EPYC (22 November 2026; rtol 1e-8;
#: milliseconds with restarts after 30 iterations, and without): it solves west0067 (40 without
#: success, 0.8) and dlmc_tf_vd80_ffn2 (340 without success, 65), and is faster for recirc_flow
#: (8.7, 3.9) and pde900 (22, 17). Larger systems that do not converge would take longer: 1138_bus
#: (180, 1180) and cryg2500 (530, 13000).
WHOLE_BASIS = 2**20


def restart_for(A: LinOp, columns: int) -> int:
    """Return the cycle length of GMRES for a matrix: all its rows if they are few."""
    n = A.shape[0]
    return max(n, 1) if n * n * columns <= WHOLE_BASIS else RESTART


def requested_restart(restart: Any, method: RequestedMethod) -> int:
    """Return the cycle length that a user gave, for a method with cycles.

    Raises
    ------
    InvalidArgument
        If it is not a valid length, or if the requested method has no cycles.
    """
    length = whole_number(restart, "restart", 1)
    if method.kind is not None and "restart" not in option_names(method.kind):
        cyclic = [name for name, kind in SOLVERS.items() if "restart" in option_names(kind)]
        raise InvalidArgument(
            f"restart={restart} is a cycle length of {', '.join(cyclic)}; {method.name} has no "
            "cycles: leave restart out"
        )
    return length


def about_restart(first: Candidate, requested: int | None, n: int) -> list[str]:
    """Return a note on the cycle length of the first method, if it has cycles."""
    length = first.options.get("restart")
    if length is None:
        return []
    if requested is not None:
        return [f"restart: after {length} iterations, as asked"]
    if length >= n:
        return ["restart: none, the basis of all iterations is small"]
    return [f"restart: after {length} iterations"]
