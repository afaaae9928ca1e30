"""Run the first cycle of an unwatched solve without reading from the device before its end.

Most solves are one cycle from a zero guess. For a few iterations, one wait for a device takes
longer than all computations between two waits. Hence the norm of the right-hand side, the
threshold, the cycle and the true residual are computed in one sequence of launches, and the host
reads the results once. If the solve is not finished, it continues as usual.

This path is for one column: in a block, a column that ends before the first iteration would force a
second solve on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.links import works_alone
from ...core.result import Result
from ...core.status import READ, Stop
from .scaling import LEAST_NORM, SAFE_NORMS
from .verdict import Members, ended_by, made_result, verdict
from .watching import ASKED

if TYPE_CHECKING:
    from ...core.executor import Array
    from .loop import Solve


@dataclass(frozen=True)
class FirstCycle:
    """The values that the host read after an unwatched cycle.

    Attributes
    ----------
    members : dict
        The members of the status that :data:`~wollemi.core.status.READ` names; None after Ctrl-C.
    left : int
        Number of remaining iterations of the cycle.
    verified : bool
        Whether the values include the true residual.
    driven : bool
        Whether Ctrl-C came during the iterations. Before them there is nothing to finish, and after
        them the iterate is complete.
    """

    members: Members | None
    left: int
    verified: bool
    driven: bool = False


def may_go_straight(solve: Solve) -> bool:
    """Return whether a solve has no watchers, and all required data are prepared."""
    solver, work, watchers = solve.solver, solve.work, solve.watchers
    return (
        work.k == 1
        and solver.A.shape[0] > 0  # an empty system has no launches to record
        and solve.start is None
        and work.scales.A == 1.0
        and not work.residual.is_opaque
        and solver._goes_straight
        and watchers.callback is None
        and watchers.norm_callback is None
        and not watchers.loggers
        and work.entering.resident
        and (work.applied or _may_begin_straight(solve))
        # Members of a group take the same path, even if one rank alone has a profiler.
        and not (solve.executor.observed and works_alone(solve.executor))
    )


def _may_begin_straight(solve: Solve) -> bool:
    """Return whether the first solve in a workspace may go straight.

    That of a user's class is watched: it has to tell norms and to apply ``M``. That of a group
    allocates memory between sums of its members, which must not be under way then.
    """
    return solve.work.applies_M and solve.executor.links is None


def go_straight(solve: Solve) -> Result | FirstCycle | None:
    """Run the first cycle of a solve.

    Returns
    -------
    Result, FirstCycle or None
        The result of a finished solve; the values to continue from; or None if no cycle was run,
        because the right-hand side needs checks.
    """
    executor, work, solver = solve.executor, solve.work, solve.solver
    status, linear = work.status, solver._linear
    assert linear is not None
    if not work.applied:
        work.prepare()
    transfer = status.transfer
    if transfer.filled_for is not linear:
        relative, absolute, least, most = transfer.host[5:]
        relative[0], absolute[0] = linear.relative, linear.absolute
        least[0], most[0] = SAFE_NORMS[solve.real]
        transfer.filled_for = linear
    solver.begin(work)
    transfer.write()
    executor.copy_into(work.r, solve.b)
    left, driven = solve.count, False
    try:
        executor.play(work.entering)
        solve.length = solver.next_cycle(work)
        if solve.length is not None:
            left = min(left, solve.length)
        batch = min(left, status.capacity)
        if batch:
            driven = True
            executor.drive(work.iteration, batch)
            driven = False
        left -= batch
        if left and not solver._spares_cycles:
            members = transfer.peek()
            safe = _has_safe_norm(solve, members)
            return FirstCycle(_named(members), left, verified=False) if safe else None
        executor.copy_into(work.spare, solve.b)
        # From here on, a device may wait for other members of a group: no memory is allocated then.
        x = executor.allocate(work.x.shape, work.x.dtype)
        executor.play(work.leaving)
        # Probably the solution: the host enqueues its copy while the device works.
        executor.copy_into(x, work.x)
        if executor.links is not None:
            executor.links.await_graph()  # it detects a member that will not answer
        members = transfer.peek()
    except KeyboardInterrupt:
        return FirstCycle(None, 0, verified=False, driven=driven)
    return _result_if_over(solve, x, members, left)


def _has_safe_norm(solve: Solve, members: list[np.ndarray[Any, Any]]) -> bool:
    """Return whether the right-hand side needs no scaling; else the device ran no iteration."""
    low, high = SAFE_NORMS[solve.real]
    return bool(low <= members[READ.index("first")].item() <= high)


def _named(members: list[np.ndarray[Any, Any]]) -> Members:
    return {name: np.array(member) for name, member in zip(READ, members, strict=True)}


def _result_if_over(
    solve: Solve, x: Array, members: list[np.ndarray[Any, Any]], left: int
) -> Result | FirstCycle | None:
    """Return the result of a solve that ended in its first cycle, else None."""
    stop, running, iterations, threshold, first, true, largest, history = members
    solver, linear, real = solve.solver, solve.solver._linear, solve.real
    assert linear is not None
    begun, norm, done = first.item(), true.item(), iterations.item()
    if not _has_safe_norm(solve, members):
        return None
    met = norm <= threshold.item()
    if (left and running.item()) or not isfinite(largest.item()) or not isfinite(norm):
        return FirstCycle(_named(members), left, verified=True)
    if met:
        if norm < LEAST_NORM[real]:  # its squares lost digits to underflow
            return FirstCycle(_named(members), left, verified=True)
        final = Stop.CONVERGED
    else:
        last = history.item(done - 1) if done else None
        final = verdict(
            Stop.RUNNING,
            ended_by(solver, stop.item(), last, real),
            progress=norm <= solver.PROGRESS * begun,
            exhausted=done >= solve.count,
            tolerated=linear.tolerated,
            counted=linear.iterations is not None,
            ends=solver.FINAL,
        )
        worse = norm > begun and not solve.keep_last and final not in ASKED
        if worse or final in (Stop.RUNNING, Stop.STAGNATED):
            return FirstCycle(_named(members), left, verified=True)
    residuals = np.empty((done + 1, 1))
    residuals[0], residuals[1:] = begun, history[:done]
    values = norm, linear.threshold(begun), begun
    solution = solve.converter.from_block(x, solve.user_b)
    if solution.ndim == 1:
        return made_result(solve, solution, [final], np.array(iterations), residuals[:, 0], *values)
    arrays = [np.array([value]) for value in values]
    return made_result(solve, solution, [final], np.array(iterations), residuals, *arrays)
