"""The wall time of a solver's set-up, which its results report."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Any

#: The attribute with the time in seconds.
_NAME = "_setup_seconds"


def setup_seconds(solver: Any) -> float:
    """Return the seconds of an object's last set-up; 0 if it is no solver or preconditioner."""
    return float(vars(solver).get(_NAME, 0.0)) if hasattr(solver, "__dict__") else 0.0


def record_setup(solver: Any, began: float, *parts: Any) -> None:
    """Store the seconds since a set-up began, plus the set-up times of earlier parts.

    Parameters
    ----------
    solver : object
        A solver or a preconditioner.
    began : float
        The value of ``time.perf_counter`` at the start.
    *parts
        The preconditioner, if it was made before.
    """
    solver.__dict__[_NAME] = perf_counter() - began + sum(map(setup_seconds, parts))


def sets_up(update: Callable[[Any, Any], None]) -> Callable[..., None]:
    """Return a solver's ``update`` method with a measurement of its set-up time."""

    @wraps(update)
    def timed(self: Any, A: Any = None) -> None:
        began = perf_counter()
        update(self, A)
        record_setup(self, began)

    return timed
