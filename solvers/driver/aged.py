"""A note on a preconditioner that has followed new values and has become poor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.status import Stop

if TYPE_CHECKING:
    from ..krylov.base import KrylovSolver

#: Iterations count as grown from this multiple of the earlier ones on, and from this many more.
TIMES, MORE = 2, 10

#: More iterations than any solve has.
NEVER_REACHED = 2**62


def about_updates(solver: KrylovSolver, stops: Sequence[Stop], count: int) -> list[str]:
    """Return a note if iterations have grown since updates of the preconditioner.

    A solve asks if it has more iterations than the solver expects, and in the first place. The
    first solves, before any update, say how many are expected.

    Parameters
    ----------
    solver : KrylovSolver
        The solver, with a preconditioner.
    stops : sequence of Stop
        Why each column ended.
    count : int
        Iterations of the solve.
    """
    kept = _keeper(solver.M)
    if kept is None:
        solver._expected_iterations = NEVER_REACHED
        return []
    updates, first = int(kept._updates), solver._first_iterations
    if first is not None and updates != first[1]:
        return [
            f"iterations rose from {first[0]} to {count} since the set-up: updates of "
            f"{type(kept).__name__} keep the levels that the first values led to; solver = "
            "solver.settings.on(A) makes both anew for the present values"
        ]
    if count and all(stop == Stop.CONVERGED for stop in stops):
        solver._first_iterations = count, updates
        solver._expected_iterations = max(TIMES * count, count + MORE)
    return []


def _keeper(M: Any) -> Any:
    """Return the part of a preconditioner that keeps choices made for its first values, or None."""
    if getattr(M, "_keeps_choices", False):
        return M
    inner = M._operators() if hasattr(M, "_operators") else [getattr(M, "M", None)]
    found = (_keeper(part) for part in inner if part is not None)
    return next((part for part in found if part is not None), None)
