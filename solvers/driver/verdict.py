"""The verdict on the columns of a solve, the returned solution, and the result.

:class:`Verification` judges columns by the true residual and the end of the cycle.
:class:`BestIterate` keeps the solution of a failed solve: the best verified iterate.
:func:`result_of` creates the result from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.operations import vector
from ...core.result import Result
from ...core.setup_time import setup_seconds
from ...core.status import Stop
from .aged import about_updates
from .scaling import LEAST_NORM, RightHandSides, column, largest_values, norms, scale_columns

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ..krylov.base import KrylovSolver
    from .loop import Solve
    from .workspace import Workspace

Numbers = np.ndarray[Any, Any]

#: Members of a status, by name.
Members = dict[str, np.ndarray[Any, Any]]

# plain integers: the lookup of an enumeration member takes a microsecond, its comparison with an
# array five
RUNNING, CONVERGED = int(Stop.RUNNING), int(Stop.CONVERGED)

#: The stops by code: a lookup in the enumeration takes six times as long.
STOPS = tuple(Stop(code) for code in range(len(Stop)))


class JudgedColumns(NamedTuple):
    """The columns of a block after their residuals are known.

    Attributes
    ----------
    codes : list of int
        The stop code of each column.
    norms : list of float
        The norms of the true residuals.
    status_codes : list of int, optional
        The codes that the executor's status has; None if it has not computed them.
    """

    codes: list[int]
    norms: list[float]
    status_codes: list[int] | None = None


class Verification:
    """The part of a solve that verifies residuals and judges columns.

    Attributes
    ----------
    final, ended : array of uint8, shape (k,)
        Verdicts (:class:`Stop`), RUNNING without one, and the stops that ended the last cycle.
    norm, threshold : array, shape (k,)
        Norms of true residuals, and their thresholds, for the scaled columns.
    limit : array, shape (k,)
        The threshold in the precision of the status.
    running : int
        Number of columns without a verdict; within a cycle, number of running columns.
    begun : bool
        Whether the status belongs to this solve.
    """

    solver: KrylovSolver
    executor: Executor
    work: Workspace
    sides: RightHandSides
    best: BestIterate
    start: Array | None
    real: np.dtype[Any]
    final: np.ndarray[Any, Any]
    ended: np.ndarray[Any, Any]
    norm: np.ndarray[Any, Any]
    threshold: np.ndarray[Any, Any]
    limit: np.ndarray[Any, Any]
    iterations: np.ndarray[Any, Any]
    history: list[list[float]]
    running: int
    begun: bool
    count: int
    counted: bool
    tolerated: bool

    def _undecided(self) -> list[int]:
        """Return the indices of the columns without a verdict."""
        return [c for c, code in enumerate(self.final.tolist()) if code == RUNNING]

    def _end(self, why: Stop) -> None:
        """End the columns that have no verdict yet."""
        self.final[self._undecided()] = why
        self.running = 0

    def _verify(self, first: bool = False, members: Members | None = None) -> None:
        """Compute the true residual, unless ``members`` has it, and judge the columns."""
        status, before, undecided = self.work.status, self.norm, self._undecided()
        known = first and self._knows_start()
        if known:
            judged = JudgedColumns(self._start_codes(), self.sides.norm.tolist())
        elif members is not None:
            judged = self._read_codes(members, undecided)
        else:
            judged = self._computed_codes(first, undecided)
            if first and np.any(self._drop_long_starts(np.array(judged.norms))):
                judged = self._computed_codes(first, undecided)
        codes, residual = judged.codes, judged.norms
        self.norm = before.copy()
        self.norm[undecided] = [residual[c] for c in undecided]
        if first:
            self.best.first = self.norm.copy()
            for c, value in enumerate(self.sides.in_units_of_b(self.norm).tolist()):
                self.history[c].append(value)
        for c in undecided:
            progress = first or bool(residual[c] <= self.solver.PROGRESS * before[c])
            self.final[c] = self._judge(Stop(codes[c]), progress, c)
        final = self.final.tolist()
        self.running = final.count(RUNNING)
        if known and self.running:
            self.executor.copy_into(self.work.r, self.sides.block)
            self._arm_first(norm=self.norm.astype(self.real))
        elif self.running and members is not None:
            status.arm(self.final, norm=self.norm.astype(self.real))
        elif self.running and (final != judged.status_codes or self.work.residual.is_opaque):
            status.arm(self.final, threshold=self.limit)

    def _drop_long_starts(self, norm: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Start from zero if the initial guess is so large that its residual has no digit of ``b``.

        Parameters
        ----------
        norm : array, shape (k,)
            Residual norms of the initial guesses.

        Returns
        -------
        array of bool, shape (k,)
            The columns that now start from zero.
        """
        allowed = self.sides.norm / np.finfo(self.real).eps
        long = ~(norm <= allowed) & (self.sides.norm > 0) & (self.start is not None)
        for c in np.flatnonzero(long):
            self.best.forget_start(int(c))
        return np.asarray(long)

    def _arm_first(self, **members: np.ndarray[Any, Any]) -> None:
        """Set the status values that the solver's steps read, once for a solve."""
        none_done = np.zeros(self.work.k, np.int64)
        self.work.status.arm(self.final, threshold=self.limit, iterations=none_done, **members)
        self.begun = True

    def _knows_start(self) -> bool:
        """Return whether the true residual of the initial guess is known without computation.

        For a zero guess, it is the right-hand side. It is computed nevertheless if applications of
        ``A`` are counted, and in the first solve of a workspace, so that operators prepare their
        one-time data.
        """
        return self.start is None and self.work.verifying.resident and self.work.applied

    def _start_codes(self) -> list[int]:
        """Return the codes that a solver's steps would set for residuals of these norms."""
        met = self.sides.norm.astype(self.real) <= self.limit
        return [CONVERGED if passes else RUNNING for passes in met.tolist()]

    def _computed_codes(self, first: bool, undecided: list[int]) -> JudgedColumns:
        """Compute the true residual; return the codes of the columns and its norms."""
        work, status = self.work, self.work.status
        if first:
            self._arm_first()
        elif self.ended.tolist() != self.final.tolist():
            status.arm(self.final)
        self.executor.copy_into(work.r, self.sides.block)
        self.executor.play(work.verifying)
        work.applied = True
        codes, norm, largest = status.read_together("stop", "norm", "largest")
        armed: list[int] = codes.tolist()
        judged, residual = list(armed), norm.tolist()
        self._doubt(judged, residual, largest.tolist(), undecided)
        return JudgedColumns(judged, residual, armed)

    def _read_codes(self, members: Members, undecided: list[int]) -> JudgedColumns:
        """Return the codes of the columns and the norms of the true residual after a cycle."""
        true, met = members["true"], members["true"] <= members["threshold"]
        codes = np.where(met, CONVERGED, RUNNING)
        judged: list[int] = np.where(np.isfinite(true), codes, int(Stop.NOT_FINITE)).tolist()
        residual: list[float] = true.tolist()
        if self.work.spare is not self.work.r:
            self.executor.copy_into(self.work.r, self.work.spare)
        self._doubt(judged, residual, members["largest"].tolist(), undecided)
        return JudgedColumns(judged, residual)

    def _doubt(
        self, codes: list[int], norm: list[float], largest: list[float], undecided: list[int]
    ) -> None:
        """Check the codes of kernels again for extreme values; correct them in place.

        The squares of a tiny residual underflow. If a column of ``A`` has no entries, the residual
        does not depend on that element of ``x``, which may not be finite.
        """
        self._doubt_rounding(codes, norm, undecided)
        for c in undecided:
            if not isfinite(largest[c]) and self._is_not_finite(c):
                codes[c], norm[c] = int(Stop.NOT_FINITE), inf
            if codes[c] != CONVERGED or norm[c] >= LEAST_NORM[self.real]:
                continue
            if self.sides.norm[c] > 0:
                norm[c] = float(norms(self.executor, column(self.work.r, c))[0])
                if norm[c] > self.threshold[c]:
                    codes[c] = int(Stop.STAGNATED)  # the rest is too small for any recurrence

    def _doubt_rounding(self, codes: list[int], norm: list[float], undecided: list[int]) -> None:
        """Revoke a success that rounding errors of an opaque operator may have caused.

        The column continues with a threshold that is reduced by the rounding error, if it stays
        positive.
        """
        claims = [c for c in undecided if codes[c] == CONVERGED]
        if not self.work.residual.is_opaque or not claims:
            return
        rounding = self.work.residual.rounding(self.work.x)
        for c in claims:
            allowed = self.threshold[c] - rounding[c]
            if not norm[c] <= allowed and self.sides.norm[c] > 0:
                codes[c] = RUNNING if allowed > 0 else int(Stop.STAGNATED)
                self.limit[c] = min(self.limit[c], max(allowed, 0.0))

    def _is_not_finite(self, c: int) -> bool:
        return not isfinite(largest_values(self.executor, column(self.work.x, c))[0])

    def _how_ended(self, c: int) -> Stop:
        """Return the stop that ended the last cycle of a column."""
        history = self.history[c]
        last = history[-1] * self.sides.scale[c] if len(history) > 1 else None
        return ended_by(self.solver, int(self.ended[c]), last, self.real)

    def _judge(self, stop: Stop, progress: bool, c: int) -> Stop:
        """Return the verdict on a column; ``stop`` is the code of its true residual."""
        return verdict(
            stop,
            self._how_ended(c),
            progress=progress,
            exhausted=bool(self.iterations[c] >= self.count),
            tolerated=self.tolerated,
            counted=self.counted,
            ends=self.solver.FINAL,
        )


