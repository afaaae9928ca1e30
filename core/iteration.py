"""An iteration of a solver in a form that executors can drive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .status import Status


@dataclass(eq=False)
class Iteration:
    """A sequence of operations without branches that is run repeatedly.

    Parameters
    ----------
    body : callable
        Runs one iteration through ``executor.run``: each time the same operations on the same
        arrays.
    status : Status
        The running columns; the last operation that observes a residual updates it.
    resident : bool
        Whether ``body`` consists of executor operations alone. If not (for example, if it calls a
        user's Python function), it cannot be recorded or captured, and the host drives it.
    program : object
        The executor's recording of ``body``, stored here so that it lives as long as the arrays.
    batch : int
        For the only member of a group: iterations between two checks for Ctrl-C.
    """

    body: Callable[[], None]
    status: Status
    resident: bool = True
    program: Any = field(default=None, repr=False)
    batch: int = 64


@dataclass(eq=False)
class Replay:
    """Operations that are run occasionally, always the same on the same arrays.

    Parameters
    ----------
    body : callable
        Runs the operations through ``executor.run``.
    resident : bool
        As for :class:`Iteration`.
    program : object
        The executor's program for ``body``.
    """

    body: Callable[[], None]
    resident: bool = True
    program: Any = field(default=None, repr=False)


@dataclass(eq=False)
class Cycles:
    """Cycles of a restarted solver, run one after the other until a column stops.

    Parameters
    ----------
    before : Replay
        Computes and checks the true residual, and begins a cycle.
    iteration : Iteration
        The repeated part of a cycle.
    after : Replay
        Completes the iterate.
    length : int
        Iterations of a cycle.
    program : object
        The executor's programs for the cycles.
    """

    before: Replay
    iteration: Iteration
    after: Replay
    length: int
    program: Any = field(default=None, repr=False)

    @property
    def resident(self) -> bool:
        """Whether the cycles consist of executor operations alone."""
        return self.before.resident and self.iteration.resident and self.after.resident
