"""The memory that plans and copies take in addition to the arrays of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..algorithm import Algorithm, Plan
from ..store import Store

if TYPE_CHECKING:
    from ..executor import Executor

#: Types of objects that plans refer to but no matrix owns.
_SHARED = (Algorithm, type)


def plan_bytes(executor: Executor, things: Any, arrays: list[Any]) -> int:
    """Return the bytes of the arrays in plans and stores; each array counts once.

    Parameters
    ----------
    executor : Executor
        The executor; the objects may include its native states.
    things : iterable
        Plans and stores.
    arrays : list of array
        The arrays of the matrix itself, which are excluded.
    """
    seen = {id(array) for array in arrays}
    return sum(_bytes(executor, thing, seen) for thing in things)


def _bytes(executor: Executor, thing: Any, seen: set[int]) -> int:
    if id(thing) in seen or thing is executor or isinstance(thing, _SHARED):
        return 0
    seen.add(id(thing))
    if hasattr(thing, "nbytes") and hasattr(thing, "dtype") and hasattr(thing, "strides"):
        return int(thing.nbytes)
    if isinstance(thing, Plan):
        parts: Any = [thing.state]
    elif isinstance(thing, Store):
        parts = [*thing._things.values(), *getattr(thing, "plans", {}).values()]
    elif isinstance(thing, dict):
        parts = thing.values()
    elif isinstance(thing, (tuple, list)):
        parts = thing
    elif type(thing).__module__.startswith(__name__.partition(".")[0]):
        parts = vars(thing).values() if hasattr(thing, "__dict__") else ()
    else:
        return executor.state_bytes(thing)
    return sum(_bytes(executor, part, seen) for part in parts)
