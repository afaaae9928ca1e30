"""One solve: the host's decisions between two drives of the executor.

One solve: the host's decisions between two drives of the executor.

:func:`solve` is the entry point of solvers. It repeats a failed solve if scaling the operators may
help. A solve is a sequence of cycles. Each cycle begins with the true residual, which ends columns
that meet their threshold. The executor then drives the solver's recurrence until the status on the
device says stop, or until a watcher on the host is due.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.capture import SOLVES
from ...core.dtypes import real_dtype
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.loggers import Logger, Snapshot
from ...core.operations import vector
from ...core.result import Result
from ...core.small_values import as_dtype
from ...core.status import Stop
from ...core.stopping import Norms, State
from ...core.vector_conversions import VectorConverter, vector_converter
from .applications import applications_required
from .fast_path import FirstCycle, go_straight, may_go_straight
from .hermitian import (
    DRIFT,
    FALLS,
    FIRST_LOOK,
    are_the_reason,
    asymmetries_of,
    explained,
    has_fallen,
)
from .scaling import (
    RightHandSides,
    column,
    indices,
    largest_values,
    norms,
    scale_columns,
    scaled_back,
)
from .verdict import CONVERGED, RUNNING, BestIterate, Members, Numbers, Verification, result_of
from .watching import ASKED, SolveWatchers, finish, memory_events, says_stop

if TYPE_CHECKING:
    from ...core.executor import Array
    from ..krylov.base import KrylovSolver
    from .workspace import Workspace

#: Iteration limit of solves that only a time limit ends.
UNLIMITED = 2**62

_ASKED = frozenset(map(int, ASKED))


def _agreement(solver: KrylovSolver, watchers: SolveWatchers) -> tuple[str, ...]:
    """Return the settings on which all members of a group must agree, since they share sums."""
    called = (watchers.callback is not None, watchers.norm_callback is not None)
    links = solver.executor.links
    # Kernels of a loop and single operations meet the other members by different messages.
    profiled = links is not None and links.fuses and solver.executor.observed
    return (
        type(solver).__name__, repr(solver.stop), f"cycle {solver.cycle}", str(solver.dtype),
        f"watched every {watchers.periods(True)}", f"callbacks {called}",
        f"profiled {profiled}",
    )  # fmt: skip


class Solve(Verification):
    """One solve: the state of the host between drives.

    Norms and thresholds refer to the scaled columns; values for users are unscaled.
    """

    def __init__(
        self, solver: KrylovSolver, b: Any, x0: Any, watchers: SolveWatchers, keep_last: bool
    ) -> None:
        self.solver, self.user_b, self.watchers = solver, b, watchers
        self.executor = executor = solver.executor
        self.keep_last = keep_last
        block: Array | None
        start: Array | None = None
        if solver.A.partition is None:
            self.converter: VectorConverter = solver._vector_converter
            block = None if b is None else self.converter.to_block(b, "b")
            if x0 is not None:
                start = self.converter.to_block(x0, "x0")
        else:
            self.converter = VectorConverter(solver) if keep_last else vector_converter(solver)
            block, start = self.converter.to_blocks(_agreement(solver, watchers), b=b, x0=x0)
        if block is None:
            raise InvalidArgument("b: expected an array, got NoneType")
        if start is not None and start.shape != block.shape:
            raise ShapeMismatch(f"x0 has shape {tuple(start.shape)}, b {tuple(block.shape)}")
        dtype = solver.dtype
        if start is not None or block.dtype != dtype or solver.requested_dtype is not None:
            dtypes = [block.dtype, *([] if start is None else [start.dtype])]
            dtype = solver._precision_for(dtype, *dtypes)
            block = as_dtype(executor, block, dtype)
            start = None if start is None else as_dtype(executor, start, dtype)
        self.b, self.start = block, start
        self.work = solver._take_workspace(dtype, int(block.shape[1]))
        self.real = real_dtype(dtype)
        linear = solver._linear
        limit = None if linear is None else linear.iterations
        #: Iteration limit of the solve.
        self.count = 10 * max(self.work.A.shape[0], 1) if limit is None else limit
        #: Iteration limit of the last cycle.
        self.length: int | None = None

    def _prepare(self) -> None:
        """Initialize the state that the host keeps during a solve."""
        k = self.work.k
        self.final = np.zeros(k, np.uint8)
        self.ended, self.running = np.zeros(k, np.uint8), k
        self.norm = np.zeros(k)
        self.iterations = np.zeros(k, np.int64)
        self.history: list[list[float]] = [[] for _ in range(k)]
        self.period = self.solver._period
        self.halt: Stop | None = None
        solver = self.solver
        asks = bool(solver.HERMITIAN) and solver.partition is None and not self.keep_last
        #: Number of iterations after which to check whether the operators are Hermitian.
        self.next_look = FIRST_LOOK if asks else UNLIMITED
        #: The true norms at the last of these checks.
        self.norms_at_look: Numbers | None = None
        self.begun = False
        self.advanced = False
        self.b_is_in_place = False

    # ---- before

    def _place_start(self) -> None:
        work, sides = self.work, self.sides
        if self.start is None:
            self.executor.run(vector.fill, work.x, 0.0)
        else:
            self.executor.run(vector.axpby, self.start, work.x, 1.0, 0.0)
            if not np.all(np.isfinite(largest_values(self.executor, work.x))):
                raise InvalidArgument("x0 has NaN or Inf; start from finite values")
            scale_columns(self.executor, work.x, sides.solution_exponents)
            # the solution of A x = 0 is 0 for every guess
            for c in indices(sides.norm == 0):
                self.executor.run(vector.fill, column(work.x, c), 0.0)

    def _initial_norms(self) -> np.ndarray[Any, Any]:
        if self.start is None:
            return self.sides.norm
        initial_norms = self.best.residual_norms()
        return np.where(self._drop_long_starts(initial_norms), self.sides.norm, initial_norms)

    def _set_limits(self) -> None:
        """Compute the limits of the criteria for these right-hand sides."""
        sides, work, linear = self.sides, self.work, self.solver._linear
        norms = Norms(sides.norm, self._initial_norms, sides.scale)
        limits = self.solver.stop.limits(norms)
        self.tolerated = limits.threshold is not None
        self.threshold = np.zeros(work.k) if limits.threshold is None else limits.threshold
        if linear is not None:
            self.limit = linear.limits(norms, self.real)
        else:
            with np.errstate(over="ignore"):
                self.limit = self.threshold.astype(self.real)
        self.watchers.seconds, self.watchers.user_criteria = limits.seconds, limits.user_criteria
        self.counted = limits.iterations is not None
        if limits.iterations is not None:
            self.count = limits.iterations
        else:
            unlimited = limits.seconds is not None
            self.count = UNLIMITED if unlimited else 10 * max(work.A.shape[0], 1)

    # ---- the cycles

    def run(self) -> Result:
        """Run cycles until every column has its verdict."""
        ahead = None
        if may_go_straight(self):
            with self.executor.uncaptured():
                ahead = go_straight(self)
        if isinstance(ahead, Result):
            return ahead
        self._prepare()
        known = None if ahead is None or ahead.members is None else ahead.members["first"]
        self.sides = RightHandSides(
            self.executor, self.b, self.work.status.first, known, self.work.scales.A
        )
        self.best = BestIterate(self.work, self.sides, self.start)
        if ahead is None:
            self._place_start()
            self.solver.begin(self.work)
        self._set_limits()
        interrupted = False
        try:
            if ahead is None:
                self._verify(first=True)
                self._tell("start", self.watchers.loggers, self.norm)
            else:
                self._go_on(ahead)
                self._end_if_halted()
            while self.running:
                self._cycle()
                self._cycles_unwatched()
                self._verify()
                self._tell("verified", self.watchers.loggers, self.norm)
                self._end_if_halted()
        except KeyboardInterrupt:
            interrupted = True
            if self.begun:
                self._take_norms()  # from the interrupted drive
            self._end(Stop.INTERRUPTED)
        result = self._result()
        finish(result, self.watchers.loggers, self.solver, interrupted)
        return result

    def _end_if_halted(self) -> None:
        if self.halt is not None:
            self._end(self.halt)

    def _go_on(self, ahead: FirstCycle) -> None:
        """Continue after a first cycle, or a part of it, that ran unwatched."""
        self.begun = True
        self.norm = self.sides.norm.copy()
        self.best.first = self.norm.copy()
        for c, value in enumerate(self.norm.tolist()):
            self.history[c].append(value)
        if ahead.members is None:
            if ahead.driven:
                self.executor.play(self.work.ending)
            raise KeyboardInterrupt
        self._take_norms(ahead.members)
        if not ahead.verified or (self.running and ahead.left):
            self._rest_of_cycle(ahead.left if self.running else 0)
            self._cycles_unwatched()
            self._verify()
        elif self._cycles_unwatched():
            self._verify()
        else:
            self._verify(members=ahead.members)

    def _cycle(self) -> None:
        solver, work = self.solver, self.work
        if self._done:
            self.best.keep()
        self.executor.play(work.beginning)
        left, self.length = self._left(), solver.next_cycle(work)
        self._rest_of_cycle(left if self.length is None else min(left, self.length))

    def _rest_of_cycle(self, left: int) -> None:
        """Drive a started cycle until it ends, for at most ``left`` iterations."""
        solver, work = self.solver, self.work
        interruption: KeyboardInterrupt | None = None
        try:
            while left > 0 and not self._fails_by_asymmetry():
                batch = min(left, work.status.capacity, *self._until_looks())
                self.executor.drive(work.iteration, batch)
                left -= batch
                self._record()
                if self._asked_to_stop() or self.running == 0:
                    break
        except KeyboardInterrupt as error:
            interruption = error
        # also after Ctrl-C: the iterate is a useful result
        self.executor.play(work.ending)
        if interruption is not None:
            raise interruption
        if not solver.keeps_iterate:
            self._callback_stops()

    def _cycles_unwatched(self) -> bool:
        """Let the executor run further cycles, if no watcher is due between two of them.

        It stops when a column stops; its true residual is not yet the verdict. Returns whether any
        cycle was run.
        """
        solver, work = self.solver, self.work
        watched = self.watchers.callback is not None or self._periods()
        usual = solver.cycle is not None and self.length == solver.cycle
        if not usual or watched or np.any(self.ended != self.final):
            return False
        assert solver.cycle is not None
        limit = min(self._left(), work.status.capacity) // solver.cycle
        if limit < 1:
            return False
        if not self.b_is_in_place:
            self.executor.run(vector.axpby, self.sides.block, work.b, 1.0, 0.0)
            self.b_is_in_place = True
        self.best.prepare()
        if not self.executor.drive_cycles(work.cycles, limit):
            return False
        self._record()
        begun = self.executor.to_host(work.begun).astype(np.float64)
        self.norm = np.where(self.final == RUNNING, begun, self.norm)
        return True

    # ---- between drives

    def _left(self) -> int:
        return self.count - max((int(self.iterations[c]) for c in self._undecided()), default=0)

    @property
    def _done(self) -> int:
        return max(self.iterations.tolist(), default=0)

    def _periods(self) -> list[int]:
        """Return the period of each watcher, in iterations."""
        periods = self.watchers.periods(self.solver.keeps_iterate)
        return periods if self.period is None else [*periods, self.period]

    def _until_looks(self) -> list[int]:
        """Return the number of iterations until each watcher is due."""
        return [period - self._done % period for period in self._periods()]

    def _record(self) -> None:
        self._take_norms()
        if self._done == 0:
            self._require_observed()
        looking = self.watchers.looking(self._done) if self.advanced else []
        true = None
        if self.solver.keeps_iterate and any(logger.true_residual for logger in looking):
            true = self._true_norms()
        self._tell("iteration", looking, true)

    def _take_norms(self, members: Members | None = None) -> None:
        """Read the norms of the last drive from the ring buffer, or from ``members``."""
        status, names = self.work.status, ("iterations", "history", "running", "stop")
        # one read for all, because each wait for a device costs as much as an iteration or two
        arrays = status.read_together(*names) if members is None else [members[n] for n in names]
        iterations, ring, running, self.ended = arrays
        self.running, self.advanced = int(running[0]), False
        done = iterations.tolist()
        for c, seen_iterations in enumerate(self.iterations.tolist()):
            if done[c] == seen_iterations:
                continue
            self.advanced = True
            rows = np.arange(seen_iterations, done[c]) % status.capacity
            self.history[c].extend(
                self.sides.given_of(c, ring[rows, c].astype(np.float64)).tolist()
            )
        self.iterations = iterations

    def _require_observed(self) -> None:
        """Raise if iterations ran, but none of them reported a norm to the status.

        Raises
        ------
        InvalidArgument
            If a column is still running after iterations that were not counted.
        """
        if RUNNING in self.ended.tolist():
            name = type(self.solver).__name__
            raise InvalidArgument(
                f"{name}.iterate: an iteration ended without the norm of its residual, so that "
                "nothing counts it; call w.observe(norm) in one step of each iteration, such as "
                "w.observe(sqrt(norm2(w.r)))"
            )

    def _tell(self, event: str, loggers: list[Logger], true: np.ndarray[Any, Any] | None) -> None:
        if not loggers:
            return
        in_units_of_b = self.sides.in_units_of_b
        snapshot = Snapshot(
            solver=type(self.solver).__name__,
            executor=self.executor.name,
            iteration=self._done,
            limit=self.count,
            norm=self._seen_norms(),
            threshold=in_units_of_b(self.threshold),
            running=self.running,
            true_norm=None if true is None else in_units_of_b(true),
        )
        for logger in loggers:
            if (method := getattr(logger, event, None)) is not None:
                method(snapshot)

    def _seen_norms(self) -> np.ndarray[Any, Any]:
        return np.array([norms[-1] for norms in self.history])

    def _state(self) -> State:
        in_units_of_b = self.sides.in_units_of_b
        return State(
            iteration=self._done,
            norm=self._seen_norms(),
            norm_b=in_units_of_b(self.sides.norm),
            initial_norm=in_units_of_b(self.best.first),
            seconds=self.watchers.elapsed,
        )

    def _asked_to_stop(self) -> bool:
        """Return whether a callback, a criterion, the clock or the true residual ends the cycle.

        Callbacks also see the last iteration. A column that has met its tolerance by then is solved
        even if a callback stops: the true residual decides.
        """
        if self.advanced and (
            (self.solver.keeps_iterate and self._callback_stops()) or self._norm_callback_stops()
        ):
            return True
        if self.running == 0:
            return False
        agreed = self.executor.agreed
        if (
            self.watchers.user_criteria
            and self.advanced
            and agreed(self.watchers.criterion_met(self._state, self._done))
        ):
            self.halt = Stop.CRITERION
            return True
        if self.watchers.seconds is not None and agreed(self.watchers.out_of_time()):
            self.halt = Stop.TIME_LIMIT
            return True
        return (
            self.period is not None
            and self.solver.keeps_iterate
            and self._done % self.period == 0
            and self._true_residual_passes()
        )

    def _fails_by_asymmetry(self) -> bool:
        """Return whether the residual stagnates because an operator is not Hermitian.

        Only methods that need Hermitian operators are checked, after 1024, 2048, ... iterations.
        The solve ends if the residual of no column falls.
        """
        if self._done < self.next_look:
            return False
        while self.next_look <= self._done:
            self.next_look *= 2
        running = [c for c in self._undecided() if self.ended[c] == RUNNING]
        if not running or not self.solver.HERMITIAN:
            return False
        residual = self._true_residual()
        before = self.norm if self.norms_at_look is None else self.norms_at_look
        self.norms_at_look = now = norms(self.executor, residual)
        # this check takes one product, and the next one takes four
        if any(self._has_fallen(c, before, now) for c in running):
            return False
        if not asymmetries_of(self.solver):
            return False
        blocks = (self.sides.block, self.work.x, residual)
        b, x, r = (np.asarray(self.executor.to_host(block)) for block in blocks)
        if not np.all(are_the_reason(self.solver, b, self.work.scales.A * x, r)[running]):
            return False
        self.halt = Stop.STAGNATED
        return True

    def _has_fallen(self, c: int, before: Numbers, now: Numbers) -> bool:
        """Return whether the residual of a column falls; true norms replace useless estimates."""
        history, true = self.history[c], now[c]
        if true > DRIFT * history[-1] * self.sides.scale[c]:
            return bool(true <= FALLS * before[c])
        return has_fallen(history)

    def _callback_stops(self) -> bool:
        callback = self.watchers.callback
        if callback is None:
            return False
        if not self.executor.agreed(says_stop(callback(self._shaped(self._solution())))):
            return False
        self.halt = Stop.CALLBACK
        return True

    def _norm_callback_stops(self) -> bool:
        callback = self.watchers.norm_callback
        if callback is None:
            return False
        norm_b = self.sides.in_units_of_b(self.sides.norm)
        relative_norms = self._seen_norms() / np.where(norm_b > 0, norm_b, 1.0)
        answer = says_stop(
            callback(relative_norms[0] if np.ndim(self.user_b) == 1 else relative_norms)
        )
        if not self.executor.agreed(answer):
            return False
        self.halt = Stop.CALLBACK
        return True

    def _true_norms(self) -> np.ndarray[Any, Any]:
        """Return the norms of the true residual within a cycle, and keep the best iterates."""
        true_norms = norms(self.executor, self._true_residual())
        self.best.keep_columns(true_norms)
        return true_norms

    def _true_residual(self) -> Array:
        """Return the true residual within a cycle."""
        scratch = self.executor.copy(self.sides.block)
        self.work.residual.make(self.work.x, scratch)
        return scratch

    def _true_residual_passes(self) -> bool:
        norm = self._true_norms()
        running = self.work.status.read("stop") == Stop.RUNNING
        return bool(np.all(norm[running] <= self.threshold[running]))

    # ---- after

    def _solution(self) -> Array:
        """Return a copy of the iterate in the units of the arguments."""
        return scaled_back(self.executor, self.work.x, self.sides.solution_exponents)[0]

    def _shaped(self, block: Array) -> Any:
        return self.converter.from_block(block, self.user_b)

    def _is_worse(self, c: int) -> bool:
        """Return whether a failed column may have had a better iterate than the last one."""
        if not isfinite(self.norm[c]):
            return True
        return not self.keep_last and int(self.final[c]) not in _ASKED

    def _tell_least_squares(self) -> None:
        """Mark columns as least squares if their residual cannot fall for lack of a solution."""
        stagnated = [c for c, code in enumerate(self.final.tolist()) if code == Stop.STAGNATED]
        if stagnated and not self.keep_last and self.halt is None:
            is_least_squares = self.solver.least_squares(self.work, self.sides.block, stagnated)
            self.final[is_least_squares] = Stop.LEAST_SQUARES

    def _result(self) -> Result:
        final = self.final.tolist()
        if int(Stop.INTERRUPTED) in final:
            self.norm = self.best.residual_norms()
        failed = [c for c, code in enumerate(final) if code != CONVERGED and self._is_worse(c)]
        self.best.restore(failed, self.norm)
        self._tell_least_squares()
        solution, changed = scaled_back(self.executor, self.work.x, self.sides.solution_exponents)
        self.best.judge(solution, changed, self.final, self.norm, self.threshold)
        residuals = np.full((max(map(len, self.history), default=1), self.work.k), np.nan)
        for c, history in enumerate(self.history):
            residuals[: len(history), c] = history
        return result_of(
            self,
            self._shaped(solution),
            [Stop(code) for code in self.final.tolist()],
            self.iterations,
            self.sides.in_units_of_b(self.norm),
            self.sides.in_units_of_b(self.threshold),
            residuals,
            self.sides.in_units_of_b(self.sides.norm),
        )


def solve(
    solver: KrylovSolver, b: Any, x0: Any, watchers: SolveWatchers, *, keep_last: bool = False
) -> Result:
    """Solve ``A x = b`` with a solver; see :meth:`KrylovSolver.solve`.

    With ``keep_last``, the solution is the last iterate, even if the solve failed and an earlier
    residual was smaller. A solver that serves as a preconditioner is a fixed number of iterations,
    without a verdict.
    """
    links = solver.executor.links
    if links is None and not watchers.loggers:
        return _solved(solver, b, x0, watchers, keep_last)
    shared = nullcontext() if links is None else links.guarded()
    with shared, memory_events(solver.executor, watchers.loggers):
        return _solved(solver, b, x0, watchers, keep_last)


#: Stops that an operator of extreme size may have caused.
MAY_BE_OF_SCALE = frozenset(
    {
        Stop.BREAKDOWN,
        Stop.INDEFINITE,
        Stop.LEAST_SQUARES,
        Stop.MAX_ITERATIONS,
        Stop.NOT_FINITE,
        Stop.STAGNATED,
    }
)


def _solved(
    solver: KrylovSolver, b: Any, x0: Any, watchers: SolveWatchers, keep_last: bool
) -> Result:
    result, work = _once(solver, b, x0, watchers, keep_last)
    if not MAY_BE_OF_SCALE.isdisjoint(result.stops) and solver.rescale(work):
        result, _ = _once(solver, b, x0, watchers, keep_last)
    return result if keep_last else explained(solver, b, result)


def _once(
    solver: KrylovSolver, b: Any, x0: Any, watchers: SolveWatchers, keep_last: bool
) -> tuple[Result, Workspace]:
    solver.executor.refuse_host(SOLVES)
    made = Solve(solver, b, x0, watchers, keep_last)
    work = made.work
    try:
        if work.applies_M and not watchers.loggers:
            return made.run(), work
        checked = nullcontext() if work.applies_M else applications_required(solver, work)
        watching = watchers.on(work) if watchers.loggers else nullcontext()
        with checked, watching:
            return made.run(), work
    finally:
        solver.give_back(work)