def ended_by(solver: KrylovSolver, code: int, last: float | None, real: np.dtype[Any]) -> Stop:
    """Return the stop of a column's cycle; curvatures that underflow are ignored.

    ``last`` is the norm of the scaled column in its last iteration, if there was one.
    """
    ended = STOPS[code]
    ended = solver.MEANS.get(ended, ended)
    if ended in solver.FINAL and last is not None and last < LEAST_NORM[real]:
        return Stop.CONVERGED
    return ended


def verdict(
    stop: Stop,
    ended: Stop,
    *,
    progress: bool,
    exhausted: bool,
    tolerated: bool,
    counted: bool,
    ends: frozenset[Stop],
) -> Stop:
    """Return the verdict on a column; RUNNING if another cycle is worthwhile.

    Parameters
    ----------
    stop : Stop
        The code of the true residual.
    ended : Stop
        The stop that ended the last cycle.
    progress : bool
        Whether this cycle reduced the residual.
    exhausted : bool
        Whether the column has reached the iteration limit.
    tolerated, counted : bool
        Whether the user gave a tolerance, and an iteration limit.
    ends : frozenset of Stop
        The stops after which no other cycle follows.
    """
    if stop != Stop.RUNNING:
        return stop
    if exhausted and not tolerated and counted:
        return Stop.ITERATIONS
    if ended in ends:
        return ended
    if ended != Stop.RUNNING and not progress:
        if ended not in (Stop.CONVERGED, Stop.STAGNATED):
            return ended
        return Stop.STAGNATED if tolerated else Stop.NO_PROGRESS
    return Stop.MAX_ITERATIONS if exhausted else Stop.RUNNING


