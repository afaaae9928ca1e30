"""Rules of backends for substitution with triangles: they register them, and the planner asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .executor import Array, Executor

#: Returns how threads share a triangle: the first arguments of ``triangular.lanes``, or None if
#: levels are estimated to be faster. Called as ``lanes(executor, indptr, indices, upper)``.
Lanes: TypeAlias = "Callable[[Any, Array, Array, int], tuple[Array, ...] | None]"


class TriangleRules(NamedTuple):
    """The way in which an executor computes a substitution.

    Attributes
    ----------
    level_rows : int or None
        Rows from which a level is an operation of its own; None: one operation computes all.
    joined_rows : int
        Rows of such a level up to which one operation computes a run of them nevertheless.
    lanes : callable, optional
        The function that distributes a triangle over threads.
    """

    level_rows: int | None = None
    joined_rows: int = 0
    lanes: Lanes | None = None


@singledispatch
def rules_of(executor: Executor) -> TriangleRules:
    """Return the rules of an executor; a backend registers a function for its class."""
    return TriangleRules()
