"""Watching a solve: a bar, a narrating stream, or the numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from .errors import InvalidArgument

if TYPE_CHECKING:
    from .result import Result


@dataclass(frozen=True)
class Snapshot:
    """Where a solve stands.

    Attributes
    ----------
    solver, executor : str
        What solves, and where.
    iteration : int
        Iterations done.
    limit : int
        Iterations at most.
    norm, threshold : array, shape (k,)
        Residual norms as the iteration sees them, and what they have to reach.
    running : int
        Columns that are still running.
    """

    solver: str
    executor: str
    iteration: int
    limit: int
    norm: np.ndarray[Any, Any]
    threshold: np.ndarray[Any, Any]
    running: int


class Logger:
    """Something that watches a solve; every method may be left out.

    Attributes
    ----------
    every : int
        Iterations between two calls of :meth:`iteration`. In between the executor runs alone.
    """

    every: int = 100

    def start(self, snapshot: Snapshot) -> None:
        """See the initial residual."""

    def iteration(self, snapshot: Snapshot) -> None:
        """See where the solve stands."""

    def finish(self, result: Result) -> None:
        """See the outcome."""


def checked_loggers(loggers: Any) -> list[Logger]:
    """Return loggers as a list, if that is what they are.

    Raises
    ------
    InvalidArgument
        If they are no sequence, or one of them does not say when it wants to look.
    """
    if not isinstance(loggers, Iterable):
        raise InvalidArgument(f"loggers: expected a sequence of them, got {loggers!r}")
    found = list(loggers)
    for logger in found:
        every = getattr(logger, "every", None)
        if not isinstance(every, (int, np.integer)) or every < 1:
            raise InvalidArgument(
                f"loggers: expected objects such as wl.loggers.Stream(every=100), whose every is "
                f"an integer of at least 1, got {logger!r} with every={every!r}"
            )
    return found


class History(Logger):
    """Keeps a snapshot every so many iterations.

    ``Result.residuals`` has the norm of every iteration without this; a history outlives several
    solves.
    """

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self.snapshots: list[Snapshot] = []

    def start(self, snapshot: Snapshot) -> None:
        """See the initial residual."""
        self.snapshots.append(snapshot)

    def iteration(self, snapshot: Snapshot) -> None:
        """See where the solve stands."""
        self.snapshots.append(snapshot)


class Stream(Logger):
    """Narrates a solve, a line every so many iterations."""

    def __init__(self, stream: TextIO | None = None, every: int = 100) -> None:
        self.every = every
        self._stream = stream

    def _say(self, line: str) -> None:
        print(line, file=self._stream or sys.stderr)

    def start(self, snapshot: Snapshot) -> None:
        """See the initial residual."""
        self._say(
            f"{snapshot.solver} on {snapshot.executor}: {snapshot.norm.size} right-hand side(s), "
            f"residual norm {snapshot.norm.max(initial=0.0):.3e}"
        )

    def iteration(self, snapshot: Snapshot) -> None:
        """See where the solve stands."""
        self._say(
            f"  iteration {snapshot.iteration}: residual norm "
            f"{snapshot.norm.max(initial=0.0):.3e}, {snapshot.running} running"
        )

    def finish(self, result: Result) -> None:
        """See the outcome."""
        self._say(f"{result!r}")


class Progress(Logger):
    """A progress bar: how far the residual has come to its threshold, in powers of ten."""

    def __init__(self, every: int = 100) -> None:
        self.every = every
        self._bar: Any = None

    def start(self, snapshot: Snapshot) -> None:
        """See the initial residual."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._first = self._decades(snapshot)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),  # standard output is for results
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(
            f"{snapshot.solver} on {snapshot.executor}", total=max(self._first, 1e-9), state=""
        )

    @staticmethod
    def _decades(snapshot: Snapshot) -> float:
        """Return the powers of ten that the worst column still has to go."""
        tiny = np.finfo(np.float64).tiny
        ratio = np.maximum(snapshot.norm, tiny) / np.maximum(snapshot.threshold, tiny)
        return max(0.0, float(np.log10(ratio).max(initial=0.0)))

    def iteration(self, snapshot: Snapshot) -> None:
        """See where the solve stands."""
        self._bar.update(
            self._task,
            completed=max(0.0, self._first - self._decades(snapshot)),
            state=f"{snapshot.iteration} iterations, residual {snapshot.norm.max():.2e}",
        )

    def finish(self, result: Result) -> None:
        """See the outcome."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