class BestIterate:
    """The iterate with the smallest true residual so far, for each column.

    The initial guess is given and needs no copy. Later iterates are copied when their true residual
    is the smallest so far; a solve of one cycle copies none.

    Parameters
    ----------
    work : Workspace
        The workspace of the solve.
    sides : RightHandSides
        The right-hand sides with their scales.
    start : array, shape (n, k), or None
        The initial guess, in the units of the arguments; None for zeros.
    """

    def __init__(self, work: Workspace, sides: RightHandSides, start: Array | None) -> None:
        self.work, self.sides, self.start = work, sides, start
        self.executor = work.executor
        #: Residual norms of the initial guess; infinite until it is verified.
        self.first = np.full(work.k, np.inf)
        self.prepared = False

    def prepare(self) -> None:
        """Let the workspace keep iterates that are better than the initial guess."""
        if not self.prepared:
            self.work.make_best()
            best = self.work.best
            self.executor.copy_into(best, self.first.astype(best.dtype))
            self.prepared = True

    def keep(self) -> None:
        """Keep the iterates that were just verified, for columns with a new smallest residual."""
        self.prepare()
        self.work.keep()

    def keep_columns(self, norm: Numbers) -> None:
        """Keep iterates within a cycle, given their true norms, if they are the best so far."""
        self.prepare()
        work = self.work
        best = np.array(self.executor.to_host(work.best))
        running = work.status.read("stop") == Stop.RUNNING
        better = np.flatnonzero(running & (norm < best))
        for c in map(int, better):
            self._copy(work.x, work.best_x, c)
            best[c] = norm[c]
        if better.size:
            self.executor.copy_into(work.best, best)

    def restore(self, columns: list[int], norm: Numbers) -> None:
        """Copy the best iterates to columns of ``x`` that are worse, and update ``norm``."""
        best = self.first
        if self.prepared and columns:
            best = self.executor.to_host(self.work.best).astype(np.float64)
        for c in columns:
            if np.isfinite(norm[c]) and norm[c] <= best[c]:
                continue
            known = best[c] < self.first[c]
            if known:
                self._copy(self.work.best_x, self.work.x, c)
                norm[c] = best[c]
                # a device that runs cycles by itself checks residuals only
                known = np.isfinite(largest_values(self.executor, column(self.work.x, c))[0])
            if not known:
                self.restart(self.work.x, c, norm)
                exponents = self.sides.solution_exponents[[c]]
                scale_columns(self.executor, column(self.work.x, c), exponents)

    def restart(self, block: Array, c: int, norm: Numbers) -> None:
        """Copy the initial guess to a column, in the arguments' units, and update ``norm``."""
        if self.start is None or self.sides.norm[c] == 0:
            self.executor.run(vector.fill, column(block, c), 0.0)
        else:
            self._copy(self.start, block, c)
        norm[c] = self.first[c]

    def residual_norms(self) -> Numbers:
        """Return the norms of the true residual of ``x``; overwrites ``r``, so not in a cycle."""
        work = self.work
        self.executor.copy_into(work.r, self.sides.block)
        work.residual.make(work.x, work.r)
        return norms(self.executor, work.r)

    def judge(
        self,
        solution: Array,
        changed: list[int],
        final: Numbers,
        norm: Numbers,
        threshold: Numbers,
    ) -> None:
        """Judge columns again if their solution changed when it was scaled back.

        Parameters
        ----------
        solution : array, shape (n, k)
            The solution in the units of the arguments; columns may be reset to the initial guess.
        changed : list of int
            The columns that lost digits when they were scaled back.
        final, norm : array, shape (k,)
            Verdicts and residual norms, updated for ``solution``.
        threshold : array, shape (k,)
            The thresholds of the residual norms.
        """
        if not changed:
            return
        work = self.work
        self.executor.run(vector.axpby, solution, work.x, 1.0, 0.0)
        scale_columns(self.executor, work.x, self.sides.solution_exponents)
        residual_norms = self.residual_norms()
        residual_norms[~np.isfinite(largest_values(self.executor, solution))] = np.inf
        for c in changed:
            norm[c] = residual_norms[c]
            met = np.isfinite(residual_norms[c]) and residual_norms[c] <= threshold[c]
            if final[c] == Stop.CONVERGED and not met:
                final[c] = Stop.OUT_OF_RANGE
            if not met and not (
                np.isfinite(residual_norms[c]) and residual_norms[c] <= self.first[c]
            ):
                self.restart(solution, c, norm)

    def forget_start(self, c: int) -> None:
        """Start a column from zero instead of its initial guess."""
        assert self.start is not None
        self.start = self.executor.copy(self.start)
        for block in (self.start, self.work.x):
            self.executor.run(vector.fill, column(block, c), 0.0)

    def _copy(self, source: Array, target: Array, c: int) -> None:
        self.executor.run(vector.axpby, column(source, c), column(target, c), 1.0, 0.0)


