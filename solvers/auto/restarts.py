"""The length of cycles of restarted methods, and the notes on it."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgument
from ...core.linop import LinOp
from ...core.settings import option_names
from ..krylov.gmres import RESTART, checked_restart
from ..registry import SOLVERS
from .candidates import Candidate
from .methods import AskedMethod

#: Numbers in a basis of GMRES, over all columns, up to which it is not restarted: a basis of 1000
#: unknowns and one column. On two cores of an EPYC (22 November 2026; rtol 1e-8, milliseconds,
#: restarted by 30 and not at all) that solves west0067 (40 without success, 0.8) and
#: dlmc_tf_vd80_ffn2 (340 without success, 65), and is sooner done with recirc_flow (8.7, 3.9) and
#: pde900 (22, 17). Larger ones that do not converge would pay for it: 1138_bus (180, 1180) and
#: cryg2500 (530, 13000).
WHOLE_BASIS = 2**20


def restart_for(A: LinOp, columns: int) -> int:
    """Return the cycle length of GMRES for a matrix: all of its rows, if they are few."""
    n = A.shape[0]
    return max(n, 1) if n * n * columns <= WHOLE_BASIS else RESTART


def asked_restart(restart: Any, asked: AskedMethod) -> int:
    """Return the cycle length that a user gave, if there is anything to restart.

    Raises
    ------
    InvalidArgument
        If it is no length, or the method that was asked for has no cycles.
    """
    length = checked_restart(restart)
    if asked.kind is not None and "restart" not in option_names(asked.kind):
        cyclic = [name for name, kind in SOLVERS.items() if "restart" in option_names(kind)]
        raise InvalidArgument(
            f"restart={restart} is a cycle length of {', '.join(cyclic)}; {asked.name} has no "
            "cycles: leave restart out"
        )
    return length


def about_restart(first: Candidate, asked: int | None, n: int) -> list[str]:
    """Return a note on the cycles of the first method, if it has any."""
    length = first.options.get("restart")
    if length is None:
        return []
    if asked is not None:
        return [f"restart: after {length} iterations, as asked"]
    if length >= n:
        return ["restart: none, the basis of all iterations is small"]
    return [f"restart: after {length} iterations"]
