"""A call of a solver: a solve, with reports of memory to loggers, in a kept workspace."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ...core.capture import SOLVES
from ...core.result import Result
from ...core.status import Stop
from .loop import Solve
from .watching import Watchers, memory_events

if TYPE_CHECKING:
    from ..krylov.base import KrylovSolver
    from .workspace import Workspace


def solve(
    solver: KrylovSolver, b: Any, x0: Any, watchers: Watchers, *, keep_last: bool = False
) -> Result:
    """Solve ``A x = b`` with a solver; see :meth:`KrylovSolver.solve`.

    With ``keep_last`` the solution is the last iterate, even if the solve failed and began with a
    smaller residual: a solver that preconditions another is a fixed number of iterations, not a
    verdict.
    """
    links = solver.executor.links
    if links is None and not watchers.loggers:
        return _solved(solver, b, x0, watchers, keep_last)
    shared = nullcontext() if links is None else links.guarded()
    with shared, memory_events(solver.executor, watchers.loggers):
        return _solved(solver, b, x0, watchers, keep_last)


#: Verdicts that an operator of an extreme size may be the reason for.
MAY_BE_OF_SCALE = frozenset(
    {Stop.INDEFINITE, Stop.BREAKDOWN, Stop.STAGNATED, Stop.NOT_FINITE, Stop.MAX_ITERATIONS}
)


def _solved(solver: KrylovSolver, b: Any, x0: Any, watchers: Watchers, keep_last: bool) -> Result:
    result, work = _once(solver, b, x0, watchers, keep_last)
    if not MAY_BE_OF_SCALE.isdisjoint(result.stops) and solver.rescale(work):
        result, _ = _once(solver, b, x0, watchers, keep_last)
    return result


def _once(
    solver: KrylovSolver, b: Any, x0: Any, watchers: Watchers, keep_last: bool
) -> tuple[Result, Workspace]:
    solver.executor.refuse_host(SOLVES)
    made = Solve(solver, b, x0, watchers, keep_last)
    try:
        if not watchers.loggers:
            return made.run(), made.work
        with watchers.on(made.work):
            return made.run(), made.work
    finally:
        solver.give_back(made.work)