def result_of(
    solve: Solve,
    x: Any,
    stops: Sequence[Stop],
    iterations: Numbers,
    norms: Numbers,
    thresholds: Numbers,
    residuals: Numbers,
    sizes: Numbers,
) -> Result:
    """Return the result of a solve, in the shape of the user's arguments.

    Parameters
    ----------
    solve : Solve
        The finished solve.
    x : Array
        The solution in the user's array type.
    stops : sequence of Stop, length k
        The stop of each column.
    iterations, norms, thresholds : ndarray, shape (k,)
        The values of each column; norms and thresholds in the units of the right-hand side.
    residuals : ndarray, shape (iterations + 1, k)
        The norms of all iterations.
    sizes : ndarray, shape (k,)
        The norms of the right-hand sides.
    """
    if np.ndim(solve.user_b) != 1:
        return made_result(solve, x, list(stops), iterations, residuals, norms, thresholds, sizes)
    values = (array.item() for array in (norms, thresholds, sizes))
    return made_result(solve, x, list(stops), iterations, residuals[:, 0], *values)


def made_result(
    solve: Solve,
    x: Any,
    stops: list[Stop],
    iterations: Numbers,
    residuals: Numbers,
    norm: Any,
    threshold: Any,
    size: Any,
) -> Result:
    """Return the result of a solve from values in the user's shape.

    The parameters are as in :func:`result_of`. For a vector, ``residuals`` is a vector, and
    ``norm``, ``threshold`` and ``size`` are numbers.
    """
    solver = solve.solver
    notes, count = solver.notes_of(solver.M), residuals.shape[0] - 1
    if solver.M is not None and count > solver._expected_iterations:
        notes = [*notes, *about_updates(solver, stops, count)]
    return Result(
        x=x,
        stops=stops,
        column_iterations=iterations,
        residual_norm=norm,
        residuals=residuals,
        threshold=threshold,
        norm_of_b=size,
        seconds=solve.watchers.elapsed,
        solver=type(solver).__name__,
        executor=solve.executor.name,
        notes=notes,
        setup_before=setup_seconds(solver),
    )
