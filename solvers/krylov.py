"""What all Krylov solvers share: cycles, verification, and the verdict."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..core.dtypes import common_dtype, real_dtype
from ..core.errors import InvalidArgument, ShapeMismatch, SolveInterrupted
from ..core.executor import same_executor
from ..core.iteration import Iteration
from ..core.linop import LinOp, as_linop
from ..core.loggers import Logger, Progress, Snapshot
from ..core.operands import as_block, like
from ..core.operations import status as status_operations
from ..core.operations import vector
from ..core.result import Result
from ..core.status import Stop
from ..core.stopping import (
    AbsoluteResidual,
    Criterion,
    Iterations,
    Limits,
    RelativeResidual,
    true_residual_period,
)
from .workspace import Workspace

if TYPE_CHECKING:
    from ..core.executor import Array, Executor

#: A cycle that ended early must have brought the true residual down by this factor to be followed
#: by another.
PROGRESS = 0.5

#: Norms of b in between are squared without over- or underflow, residuals far below them included.
SAFE_NORMS = {np.dtype(np.float32): (1e-8, 1e15), np.dtype(np.float64): (1e-100, 1e100)}

#: Iterations between two looks at the clock.
CLOCK_PERIOD = 20

Callback = Callable[[Any], Any]


class KrylovSolver(LinOp):
    """The base of iterative solvers.

    A subclass has three parts: ``initialize`` sets up the recurrence from the true residual
    ``work.r``, ``iterate`` is one iteration (operations on arrays of the executor, nothing
    decided by the host), ``finish`` completes ``work.x``. Between them stand *cycles*: the true
    residual is computed at the start of each, success is claimed only there, and a column whose
    recurrence was wrong goes into another cycle as long as that brings the residual down.

    A solver is an operator, ``solver @ b``, and so can precondition another.
    """

    #: Iterations after which a cycle ends; None if only the status ends it.
    cycle: int | None = None

    #: Whether ``work.x`` is the iterate after every iteration; if not, it is at the end of a cycle.
    keeps_iterate: ClassVar[bool] = True

    #: What ends a column for good; other reasons deserve another cycle from where it stands.
    FINAL: ClassVar[frozenset[Stop]] = frozenset({Stop.INDEFINITE})

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        stop: Criterion | None = None,
        executor: Executor | str | None = None,
    ) -> None:
        self.A = as_linop(A, executor)
        rows, columns = self.A.shape
        if rows != columns:
            raise ShapeMismatch(
                f"{type(self).__name__} needs a square operator, got {rows}x{columns}; for least "
                "squares solve with A.H @ A"
            )
        self.M = None if M is None else as_preconditioner(M, self.A)
        if stop is None:
            stop = RelativeResidual(rtol) | AbsoluteResidual(atol)
            stop = stop | Iterations(10 * max(rows, 1) if maxiter is None else maxiter)
        elif maxiter is not None:
            stop = stop | Iterations(maxiter)
        self.stop = stop
        self.shape = self.A.shape
        self.executor = self.A.executor
        self.dtype = common_dtype(*(op.dtype for op in (self.A, self.M) if op is not None))
        self._workspaces: dict[tuple[str, int], Workspace] = {}

    # ---- what a subclass says

    @abstractmethod
    def allocate(self, work: Workspace) -> None:
        """Make the arrays of the method in ``work``."""

    @abstractmethod
    def initialize(self, work: Workspace) -> None:
        """Begin a cycle from ``work.x`` and its true residual ``work.r``."""

    @abstractmethod
    def iterate(self, work: Workspace) -> None:
        """Do one iteration."""

    def finish(self, work: Workspace) -> None:
        """Complete ``work.x`` at the end of a cycle."""

    # ---- what users call

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        callback: Callback | None = None,
        norm_callback: Callback | None = None,
        progress: bool = False,
        loggers: Sequence[Logger] = (),
    ) -> Result:
        """Solve ``A x = b``.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
            Right-hand sides; each has its own stopping status.
        x0 : array of the shape of b, optional
            Where to start; zero by default. It is not changed.
        callback : callable, optional
            Called as ``callback(xk)`` after each iteration (GMRES: each cycle, where there is an
            ``xk``); a true return value ends the solve.
        norm_callback : callable, optional
            Called with the relative residual norm after each iteration; a true return value ends
            the solve.
        progress : bool
            Whether to show a progress bar.
        loggers : sequence of Logger
            Who else watches.

        Returns
        -------
        Result
            The solution with its verdict; unpacks into ``x, info``.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``b`` or ``x0`` do not fit, or are not finite.
        SolveInterrupted
            On Ctrl-C; has the result so far.
        """
        watchers = [*loggers, *([Progress()] if progress else [])]
        return _Solve(self, b, x0, callback, norm_callback, watchers).run()

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        solution = self.solve(x).x
        self.executor.run(vector.axpby, solution, y, alpha, beta)

    @property
    def resident(self) -> bool:
        """False: the host decides between cycles."""
        return False

    def to(self, executor: Executor | str) -> Self:
        """Return this solver with its operators on another executor."""
        return self._remade(self.A.to(executor), None if self.M is None else self.M.to(executor))

    def astype(self, dtype: Any) -> LinOp:
        """Return this solver computing in ``dtype``; itself if it does already."""
        if np.dtype(dtype) == self.dtype:
            return self
        return self._remade(self.A.astype(dtype), None if self.M is None else self.M.astype(dtype))

    def _remade(self, A: LinOp, M: LinOp | None) -> Self:
        return type(self)(A, M, stop=self.stop)

    def workspace(self, dtype: Any, columns: int) -> Workspace:
        """Return the arrays for ``columns`` right-hand sides, made when first asked for."""
        key = (str(np.dtype(dtype)), columns)
        if key not in self._workspaces:
            M = None if self.M is None else self.M.astype(dtype)
            work = Workspace(self.A.astype(dtype), M, columns)
            self.allocate(work)
            resident = work.A.resident and (M is None or M.resident)
            work.iteration = Iteration(lambda: self.iterate(work), work.status, resident)
            self._workspaces[key] = work
        return self._workspaces[key]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_workspaces": {}}


def as_preconditioner(M: Any, A: LinOp) -> LinOp:
    """Return ``M`` as an operator that fits ``A``; a callable becomes one."""
    if callable(M) and not hasattr(M, "shape"):
        from ..core.linop import LinearOperator

        M = LinearOperator(A.shape, M, dtype=A.dtype, executor=A.executor)
    operator = as_linop(M, A.executor)
    if operator.shape != A.shape:
        raise ShapeMismatch(
            f"M is {operator.shape[0]}x{operator.shape[1]} and A is {A.shape[0]}x{A.shape[1]}"
        )
    same_executor("the solver", A, operator)
    return operator


class _Solve:
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
        dtype = common_dtype(solver.dtype, block.dtype, *([] if x0 is None else [start.dtype]))
        self.b = block if block.dtype == dtype else block.astype(dtype)
        self.work = solver.workspace(dtype, int(block.shape[1]))
        self._place_right_hand_side()
        self._place_start(start)
        self.limits = self._limits()
        self.final = np.zeros(self.work.k, np.uint8)
        self.norm = np.zeros(self.work.k)
        self.iterations = np.zeros(self.work.k, np.int64)
        self.history: list[list[float]] = [[] for _ in range(self.work.k)]
        self.period = true_residual_period(solver.stop)

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
            self.scale[outside] = 2.0 ** -np.floor(np.log2(largest[outside]))
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

    def _limits(self) -> Limits:
        limits = self.solver.stop.limits(self.norm_b / self.scale)
        threshold = limits.threshold
        self.threshold = np.zeros(self.work.k) if threshold is None else threshold
        work, real = self.work, real_dtype(self.work.dtype)
        self.executor.copy_into(work.status.threshold, (self.threshold * self.scale).astype(real))
        self.executor.copy_into(work.status.iterations, np.zeros(work.k, np.int64))
        count = limits.iterations
        if count is None:
            count = 2**62 if limits.seconds is not None else 10 * max(work.n, 1)
        return Limits(None, count, limits.seconds)

    # ---- the cycles

    def run(self) -> Result:
        interrupted = False
        try:
            self._verify(first=True)
            self._tell("start")
            while np.any(self.final == Stop.RUNNING):
                self._cycle()
                self._verify()
        except KeyboardInterrupt:
            interrupted = True
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
        ended = np.zeros(work.k, np.uint8) if first else status.read("stop")
        before = self.norm
        status.arm(self.final)
        self._residual(work.r)
        self.executor.run(status_operations.start, work.r, status)
        found, norm = status.read("stop"), status.read("norm").astype(np.float64)
        undecided = self.final == Stop.RUNNING
        self.norm = np.where(undecided, norm, before)
        if first:
            for column, value in enumerate(norm / self.scale):
                self.history[column].append(float(value))
        for column in np.flatnonzero(undecided):
            self.final[column] = self._judge(
                Stop(found[column]),
                Stop(ended[column]),
                norm[column] <= PROGRESS * before[column] or first,
                column,
            )
        if np.any(self.final != found):
            status.arm(self.final)

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
        if self.iterations[column] >= self.limits.iterations:  # type: ignore[operator]
            return Stop.MAX_ITERATIONS
        return Stop.RUNNING

    def _cycle(self) -> None:
        solver, work = self.solver, self.work
        solver.initialize(work)
        left = self._left()
        if solver.cycle is not None:
            left = min(left, solver.cycle)
        try:
            while left > 0:
                batch = min(left, work.status.capacity, *self._periods())
                self.executor.drive(work.iteration, batch)
                left -= batch
                self._record()
                if self.executor.to_host(work.status.running)[0] == 0 or self._asked_to_stop():
                    break
        finally:
            # also on Ctrl-C: what was reached is worth having
            solver.finish(work)
        if not solver.keeps_iterate:
            self._callback_stops()

    def _left(self) -> int:
        running = self.final == Stop.RUNNING
        done = int(self.iterations[running].max(initial=0))
        return int(self.limits.iterations) - done  # type: ignore[arg-type]

    def _periods(self) -> list[int]:
        """Return after how many iterations each of the watchers wants to look."""
        periods = [logger.every for logger in self.loggers]
        if self.norm_callback is not None or (
            self.callback is not None and self.solver.keeps_iterate
        ):
            periods.append(1)
        if self.limits.seconds is not None:
            periods.append(CLOCK_PERIOD)
        if self.period is not None:
            periods.append(self.period)
        return periods

    def _record(self) -> None:
        """Take the norms of the last drive out of the ring."""
        status = self.work.status
        iterations = status.read("iterations")
        ring = self.executor.to_host(status.history)
        for column in np.flatnonzero(iterations > self.iterations):
            rows = np.arange(self.iterations[column], iterations[column]) % status.capacity
            norms = ring[rows, column].astype(np.float64) / self.scale[column]
            self.history[column].extend(norms.tolist())
        self.iterations = iterations
        self._tell("iteration")

    def _tell(self, event: str) -> None:
        if not self.loggers:
            return
        snapshot = Snapshot(
            solver=type(self.solver).__name__,
            executor=self.executor.name,
            iteration=int(self.iterations.max(initial=0)),
            limit=int(self.limits.iterations or 0),
            norm=np.array([h[-1] for h in self.history]),
            threshold=self.threshold,
            running=int(self.executor.to_host(self.work.status.running)[0]),
        )
        for logger in self.loggers:
            if event == "start" or snapshot.iteration % logger.every == 0:
                getattr(logger, event)(snapshot)

    def _asked_to_stop(self) -> bool:
        """Ask the callback, the clock and the true residual whether to go on."""
        if self.solver.keeps_iterate and self._callback_stops():
            return True
        if self.norm_callback is not None:
            norms = np.array([h[-1] for h in self.history]) / np.where(
                self.norm_b > 0, self.norm_b / self.scale, 1.0
            )
            if self.norm_callback(norms[0] if np.ndim(self.given) == 1 else norms):
                self.final[self.final == Stop.RUNNING] = Stop.CALLBACK
                return True
        running = self.final == Stop.RUNNING
        seconds = self.limits.seconds
        if seconds is not None and time.perf_counter() - self.began > seconds:
            self.final[running] = Stop.TIME_LIMIT
            return True
        return (
            self.period is not None and self.solver.keeps_iterate and self._true_residual_passes()
        )

    def _callback_stops(self) -> bool:
        if self.callback is None or not self.callback(self._shaped(self._solution())):
            return False
        self.final[self.final == Stop.RUNNING] = Stop.CALLBACK
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
        if np.any(np.isin(self.final, (Stop.TIME_LIMIT, Stop.CALLBACK, Stop.INTERRUPTED))):
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
            stops=[Stop(code) for code in self.final],
            column_iterations=self.iterations,
            residual_norm=float(norm[0]) if one else norm,
            residuals=residuals[:, 0] if one else residuals,
            threshold=float(self.threshold[0]) if one else self.threshold,
            seconds=time.perf_counter() - self.began,
            solver=type(self.solver).__name__,
            executor=self.executor.name,
        )
