"""Solver loops that a user's graph can contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .executor import Executor
    from .iteration import Iteration


class RecordableLoop(Protocol):
    """A loop that repeats an iteration until no column runs; a captured stream records it."""

    def run(self, limit: int) -> None:
        """Run at most ``limit`` iterations."""


class DrivenLoop:
    """The loop of executors without graphs."""

    def __init__(self, executor: Executor, iteration: Iteration) -> None:
        self.executor, self.iteration = executor, iteration

    def run(self, limit: int) -> None:
        """Run at most ``limit`` iterations."""
        while limit > 0:
            batch = min(limit, self.iteration.status.capacity)
            self.executor.drive(self.iteration, batch)
            limit -= batch
            if self.executor.to_host(self.iteration.status.running)[0] == 0:
                return
