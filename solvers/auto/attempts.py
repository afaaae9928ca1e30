"""Attempts at one system by several methods: how long each may take, and what is made of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from ...core.edges import edge_of
from ...core.errors import (
    InvalidArgument,
    InvalidMatrix,
    OutOfDeviceMemory,
    SolveInterrupted,
    UnsupportedOperation,
)
from ...core.linop import LinOp
from ...core.operations import vector
from ...core.result import Result
from ...core.status import Stop
from ...core.stopping import Criterion, Iterations, Time
from ..direct import Direct
from ..driver.loop import UNLIMITED
from ..registry import SOLVERS
from .kept import borrowed_solver

#: The direct solver among the methods.
DIRECT = "direct"

#: Iterations of a first attempt that is not yet known to be the right one. Of 50 square systems of
#: public collections (rtol 1e-8, b = A @ ones) the quicker of BiCGSTAB and GMRES, with Jacobi or
#: without, took more on five.
SHORT = 1000

#: What ends a solve whatever other methods might do.
_FINAL = frozenset(
    {Stop.TIME_LIMIT, Stop.INTERRUPTED, Stop.CALLBACK, Stop.CRITERION, Stop.ITERATIONS}
)

#: What deserves another method although no tolerance was asked for.
_BROKEN = frozenset({Stop.INDEFINITE, Stop.BREAKDOWN, Stop.NOT_FINITE})


#: Why an optional preconditioner cannot be made of a matrix.
_UNSUITED = (InvalidMatrix, InvalidArgument, OutOfDeviceMemory, UnsupportedOperation)


@dataclass(frozen=True)
class Attempt:
    """One method with its preconditioner.

    Parameters
    ----------
    method : str
        The solver's name.
    M : preconditioner
        As a solver takes it.
    label : str
        What notes call it.
    options : mapping
        Of the solver, such as ``restart``.
    limit : int, optional
        Iterations at most, if it is not to have the whole budget.
    repeated : bool
        Whether it may have the whole budget later although the residual does not fall fast enough.
    optional : bool
        Whether the next attempt is made where the preconditioner cannot be made of the matrix.
    extended : bool
        Whether it goes on with the whole budget at once if the residual falls fast enough.
    needs_definite : bool
        Whether it is left out if CG found that the matrix is not positive definite.
    why : str
        What notes say of it beside how the one before ended.
    """

    method: str
    M: Any
    label: str
    options: dict[str, Any] = field(default_factory=dict)
    limit: int | None = None
    repeated: bool = True
    optional: bool = False
    extended: bool = True
    needs_definite: bool = False
    why: str = ""

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What two attempts have in common that do the same iterations."""
        return self.method, id(self.M), *sorted(self.options.items())


