"""One least squares solve: the host's decisions between two drives of the executor.

The recurrence of LSQR and LSMR ends by its own estimates. A column has converged if the residual
computed from ``x`` meets the same rules. If it does not, the recurrence continues with smaller
tolerances, since a restart would discard its Krylov space. It restarts if continuing does not help.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.capture import SOLVES
from ...core.distributed.matrix import Csr as SharedCsr
from ...core.dtypes import common_dtype, real_dtype
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.formats import Matrix
from ...core.loggers import Logger, Snapshot
from ...core.operations import vector
from ...core.setup_time import setup_seconds
from ...core.small_values import as_dtype
from ...core.status import Stop
from ...core.vector_conversions import VectorConverter, vector_converter
from ..driver.applications import applications_required
from ..driver.scaling import (
    LEAST_NORM,
    RightHandSides,
    column,
    exponents_of,
    indices,
    largest_values,
    norms,
    scale_columns,
    scaled_back,
)
from ..driver.watching import SolveWatchers, finish, memory_events, says_stop
from .result import ORTHOGONAL, LeastSquaresResult
from .verdict import LeastSquaresVerdict

if TYPE_CHECKING:
    from ...core.executor import Array
    from .base import LeastSquaresSolver

Numbers = np.ndarray[Any, Any]

#: The norm of a matrix may exceed the longest product with a vector of the process by this factor.
TWICE = 2.0

#: A residual above this fraction of ``|b|`` counts as unreduced.
NOTHING_REACHED = 1 - 1e-6

#: Norms of right-hand sides in this range need no scaling: squares of ``A^H r`` are much smaller.
NEAR_ONE = (0.25, 4.0)


def solve(
    solver: LeastSquaresSolver, b: Any, x0: Any, watchers: SolveWatchers, within: bool = False
) -> LeastSquaresResult:
    """Solve with a solver; see :meth:`LeastSquaresSolver.solve`.

    ``within`` says that another solve of a group calls this, with this member's part of ``b``.
    """
    solver.executor.refuse_host(SOLVES)
    links = solver.executor.links
    guard = nullcontext() if within or links is None else links.guarded()
    with guard, memory_events(solver.executor, watchers.loggers):
        made = LeastSquaresSolve(solver, b, x0, watchers, within)
        try:
            with applications_required(solver, made.work), watchers.on(made.work):
                return made.run()
        finally:
            solver.give_back(made.work)


def _agreement(solver: LeastSquaresSolver, watchers: SolveWatchers) -> tuple[str, ...]:
    """Return the settings on which all members of a group must agree, since they share sums."""
    if solver.executor.links is None:
        return ()
    return (
        type(solver).__name__, f"atol {solver.atol}", f"btol {solver.btol}",
        f"conlim {solver.conlim}", f"damp {solver.damp}", f"maxiter {solver.maxiter}",
        str(solver.dtype), f"watched every {watchers.periods(True)}",
        f"callback {watchers.callback is not None}",
    )  # fmt: skip


class LeastSquaresSolve(LeastSquaresVerdict):
    """One solve: the state of the host between drives, in the units of the scaled columns."""

    def __init__(
        self,
        solver: LeastSquaresSolver,
        b: Any,
        x0: Any,
        watchers: SolveWatchers,
        within: bool,
    ) -> None:
        self.solver, self.user_b, self.watchers = solver, b, watchers
        self.executor = solver.executor
        n = solver.shape[0]
        self.converter = VectorConverter(solver) if within else vector_converter(solver)
        block, start = self.converter.to_blocks(_agreement(solver, watchers), b=b, x0=x0)
        if block is None:
            raise InvalidArgument("b: expected an array, got NoneType")
        if start is not None and (start.shape[1] != block.shape[1] or np.ndim(x0) != np.ndim(b)):
            raise ShapeMismatch(
                f"x0 has shape {tuple(np.shape(x0))}; {block.shape[1]} right-hand sides of "
                f"shape {tuple(np.shape(b))} need {(n, *np.shape(b)[1:])}"
            )
        dtype = common_dtype(solver.dtype, block.dtype, *([] if start is None else [start.dtype]))
        block = as_dtype(self.executor, block, dtype)
        self.work = solver.take_workspace(dtype, int(block.shape[1]))
        self.start = None if start is None else as_dtype(self.executor, start, dtype)
        self.sides = RightHandSides(
            self.executor, block, operator_scale=self.work.scales.A, safe=NEAR_ONE
        )
        #: Exponents of the powers of two by which norms of ``A^H r`` are scaled. The powers may be
        #: out of the range of float64.
        self.normal_exponents = exponents_of(self.sides.scale) + exponents_of(
            np.array(self.work.scales.A)
        )
        self.real = real_dtype(dtype)
        k = self.k = self.work.k
        self.final = np.zeros(k, np.uint8)
        self.rules = np.full(k, 7)
        self.iterations = np.zeros(k, np.int64)
        self.history: list[list[float]] = [[] for _ in range(k)]
        self.norm_a, self.condition = np.zeros(k), np.zeros(k)
        #: Lower bounds of the norm of ``A``, and of this norm in the metric of ``M``.
        self.longest, self.longest_in_metric = np.zeros(k), np.zeros(k)
        self.halt: Stop | None = None
        self.running = k
        self.atol, self.btol = np.full(k, solver.atol), np.full(k, solver.btol)
        #: The excess over the tolerance at the start of the process, and at its last end.
        self.left_at_start, self.left_before = np.full(k, np.inf), np.full(k, np.inf)

    def run(self) -> LeastSquaresResult:
        """Drive the process until every column has its verdict."""
        self._place()
        restart = np.ones(self.k, bool)
        interrupted = False
        self._measure()
        self._judge_start()
        try:
            self._tell("start", self.watchers.loggers, self.norm_normal)
            while np.any(self.final == Stop.RUNNING):
                restart = self._pass(restart)
                self._tell("verified", self.watchers.loggers, self.norm_normal)
        except KeyboardInterrupt:
            interrupted = True
            self._take_norms()
            self._measure()
            self.final[self.final == Stop.RUNNING] = Stop.INTERRUPTED
        result = self._result()
        finish(result, self.watchers.loggers, self.solver, interrupted)
        return result

    # ---- before

    def _place(self) -> None:
        """Copy the right-hand side, the initial guess and the tolerances to the workspace."""
        work, executor, k = self.work, self.executor, self.k
        rows = int(self.sides.block.shape[0])
        self.b = self.sides.block
        if self.solver.damp:  # damp x0 below it, so that the damping is relative to x0
            self.b = executor.zeros(tuple(work.r.shape), work.dtype)
            executor.run(vector.axpby, self.sides.block, self.b[:rows], 1.0, 0.0)
        if self.start is None:
            executor.run(vector.fill, work.x, 0.0)
        else:
            executor.run(vector.axpby, self.start, work.x, 1.0, 0.0)
            if not np.all(np.isfinite(largest_values(executor, work.x))):
                raise InvalidArgument("x0 has NaN or Inf; start from finite values")
            scale_columns(executor, work.x, self.sides.solution_exponents)
            if self.solver.damp:
                damp = self.solver.damp * work.scales.A
                executor.run(vector.axpby, work.x, self.b[rows:], damp, 0.0)
        for c in indices(self.sides.norm == 0):
            if not self.solver.damp:
                executor.run(vector.fill, column(work.x, c), 0.0)
        self.norm_b = np.where(self.sides.norm > 0, self.sides.norm, 1.0)
        conlim = self.solver.conlim
        for array, value in (
            (work.status.threshold, np.full(k, -1.0)),
            (work.norm_b, self.norm_b),
            (work.ctol, np.full(k, 1 / conlim if conlim > 0 else 0.0)),
        ):
            executor.copy_into(array, value.astype(self.real))
        executor.copy_into(work.status.iterations, np.zeros(k, np.int64))
        if "variance" in work.__dict__:
            executor.run(vector.fill, work.variance, 0.0)

    def _measure(self) -> None:
        """Compute the true residual, its product with A^H, and their norms."""
        work = self.work
        self.executor.copy_into(work.r, self.b)
        self.executor.play(work.verifying)
        found = self.executor.transfer(
            work.true_r2, work.true_t2, work.true_x2, work.true_normal2
        ).read()
        with np.errstate(invalid="ignore"):
            roots = [np.sqrt(np.array(value, np.float64)) for value in found]
        blocks = (work.r, work.t, work.x)
        self.norm_r, self.norm_normal, self.norm_x = (
            self._checked_norm(norm, block) for norm, block in zip(roots, blocks, strict=False)
        )
        self.in_metric = self.norm_normal if work.M is None else roots[3]
        with np.errstate(divide="ignore", invalid="ignore"):  # |A^H r| is at most |A| |r|
            seen = np.nan_to_num(self.norm_normal / self.norm_r, posinf=0.0)
        self.longest = np.maximum(self.longest, seen)

    def _bound_norm(self) -> None:
        """Raise the lower bounds of ``|A|`` to ``|A t| / |t|`` with ``t = A^H r``.

        With ``M``, the process only gives bounds in the metric of ``M``, and ``|A^H r| / |r|`` is
        near zero if ``b`` is nearly orthogonal to the range of ``A``.
        """
        work = self.work
        work.A._apply(work.t, work.u, 1.0, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = norms(self.executor, work.u) / norms(self.executor, work.t)
        self.longest = np.maximum(self.longest, np.nan_to_num(seen, posinf=0.0))

    def _checked_norm(self, norm: Numbers, block: Array) -> Numbers:
        """Return norms, recomputed if their squares left the range of the dtype."""
        low = LEAST_NORM[self.real]
        return norm if np.all((norm >= low) & np.isfinite(norm)) else norms(self.executor, block)

    def _leave_long_starts(self) -> None:
        """Start from zero if the residual of the initial guess has no digit of ``b``."""
        whole = norms(self.executor, self.b)
        long = ~(self.norm_r <= whole / np.finfo(self.real).eps) & (whole > 0)
        if self.start is None or not long.any():
            return
        for c in indices(long):
            self.executor.run(vector.fill, column(self.work.x, c), 0.0)
        self._measure()

    def _in_given_units(self, normal: Numbers, c: int | slice = slice(None)) -> Numbers:
        """Return norms of ``A^H r``, of all columns or of one, in the arguments' units."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(normal, -self.normal_exponents[c]))

    def _threshold(self) -> Numbers:
        """Return the upper bounds of ``|A^H r|`` in rule 2, in the units of the arguments."""
        return self._in_given_units(self.solver.atol * self.longest * self.norm_r)

    def _judge_start(self) -> None:
        self._leave_long_starts()
        if self.work.M is not None:
            self._bound_norm()
        begun = self._in_given_units(self.norm_normal)
        for c in range(self.k):
            self.history[c].append(float(begun[c]))
            if not np.isfinite(self.norm_r[c]) or not np.isfinite(self.norm_normal[c]):
                self.final[c] = Stop.NOT_FINITE
            elif self.norm_normal[c] == 0:
                self.final[c], self.rules[c] = Stop.CONVERGED, 0
            elif not self.in_metric[c] > 0:
                # M maps A^H r to zero, or is negative for it: there is no direction
                self.final[c] = Stop.INDEFINITE
            elif self.solver.maxiter == 0:
                self.final[c] = Stop.MAX_ITERATIONS

    # ---- the process

    def _pass(self, restart: Numbers) -> Numbers:
        """Drive running columns, or restarted ones; return the columns to restart next."""
        work, status = self.work, self.work.status
        running = self.final == Stop.RUNNING
        going_on = running & ~restart
        chosen = going_on if going_on.any() else running
        begins = not going_on.any()
        self.executor.copy_into(work.atol, self.atol.astype(self.real))
        self.executor.copy_into(work.btol, self.btol.astype(self.real))
        status.arm(np.where(chosen, Stop.RUNNING, Stop.CONVERGED).astype(np.uint8))
        if begins:
            self.executor.play(work.beginning)
            self.left_at_start = np.where(chosen, self._left(self.norm_a), self.left_at_start)
            self.left_before = np.where(chosen, np.inf, self.left_before)
        self._drive(chosen)
        ended = status.read("stop")
        rule, norm_a, condition, longest2 = (
            np.array(a, np.float64)
            for a in self.executor.transfer(
                work.istop, work.norm_a, work.condition, work.longest2
            ).read()
        )
        longest = np.where(chosen & np.isfinite(longest2), TWICE * np.sqrt(np.abs(longest2)), 0.0)
        longest = np.minimum(longest, norm_a)
        self.longest_in_metric = np.maximum(self.longest_in_metric, longest)
        if work.M is None:
            self.longest = np.maximum(self.longest, longest)
        self.norm_a = np.where(chosen, np.maximum(self.norm_a, norm_a), self.norm_a)
        self.condition = np.where(chosen, condition, self.condition)
        self._measure()
        again = restart.copy()
        for c in indices(chosen):
            stopped = Stop(int(ended[c])) if ended[c] else Stop.RUNNING
            self.final[c], again[c] = self._judge(c, stopped, int(rule[c]))
        if self.halt is not None:
            self.final[self.final == Stop.RUNNING] = self.halt
        return again

    def _drive(self, chosen: Numbers) -> None:
        left = self.solver.maxiter - int(self.iterations[chosen].max())
        callback = self.watchers.callback
        while left > 0:
            looks = [every - self._done % every for every in self.watchers.periods(True)]
            batch = min(left, self.work.status.capacity, *looks)
            before = self._done
            self.executor.drive(self.work.iteration, batch)
            left -= batch
            self.running = self._take_norms()
            if self._done > before:
                self._tell("iteration", self.watchers.looking(self._done), None)
            if callback is not None and self.executor.agreed(
                says_stop(callback(self.converter.from_block(self._solution(), self.user_b)))
            ):
                self.halt = Stop.CALLBACK
                return
            if self.running == 0:
                return

    @property
    def _done(self) -> int:
        return int(self.iterations.max(initial=0))

    def _tell(self, event: str, loggers: list[Logger], true: Numbers | None) -> None:
        """Report norms of ``A^H (b - A x)`` to loggers, in the units of the right-hand sides."""
        if not loggers:
            return
        snapshot = Snapshot(
            solver=type(self.solver).__name__,
            executor=self.executor.name,
            iteration=self._done,
            limit=self.solver.maxiter,
            norm=np.array([seen[-1] for seen in self.history]),
            threshold=self._threshold(),
            running=self.running,
            true_norm=None if true is None else self._in_given_units(true),
        )
        for logger in loggers:
            if (method := getattr(logger, event, None)) is not None:
                method(snapshot)

    def _take_norms(self) -> int:
        """Read the norms of the last drive from the ring buffer; return the running columns."""
        status = self.work.status
        iterations, ring, running = status.read_together("iterations", "history", "running")
        for c in indices(iterations > self.iterations):
            rows = np.arange(self.iterations[c], iterations[c]) % status.capacity
            seen = self._in_given_units(ring[rows, c].astype(np.float64), c)
            self.history[c].extend(seen.tolist())
        self.iterations = iterations
        return int(running[0])

    # ---- after

    def _solution(self) -> Array:
        return scaled_back(self.executor, self.work.x, self.sides.solution_exponents)[0]

    def _norm_scale(self) -> float:
        """Return the factor of the norm of ``A``, in the metric of ``M``."""
        scales = self.work.scales
        if self.work.M is None:
            return scales.A
        return 1.0 if self.solver.scales_columns else scales.A * float(np.sqrt(scales.M))

    def _restore_lost(self) -> None:
        """Reset columns that are not finite: a result has NaN only if A has."""
        lost = indices(~np.isfinite(largest_values(self.executor, self.work.x)))
        for c in lost:
            self.executor.run(vector.fill, column(self.work.x, c), 0.0)
            self.final[c] = Stop.NOT_FINITE if self.final[c] == Stop.CONVERGED else self.final[c]
        if lost:
            self._measure()

    def _judge_again(self, solution: Array, changed: list[int]) -> None:
        """Judge columns again if they lost digits in the units of the user."""
        if not changed:
            return
        for c in indices(~np.isfinite(largest_values(self.executor, solution))):
            self.executor.run(vector.fill, column(solution, c), 0.0)
            if self.final[c] == Stop.CONVERGED:
                self.final[c] = Stop.OUT_OF_RANGE
        self.executor.run(vector.axpby, solution, self.work.x, 1.0, 0.0)
        scale_columns(self.executor, self.work.x, self.sides.solution_exponents)
        self._measure()
        for c in changed:
            if self.final[c] == Stop.CONVERGED and self._rule_met(c) is None:
                self.final[c] = Stop.OUT_OF_RANGE

    def _result(self) -> LeastSquaresResult:
        work, executor = self.work, self.executor
        self._restore_lost()
        exponents = self.sides.solution_exponents
        solution, changed = scaled_back(executor, work.x, exponents)
        self._judge_again(solution, changed)
        rows = int(self.sides.block.shape[0])
        residual = executor.copy(work.r[:rows])
        upper = norms(executor, residual)
        normal = self._in_given_units(norms(executor, work.t))
        in_units_of_b = self.sides.in_units_of_b
        self.final = np.where(
            (self.final == Stop.CONVERGED) & ~np.isfinite(largest_values(executor, solution)),
            Stop.OUT_OF_RANGE,
            self.final,
        )
        if "variance" in work.__dict__:
            shift = np.full(self.k, 2 * int(exponents_of(np.array(work.scales.A))))
            scale_columns(executor, work.variance, shift)
        one = np.ndim(self.user_b) == 1
        length = max((len(h) for h in self.history), default=1)
        residuals = np.full((length, self.k), np.nan)
        for c, seen in enumerate(self.history):
            residuals[: len(seen), c] = seen
        variance = (
            work.__dict__.get("variance") if getattr(self.solver, "calc_var", False) else None
        )

        def shaped(values: Numbers) -> Any:
            return float(values[0]) if one else np.array(values)

        return LeastSquaresResult(
            x=self.converter.from_block(solution, self.user_b),
            stops=[Stop(int(code)) for code in self.final],
            column_iterations=np.array(self.iterations),
            residual_norm=shaped(in_units_of_b(upper)),
            residuals=residuals[:, 0] if one else residuals,
            threshold=shaped(self._threshold()),
            norm_of_b=shaped(in_units_of_b(self.sides.norm)),
            seconds=self.watchers.elapsed,
            solver=type(self.solver).__name__,
            executor=executor.name,
            setup_before=setup_seconds(self.solver),
            normal_residual_norm=shaped(normal),
            damped_norm=shaped(in_units_of_b(self.norm_r)),
            operator_norm=shaped(self.norm_a / self._norm_scale()),
            condition=shaped(self.condition),
            x_norm=shaped(norms(executor, solution)),
            rules=np.where(
                self.final == Stop.CONVERGED,
                self.rules,
                np.where(self.final == Stop.ILL_CONDITIONED, self.rules, 7),
            ),
            variance=None
            if variance is None
            else self.converter.from_block(executor.copy(variance), self.user_b),
            notes=self._notes(),
            explained=self._explained(),
        )

    def _explained(self) -> dict[Stop, str]:
        """Return the explanation for columns that converged with a residual as large as ``b``."""
        whole = self.norm_r >= NOTHING_REACHED * self.norm_b
        least = np.isin(self.rules, (0, 2, 5)) & (self.final == Stop.CONVERGED)
        if self.solver.damp or not np.all(whole & least & (self.sides.norm > 0)):
            return {}
        return {Stop.CONVERGED: ORTHOGONAL}

    def _notes(self) -> list[str]:
        """Name entries of the matrix that are not finite, if they ended a column."""
        A = self.solver.A
        if Stop.NOT_FINITE not in self.final or not isinstance(A, (Matrix, SharedCsr)):
            return []
        xp = A.executor.xp
        if not A.executor.agreed(not xp.all(xp.isfinite(A.data))):
            return []
        return ["A has NaN or Inf: there is no solution; numpy.isfinite(A.data) shows the entries"]
