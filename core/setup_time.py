"""The wall time of the set-up of a solver, which its results tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Any

#: The attribute with the seconds.
_NAME = "_setup_seconds"


def setup_seconds(made: Any) -> float:
    """Return the seconds of the last set-up of a solver or a preconditioner; 0 of other objects."""
    return float(vars(made).get(_NAME, 0.0)) if hasattr(made, "__dict__") else 0.0


def record_setup(made: Any, began: float, *parts: Any) -> None:
    """Store the seconds since the set-up began, and of parts that were made before.

    Parameters
    ----------
    made : object
        A solver or a preconditioner.
    began : float
        The value of ``time.perf_counter`` at the beginning.
    *parts
        Its preconditioner, if that was made before.
    """
    made.__dict__[_NAME] = perf_counter() - began + sum(map(setup_seconds, parts))


def sets_up(update: Callable[[Any, Any], None]) -> Callable[..., None]:
    """Return an ``update`` of a solver, which makes the set-up anew, that stores its time."""

    @wraps(update)
    def timed(self: Any, A: Any = None) -> None:
        began = perf_counter()
        update(self, A)
        record_setup(self, began)

    return timed