@dataclass
class Attempts:
    """The attempts at one system, and the best that they came to so far.

    Every attempt starts where the user said. So one with the whole budget does what its method
    does when it is asked for by name.
    """

    A: LinOp
    b: Any
    x0: Any
    rtol: float
    atol: float
    maxiter: int | None
    stop: Criterion | None
    notes: list[str]
    watching: dict[str, Any]

    best: Result | None = None
    began: float = field(default_factory=time.perf_counter)
    #: Iterations that each kind was allowed before it ran into that limit, None for "ended before".
    done: dict[tuple[Any, ...], int | None] = field(default_factory=dict)
    #: Tells how the last attempt ended, in a few words.
    last: Callable[[], str] | None = None
    #: Whether CG found a direction along which the matrix is not positive.
    indefinite: bool = False
    #: What ended all attempts, whatever others might do.
    ended_by: Stop | None = None

    def run(self, attempts: Iterable[Attempt]) -> Result:
        """Make the attempts in order until one succeeds."""
        for attempt in attempts:
            if self._is_settled():
                break
            if self._is_over(attempt):
                continue
            result = self._try(attempt)
            if result is None:
                continue
            if self._is_promising(attempt, result):
                self._try(replace(attempt, limit=None))
            elif not attempt.repeated:
                self.done[attempt.key] = None
        assert self.best is not None
        if not self.best.converged and len(self.done) > 1:
            self.notes.append(f"the best is that of {self.best.solver.lower()}")
        return self._told_whole(self.best)

    def _told_whole(self, result: Result) -> Result:
        """Return a result with what is to be said of all attempts."""
        stops = result.stops
        if self.ended_by is not None:
            stops = [s if s == Stop.CONVERGED else self.ended_by for s in stops]
        seconds = time.perf_counter() - self.began
        return replace(result, stops=stops, notes=self.notes, seconds=seconds)

    @property
    def budget(self) -> int:
        """Iterations of one attempt at most."""
        given = [] if self.maxiter is None else [int(self.maxiter)]
        if self.stop is not None:
            given += [int(count) for count in _limits(self.stop, Iterations, "count")]
            if not given and _limits(self.stop, Time, "seconds"):
                return UNLIMITED
        return min(given, default=10 * max(self.A.shape[0], 1))

    def _is_settled(self) -> bool:
        """Return whether no attempt whatever can change what is known."""
        if self.best is None:
            return False
        failed = [stop for stop in self.best.stops if stop != Stop.CONVERGED]
        if self.ended_by is not None or not failed:
            return True
        aimless = not np.any(np.asarray(self.best.threshold) > 0)
        return aimless and not any(stop in _BROKEN for stop in failed)

    def _is_over(self, attempt: Attempt) -> bool:
        """Return whether an attempt cannot change what is known."""
        if self._is_settled() or (attempt.needs_definite and self.indefinite):
            return True
        if attempt.key not in self.done:
            return False
        allowed = self.done[attempt.key]
        return allowed is None or allowed >= self._allowed(attempt)

    def _allowed(self, attempt: Attempt) -> int:
        whole = self.budget
        return whole if attempt.limit is None else min(attempt.limit, whole)

    def _is_promising(self, attempt: Attempt, result: Result) -> bool:
        """Return whether the iterations left would do, if they go on as those before."""
        used = self._allowed(attempt)
        if (
            not attempt.extended
            or used >= self.budget
            or self._is_over(replace(attempt, limit=None))
        ):
            return False
        if not all(s in (Stop.CONVERGED, Stop.MAX_ITERATIONS) for s in result.stops):
            return False
        history = result.residuals.reshape(result.residuals.shape[0], -1)
        half = history.shape[0] // 2
        with np.errstate(all="ignore"):
            before, after = (np.log(np.nanmin(h, axis=0)) for h in (history[:half], history[half:]))
            missing = np.log(np.atleast_1d(result.threshold)) - after
            gained = (after - before) / (history.shape[0] - half) * (self.budget - used)
        open_columns = [s != Stop.CONVERGED for s in result.stops]
        return bool(half and np.all((gained <= missing)[open_columns]))

    def _try(self, attempt: Attempt) -> Result | None:
        """Make an attempt; None if its preconditioner or factors cannot be made."""
        if self.last:
            why = f"; {attempt.why}" if attempt.why else ""
            self.notes.append(f"{attempt.label}: {self.last()}{why}")
        try:
            result = self._direct() if attempt.method == DIRECT else self._iterated(attempt)
        except _UNSUITED as error:
            if not attempt.optional and not (
                attempt.method == DIRECT and isinstance(error, InvalidMatrix)
            ):
                raise
            self.last = partial(str, f"{attempt.label} failed: {error}")
            self.done[attempt.key] = None
            return None
        except SolveInterrupted as interruption:
            reached = self._better(cast(Result, interruption.result))
            self.ended_by = Stop.INTERRUPTED
            interruption.result = self._told_whole(reached)
            raise
        ended = {s for s in result.stops if s != Stop.CONVERGED}
        self.indefinite |= attempt.method == "cg" and Stop.INDEFINITE in ended
        at_limit = Stop.MAX_ITERATIONS in ended
        self.done[attempt.key] = self._allowed(attempt) if at_limit else None
        self.last = partial(_told, attempt.label, result)
        self.ended_by = next(iter(ended & _FINAL), None)
        self.best = self._better(result)
        return result

    def _iterated(self, attempt: Attempt) -> Result:
        kind = SOLVERS[attempt.method]
        self.A.executor.compile_ahead(kind.loop_runs(), self.A.dtype)
        with borrowed_solver(
            kind, self.A, attempt.M, **attempt.options, **self._stop(attempt)
        ) as solver:
            result = solver.solve(self.b, self._start(), **self.watching)
        self.notes += [note for note in result.notes if note not in self.notes]
        return result

    def _direct(self) -> Result:
        solver = Direct(self.A, rtol=self.rtol, atol=self.atol)
        if self.stop is not None:
            solver.stop = self.stop
        result = solver.solve(self.b, self._start())
        self.notes += [note for note in solver.notes if note not in self.notes]
        return result

    def _stop(self, attempt: Attempt) -> dict[str, Any]:
        """Return what ends an attempt: iterations of its own, and the time that all share."""
        options = {"rtol": self.rtol, "atol": self.atol, "maxiter": self.maxiter, "stop": self.stop}
        if attempt.limit is not None and attempt.limit < self.budget:
            options["maxiter"] = attempt.limit
        seconds = [] if self.stop is None else _limits(self.stop, Time, "seconds")
        if seconds and self.last:
            left = max(min(seconds) - (time.perf_counter() - self.began), 0.0)
            options["stop"] = cast(Criterion, self.stop) | Time(left)
        return options

    # ---- columns that are solved stay solved

    def _start(self) -> Any:
        """Return where an attempt starts: columns that are solved at their solution."""
        best = self.best
        solved = [c for c, s in enumerate(best.stops) if s == Stop.CONVERGED] if best else []
        if best is None or not solved:
            return self.x0
        executor, edge = self.A.executor, edge_of(self.A)
        block, given = edge.enter(x=best.x, x0=self.x0)
        assert block is not None
        start = executor.zeros(tuple(block.shape), block.dtype)
        if given is not None:
            executor.run(vector.axpby, given.astype(block.dtype), start, 1.0, 0.0)
        _take(executor, start, block, solved)
        return edge.leave(start, self.b)

    def _better(self, result: Result) -> Result:
        """Return the better of the results so far and another one, column by column."""
        old = self.best
        if old is None:
            return result
        norms = [np.atleast_1d(r.residual_norm) for r in (old, result)]
        keep = [
            c
            for c, (before, after) in enumerate(zip(old.stops, result.stops, strict=True))
            if before == Stop.CONVERGED
            or (after != Stop.CONVERGED and not norms[1][c] < norms[0][c])
        ]
        if len(keep) == len(old.stops):
            return old
        return _merged(old, result, keep, self.A, self.b) if keep else result


