"""Rules of backends for triangular solves: backends register them, the planner reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .executor import Array, Executor

#: A function that distributes a triangle over threads: it returns the first arguments of
#: ``triangular.lanes``, or None if level scheduling is estimated to be faster. It is called as
#: ``lanes(executor, indptr, indices, upper)``.
Lanes: TypeAlias = "Callable[[Any, Array, Array, int], tuple[Array, ...] | None]"


class TriangleRules(NamedTuple):
    """How an executor computes a triangular solve.

    Attributes
    ----------
    level_rows : int or None
        A level with at least this number of rows is an operation of its own; runs of narrower
        levels are one operation each. None: one operation computes all levels.
    joined_rows : int
        Consecutive levels with at least ``level_rows`` but fewer rows than this number are still
        computed by one operation.
    lanes : callable, optional
        The function that distributes a triangle over threads.
    """

    level_rows: int | None = None
    joined_rows: int = 0
    lanes: Lanes | None = None


@singledispatch
def rules_of(executor: Executor) -> TriangleRules:
    """Return the rules of an executor; backends register a function for their class."""
    return TriangleRules()
