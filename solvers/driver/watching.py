"""Watchers of a solve on the host: callbacks, criteria of users, the clock, loggers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import SolveInterrupted
from ...core.events import Application, listeners, watch
from ...core.iteration import Iteration, Replay
from ...core.linop import LinOp
from ...core.loggers import Logger
from ...core.status import Stop
from ...core.stopping import Criterion, State

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.result import Result
    from .workspace import Workspace

Callback = Callable[[Any], Any]

#: Read the clock once in this many iterations.
CLOCK_PERIOD = 20


#: Workspace operators that may be applied; transposes and adjoints are separate operators.
OPERATORS = ("A", "A_T", "AH", "M", "M_T")


class SolveWatchers:
    """The watchers of one solve, and their periods.

    Parameters
    ----------
    callback, norm_callback : callable or None
        As for :meth:`KrylovSolver.solve`.
    loggers : list of Logger
        The loggers.
    """

    def __init__(
        self,
        callback: Callback | None,
        norm_callback: Callback | None,
        loggers: Sequence[Logger],
    ) -> None:
        self.callback, self.norm_callback, self.loggers = callback, norm_callback, list(loggers)
        self.began = time.perf_counter()
        self.seconds: float | None = None
        self.user_criteria: tuple[Criterion, ...] = ()

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return time.perf_counter() - self.began

    def periods(self, keeps_iterate: bool) -> list[int]:
        """Return the period of each watcher, in iterations."""
        periods = [int(logger.every) for logger in self.loggers]
        periods += [int(criterion.every) for criterion in self.user_criteria]
        if self.norm_callback is not None or (self.callback is not None and keeps_iterate):
            periods.append(1)
        if self.seconds is not None:
            periods.append(CLOCK_PERIOD)
        return periods

    def out_of_time(self) -> bool:
        """Return whether the time limit has passed."""
        return self.seconds is not None and self.elapsed > self.seconds

    def looking(self, iteration: int) -> list[Logger]:
        """Return the loggers that are due."""
        return [logger for logger in self.loggers if iteration % logger.every == 0]

    def criterion_met(self, state: Callable[[], State], iteration: int) -> bool:
        """Return whether one of the user's criteria that are due ends the solve."""
        return any(
            bool(criterion.done(state()))
            for criterion in self.user_criteria
            if iteration % criterion.every == 0
        )

    @contextmanager
    def on(self, work: Workspace) -> Iterator[None]:
        """Let operators report their applications to the loggers that count them."""
        counting = listeners(self.loggers, "applied")
        if not counting:
            yield
            return

        def report(application: Application) -> None:
            for logger in counting:
                logger.applied(application)

        parts = (work.iteration, work.beginning, work.verifying, getattr(work, "ending", None))
        replays: list[Iteration | Replay] = [part for part in parts if part is not None]
        counts: Counter[str] = Counter()
        places: list[tuple[Any, str, str]] = [
            (work, name, name) for name in OPERATORS if getattr(work, name, None) is not None
        ]
        places.append((work.residual, "operator", "A"))
        if hasattr(work.residual, "adjoint"):
            places.append((work.residual, "adjoint", "AH"))
        before = [getattr(owner, name) for owner, name, _ in places]
        resident = [replay.resident for replay in replays]
        for (owner, name, event), operator in zip(places, before, strict=True):
            setattr(owner, name, Reported(operator, event, report, counts))
        for replay in replays:
            replay.resident = False
        try:
            yield
        finally:
            for (owner, name, _), operator in zip(places, before, strict=True):
                setattr(owner, name, operator)
            for replay, was in zip(replays, resident, strict=True):
                replay.resident = was


@contextmanager
def memory_events(executor: Executor, loggers: Sequence[Logger]) -> Iterator[None]:
    """Report copies and allocations to loggers that have a method for them."""
    with ExitStack() as stack:
        if listening := listeners(loggers, "copied", "allocated"):
            stack.enter_context(watch(executor, *listening))
        yield


class Reported(LinOp):
    """An operator that reports each application; a solver uses it while a logger counts."""

    def __init__(
        self,
        operator: LinOp,
        name: str,
        report: Callable[[Application], None],
        counts: Counter[str],
    ) -> None:
        self.operator, self.name, self.report, self.counts = operator, name, report, counts
        self.shape, self.dtype = operator.shape, operator.dtype
        self.executor = operator.executor

    @property
    def resident(self) -> bool:
        """False: a recorded application would be reported only once."""
        return False

    @property
    def varies(self) -> bool:
        """Whether applications are not one fixed linear map."""
        return self.operator.varies

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.operator._apply(x, y, alpha, beta)
        self.counts[self.name] += 1
        self.report(Application(self.name, int(x.shape[1]), self.counts[self.name]))

    def to(self, executor: Executor | str) -> LinOp:
        """Return the operator on another executor, without reports."""
        return self.operator.to(executor)

    def astype(self, dtype: Any) -> LinOp:
        """Return the operator in another dtype, without reports."""
        return self.operator.astype(dtype)


def says_stop(answer: Any) -> bool:
    """Return whether a callback asked to stop; SciPy's may return any value, such as a norm."""
    return isinstance(answer, (bool, np.bool_)) and bool(answer)


def finish(result: Result, loggers: Sequence[Logger], solver: object, interrupted: bool) -> None:
    """Report the end of a solve to loggers; raise SolveInterrupted if it was interrupted."""
    for logger in loggers:
        logger.finish(result)
    if interrupted:
        raise SolveInterrupted(
            f"{type(solver).__name__} was interrupted after {result.iterations} "
            "iterations; .result has the best iterate",
            result,
        )


#: Stops that the user requested: the current iterate is the requested result.
ASKED = (Stop.ITERATIONS, Stop.CALLBACK, Stop.CRITERION)
