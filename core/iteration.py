"""One iteration of a solver as something an executor can drive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .status import Status


@dataclass(eq=False)
class Iteration:
    """A straight line of operations that is run again and again.

    Parameters
    ----------
    body : callable
        Runs one iteration through ``executor.run``: the same operations on the same arrays each
        time.
    status : Status
        Which columns are running; the last operation that observes a residual updates it.
    resident : bool
        Whether ``body`` makes nothing but executor operations. If not (a user's Python callable
        is in it), it can be neither recorded nor captured, and the host drives it.
    program : object
        The executor's recording of ``body``, kept here so that it lives as long as the arrays.
    batch : int
        Iterations that the one member of a group drives between two looks for Ctrl-C.
    """

    body: Callable[[], None]
    status: Status
    resident: bool = True
    program: Any = field(default=None, repr=False)
    batch: int = 64


@dataclass(eq=False)
class Replay:
    """Operations that are run now and then, the same on the same arrays each time.

    Parameters
    ----------
    body : callable
        Runs them through ``executor.run``.
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
    """Cycles of a solver that restarts, one after the other as long as no column stops.

    Parameters
    ----------
    before : Replay
        Makes the true residual, judges it and begins a cycle.
    iteration : Iteration
        The repeated part of a cycle.
    after : Replay
        Completes the iterate.
    length : int
        Iterations of a cycle.
    program : object
        The executor's programs for them.
    """

    before: Replay
    iteration: Iteration
    after: Replay
    length: int
    program: Any = field(default=None, repr=False)

    @property
    def resident(self) -> bool:
        """Whether nothing but executor operations is in them."""
        return self.before.resident and self.iteration.resident and self.after.resident
