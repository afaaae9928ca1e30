"""One solve: what the host decides between two drives of the executor.

A solve is a row of cycles. Each begins with the true residual, where columns that meet their
threshold are done; then the solver's recurrence is driven until the status on the device says
stop, or somebody on the host wants to look.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import common_dtype, real_dtype
from ..core.errors import InvalidArgument, ShapeMismatch, SolveInterrupted
from ..core.loggers import Logger, Snapshot
from ..core.operands import as_block, like
from ..core.operations import vector
from ..core.result import Result
from ..core.status import Stop
from ..core.stopping import true_residual_period

if TYPE_CHECKING:
    from ..core.executor import Array
    from .krylov import Callback, KrylovSolver

#: A cycle that ended early must have brought the true residual down by this factor to be followed
#: by another.
PROGRESS = 0.5

#: Norms of b in between are squared without over- or underflow, residuals far below them included.
SAFE_NORMS = {np.dtype(np.float32): (1e-8, 1e15), np.dtype(np.float64): (1e-100, 1e100)}

#: Of two, as a scale: subnormal numbers ask for more than there is.
LARGEST_POWER = 1023

#: Iterations between two looks at the clock.
CLOCK_PERIOD = 20

#: Iterations where only the clock sets a limit.
UNLIMITED = 2**62


class Solve:
    """One solve: the state of the host between drives."""

    def __init__(
        self,
        solver: KrylovSolver,
        b: Any,
        x0: Any,
        callback: Callback | None,
        norm_callback: Callback | None,
        loggers: list[Logger],
    ) -> None:
        self.began = time.perf_counter()
        self.solver, self.given = solver, b
        self.executor = solver.executor
        self.callback, self.norm_callback, self.loggers = callback, norm_callback, loggers
        n = solver.shape[0]
        block = as_block(self.executor, b, n, "b")
        start = None if x0 is None else as_block(self.executor, x0, n, "x0")
        if start is not None and start.shape != block.shape:
            raise ShapeMismatch(f"x0 has shape {tuple(start.shape)}, b {tuple(block.shape)}")
        dtype = common_dtype(solver.dtype, block.dtype, *([] if start is None else [start.dtype]))
        self.b = block if block.dtype == dtype else block.astype(dtype)
        self.start = start
        self.work = solver.take_workspace(dtype, int(block.shape[1]))
        self.final = np.zeros(self.work.k, np.uint8)
        self.ended, self.running = np.zeros(self.work.k, np.uint8), self.work.k
        self.norm = np.zeros(self.work.k)
        self.iterations = np.zeros(self.work.k, np.int64)
        self.history: list[list[float]] = [[] for _ in range(self.work.k)]
        self.period = true_residual_period(solver.stop)
        self.halt: Stop | None = None
        self.advanced = False
        self.b_is_in_place = False

    # ---- before

    def _column_value(self, operation: Any, block: Array) -> np.ndarray[Any, Any]:
        value = self.executor.allocate((self.work.k,), real_dtype(self.work.dtype))
        self.executor.run(operation, block, value)
        return np.array(self.executor.to_host(value), np.float64)

    def _place_right_hand_side(self) -> None:
        """Find the norms of b, and scale columns whose squares would leave the dtype's range."""
        self.norm_b = self._column_value(vector.norm, self.b)
        low, high = SAFE_NORMS[real_dtype(self.work.dtype)]
        self.scale = np.ones(self.work.k)
        if np.all((self.norm_b >= low) & (self.norm_b <= high)):
            return
        largest = self._column_value(vector.largest, self.b)
        if not np.all(np.isfinite(largest)):
            column = int(np.flatnonzero(~np.isfinite(largest))[0])
            raise InvalidArgument(f"b has NaN or Inf in column {column}: there is no solution")
        outside = (largest > 0) & ~((self.norm_b >= low) & (self.norm_b <= high))
        if outside.any():
            powers = -np.floor(np.log2(largest[outside]))
            self.scale[outside] = 2.0 ** np.minimum(powers, LARGEST_POWER)
            self.b = self.executor.copy(self.b)
            self._scale_columns(self.b, self.scale)
            self.norm_b = self._column_value(vector.norm, self.b)

    def _scale_columns(self, block: Array, factors: np.ndarray[Any, Any]) -> None:
        for column in np.flatnonzero(factors != 1.0):
            view = block[:, column : column + 1]
            # in two steps, because the factor itself may be out of the dtype's range
            half = 2.0 ** np.floor(np.log2(factors[column]) / 2)
            for factor in (half, factors[column] / half):
                self.executor.run(vector.axpby, view, view, factor, 0.0)

    def _place_start(self, start: Array | None) -> None:
        work = self.work
        if start is None:
            self.executor.run(vector.fill, work.x, 0.0)
        else:
            if start.dtype != work.dtype:
                start = start.astype(work.dtype)
            self.executor.run(vector.axpby, start, work.x, 1.0, 0.0)
            if not np.all(np.isfinite(self._column_value(vector.largest, work.x))):
                raise InvalidArgument("x0 has NaN or Inf; start from finite values")
            self._scale_columns(work.x, self.scale)
        # the solution of A x = 0 is 0 whatever the guess
        for column in np.flatnonzero(self.norm_b == 0):
            self.executor.run(vector.fill, work.x[:, column : column + 1], 0.0)

    def _set_limits(self) -> None:
        """Find what the criteria come to for these right-hand sides."""
        limits = self.solver.stop.limits(self.norm_b / self.scale)
        threshold = limits.threshold
        self.threshold = np.zeros(self.work.k) if threshold is None else threshold
        work, real = self.work, real_dtype(self.work.dtype)
        self.executor.copy_into(work.status.threshold, (self.threshold * self.scale).astype(real))
        self.executor.copy_into(work.status.iterations, np.zeros(work.k, np.int64))
        self.seconds = limits.seconds
        if limits.iterations is not None:
            self.count = limits.iterations
        else:
            self.count = UNLIMITED if self.seconds is not None else 10 * max(work.A.shape[0], 1)

    # ---- the cycles

    def run(self) -> Result:
        """Solve, and leave the workspace to the next."""
        try:
            self._place_right_hand_side()
            self._place_start(self.start)
            self._set_limits()
            return self._run()
        finally:
            self.solver.give_back(self.work)

    def _run(self) -> Result:
        """Cycle until every column has its verdict."""
        interrupted = False
        try:
            self._verify(first=True)
            self._tell("start")
            while np.any(self.final == Stop.RUNNING):
                self._cycle()
                self._cycles_unwatched()
                self._verify()
                if self.halt is not None:
                    self.final[self.final == Stop.RUNNING] = self.halt
        except KeyboardInterrupt:
            interrupted = True
            self._take_norms()  # of the drive that was cut short
            self.final[self.final == Stop.RUNNING] = Stop.INTERRUPTED
        result = self._result()
        for logger in self.loggers:
            logger.finish(result)
        if interrupted:
            raise SolveInterrupted(
                f"{type(self.solver).__name__} was interrupted after {result.iterations} "
                "iterations; .result has what was reached",
                result,
            )
        return result

    def _residual(self, into: Array) -> None:
        work = self.work
        self.executor.run(vector.axpby, self.b, into, 1.0, 0.0)
        work.A._apply(work.x, into, -1.0, 1.0)

    def _verify(self, first: bool = False) -> None:
        """Compute the true residual and decide which columns are done."""
        work, status = self.work, self.work.status
        ended, before = self.ended, self.norm
        if first or np.any(ended != self.final):
            status.arm(self.final)
        self.executor.copy_into(work.r, self.b)
        self.executor.play(work.verifying)
        found, norm = status.read_together("stop", "norm")
        norm = norm.astype(np.float64)
        undecided = self.final == Stop.RUNNING
        self.norm = np.where(undecided, norm, before)
        if first:
            for column, value in enumerate(norm / self.scale):
                self.history[column].append(float(value))
        for column in map(int, np.flatnonzero(undecided)):
            self.final[column] = self._judge(
                Stop(found[column]),
                Stop(ended[column]),
                norm[column] <= PROGRESS * before[column] or first,
                column,
            )
        if np.any(self.final != found):
            status.arm(self.final)
        self.running = int(np.count_nonzero(self.final == Stop.RUNNING))

    def _judge(self, found: Stop, ended: Stop, progress: bool, column: int) -> Stop:
        """Return the verdict on a column, RUNNING if it deserves another cycle.

        ``found`` is what its true residual says, ``ended`` how its last cycle did.
        """
        if found != Stop.RUNNING:
            return found
        if ended in self.solver.FINAL:
            return ended
        if ended != Stop.RUNNING and not progress:
            return Stop.STAGNATED if ended == Stop.CONVERGED else ended
        if self.iterations[column] >= self.count:
            return Stop.MAX_ITERATIONS
        return Stop.RUNNING

    def _cycle(self) -> None:
        solver, work = self.solver, self.work
        self.executor.play(work.beginning)
        left = self._left()
        if solver.cycle is not None:
            left = min(left, solver.cycle)
        try:
            while left > 0:
                batch = min(left, work.status.capacity, *self._periods())
                self.executor.drive(work.iteration, batch)
                left -= batch
                self._record()
                if self._asked_to_stop() or self.running == 0:
                    break
        finally:
            # also on Ctrl-C: what was reached is worth having
            self.executor.play(work.ending)
        if not solver.keeps_iterate:
            self._callback_stops()

    def _cycles_unwatched(self) -> None:
        """Let the executor run further cycles, if nobody looks at what is between two of them.

        It stops where a column does, and what it says of a true residual is not the verdict yet.
        """
        solver, work = self.solver, self.work
        watched = self.callback is not None or self._periods() or np.any(self.ended != self.final)
        if solver.cycle is None or watched:
            return
        limit = min(self._left(), work.status.capacity) // solver.cycle
        if limit < 1:
            return
        if not self.b_is_in_place:
            self.executor.run(vector.axpby, self.b, work.b, 1.0, 0.0)
            self.b_is_in_place = True
        if self.executor.drive_cycles(work.cycles, limit):
            self._record()
            begun = self.executor.to_host(work.begun).astype(np.float64)
            self.norm = np.where(self.final == Stop.RUNNING, begun, self.norm)

    def _left(self) -> int:
        running = self.final == Stop.RUNNING
        done = int(self.iterations[running].max(initial=0))
        return self.count - done

    def _periods(self) -> list[int]:
        """Return after how many iterations each of the watchers wants to look."""
        periods = [logger.every for logger in self.loggers]
        if self.norm_callback is not None or (
            self.callback is not None and self.solver.keeps_iterate
        ):
            periods.append(1)
        if self.seconds is not None:
            periods.append(CLOCK_PERIOD)
        if self.period is not None:
            periods.append(self.period)
        return periods

    def _record(self) -> None:
        self._take_norms()
        self._tell("iteration")

    def _take_norms(self) -> None:
        """Take the norms of the last drive out of the ring."""
        status = self.work.status
        # All at once, because each wait for a device costs as much as an iteration or two.
        iterations, ring, running, self.ended = status.read_together(
            "iterations", "history", "running", "stop"
        )
        self.running = int(running[0])
        advanced = np.flatnonzero(iterations > self.iterations)
        for column in advanced:
            rows = np.arange(self.iterations[column], iterations[column]) % status.capacity
            norms = ring[rows, column].astype(np.float64) / self.scale[column]
            self.history[column].extend(norms.tolist())
        self.iterations, self.advanced = iterations, advanced.size > 0

    def _tell(self, event: str) -> None:
        if not self.loggers:
            return
        snapshot = Snapshot(
            solver=type(self.solver).__name__,
            executor=self.executor.name,
            iteration=int(self.iterations.max(initial=0)),
            limit=self.count,
            norm=np.array([h[-1] for h in self.history]),
            threshold=self.threshold,
            running=self.running,
        )
        for logger in self.loggers:
            if event == "start" or snapshot.iteration % logger.every == 0:
                getattr(logger, event)(snapshot)

    def _asked_to_stop(self) -> bool:
        """Ask the callbacks, the clock and the true residual whether to go on.

        Callbacks see the last iteration too. What has met its tolerance by then is a success
        whatever they say: the verdict is that of the true residual.
        """
        if self.advanced and (
            (self.solver.keeps_iterate and self._callback_stops()) or self._norm_callback_stops()
        ):
            return True
        if self.running == 0:
            return False
        if self.seconds is not None and time.perf_counter() - self.began > self.seconds:
            self.halt = Stop.TIME_LIMIT
            return True
        return (
            self.period is not None and self.solver.keeps_iterate and self._true_residual_passes()
        )

    def _callback_stops(self) -> bool:
        if self.callback is None or not _says_stop(self.callback(self._shaped(self._solution()))):
            return False
        self.halt = Stop.CALLBACK
        return True

    def _norm_callback_stops(self) -> bool:
        if self.norm_callback is None:
            return False
        norms = np.array([h[-1] for h in self.history]) / np.where(
            self.norm_b > 0, self.norm_b / self.scale, 1.0
        )
        if not _says_stop(self.norm_callback(norms[0] if np.ndim(self.given) == 1 else norms)):
            return False
        self.halt = Stop.CALLBACK
        return True

    def _true_residual_passes(self) -> bool:
        self._residual(scratch := self.executor.allocate(self.b.shape, self.work.dtype))
        norm = self._column_value(vector.norm, scratch)
        running = self.work.status.read("stop") == Stop.RUNNING
        return bool(np.all(norm[running] <= (self.threshold * self.scale)[running]))

    # ---- after

    def _solution(self) -> Array:
        solution = self.executor.copy(self.work.x)
        self._scale_columns(solution, 1.0 / self.scale)
        return solution

    def _shaped(self, block: Array) -> Any:
        return like(self.executor, block, self.given)

    def _result(self) -> Result:
        if np.any(self.final == Stop.INTERRUPTED):
            self._residual(self.work.r)
            self.norm = self._column_value(vector.norm, self.work.r)
        one = np.ndim(self.given) == 1
        rows = max((len(h) for h in self.history), default=1)
        residuals = np.full((rows, self.work.k), np.nan)
        for column, norms in enumerate(self.history):
            residuals[: len(norms), column] = norms
        norm = self.norm / self.scale
        return Result(
            x=self._shaped(self._solution()),
            stops=[Stop(int(code)) for code in self.final],
            column_iterations=self.iterations,
            residual_norm=float(norm[0]) if one else norm,
            residuals=residuals[:, 0] if one else residuals,
            threshold=float(self.threshold[0]) if one else self.threshold,
            seconds=time.perf_counter() - self.began,
            solver=type(self.solver).__name__,
            executor=self.executor.name,
        )


def _says_stop(answer: Any) -> bool:
    """Return whether a callback asked to stop: SciPy's may return anything, such as a norm."""
    return isinstance(answer, (bool, np.bool_)) and bool(answer)
