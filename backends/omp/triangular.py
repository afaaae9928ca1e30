"""Substitution with triangles: threads follow one another through blocks of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.executor import Array
from ...core.triangle_rules import TriangleRules
from .level import native

if TYPE_CHECKING:
    from .executor import OmpExecutor


def _lanes(
    executor: OmpExecutor, indptr: Array, indices: Array, upper: int
) -> tuple[Array, ...] | None:
    """Return blocks of rows that threads compute one after the other, each in its lane.

    None if there is one thread, or if the estimated time of all schedules that were tried is not
    clearly less than that of one thread.
    """
    found: tuple[Array, ...] | None = native().plan_lanes(executor, indptr, indices, upper)
    return found


_RULES = TriangleRules(lanes=_lanes)


def rules(executor: OmpExecutor) -> TriangleRules:
    """Return the rules of substitution: lanes, or else one operation."""
    return _RULES
