"""A note on a preconditioner that has become poor after updates to new values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.status import Stop

if TYPE_CHECKING:
    from ..krylov.base import KrylovSolver

#: Iterations count as grown if they are at least TIMES the earlier ones, and MORE more.
TIMES, MORE = 2, 10

#: A number of iterations that no solve reaches.
NEVER_REACHED = 2**62


def about_updates(solver: KrylovSolver, stops: Sequence[Stop], count: int) -> list[str]:
    """Return a note if iterations have grown since updates of the preconditioner.

    It is called for the first solves, and for solves with more iterations than the solver expects.
    The first solves, before any update, set the expected number.

    Parameters
    ----------
    solver : KrylovSolver
        The solver, with a preconditioner.
    stops : sequence of Stop
        The stop of each column.
    count : int
        Number of iterations of the solve.
    """
    keeper = _keeper(solver.M)
    if keeper is None:
        solver._expected_iterations = NEVER_REACHED
        return []
    updates, first = int(keeper._updates), solver._first_iterations
    if first is not None and updates != first[1]:
        return [
            f"iterations rose from {first[0]} to {count} since the set-up: updates of "
            f"{type(keeper).__name__} keep the levels that the first values led to; solver = "
            "solver.settings.on(A) builds solver and preconditioner again from the current values"
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
    keepers = (_keeper(part) for part in inner if part is not None)
    return next((part for part in keepers if part is not None), None)