def _told(label: str, result: Result) -> str:
    """Return how an attempt ended, in a few words."""
    why = result.reason.rpartition("column ")[2].partition(": ")
    reason = (why[2] if why[0].isdigit() else result.reason).partition(":")[0]
    return f"{label} ended with {reason} after {result.iterations} iterations"


def _limits(stop: Criterion, kind: type[Criterion], name: str) -> list[float]:
    """Return what the criteria of a kind allow, among those that a criterion is made of."""
    if isinstance(stop, kind):
        return [float(getattr(stop, name))]
    parts = getattr(stop, "parts", ())
    return [limit for part in parts for limit in _limits(part, kind, name)]


def _merged(old: Result, new: Result, keep: list[int], A: LinOp, b: Any) -> Result:
    """Return ``new`` with some columns of ``old`` in place of its own."""
    executor, edge = A.executor, edge_of(A)
    newer, older = edge.enter(new=new.x, old=old.x)
    assert newer is not None and older is not None
    x = executor.copy(newer)
    _take(executor, x, older.astype(x.dtype), keep)
    stops, iterations, norm = (
        list(new.stops),
        new.column_iterations.copy(),
        new.residual_norm.copy(),
    )
    length = max(old.residuals.shape[0], new.residuals.shape[0])
    residuals = [
        np.pad(r.residuals, ((0, length - r.residuals.shape[0]), (0, 0)), constant_values=np.nan)
        for r in (old, new)
    ]
    for c in keep:
        stops[c], iterations[c] = old.stops[c], old.column_iterations[c]
        norm[c] = old.residual_norm[c]
        residuals[1][:, c] = residuals[0][:, c]
    used = max(int(iterations.max(initial=0)) + 1, 1)
    return replace(
        new,
        x=edge.leave(x, b),
        stops=stops,
        column_iterations=iterations,
        residual_norm=norm,
        residuals=residuals[1][:used],
    )


def _take(executor: Any, into: Any, source: Any, columns: list[int]) -> None:
    for c in columns:
        executor.run(vector.axpby, source[:, c : c + 1], into[:, c : c + 1], 1.0, 0.0)
