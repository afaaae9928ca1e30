"""Triangular substitution: threads process blocks of rows in a pipeline."""

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
    """Return a schedule of row blocks in lanes, one lane per thread, or None.

    Return None with one thread, or if no schedule that was tried has an estimated time clearly
    below the time of one thread.
    """
    result: tuple[Array, ...] | None = native().plan_lanes(executor, indptr, indices, upper)
    return result


_RULES = TriangleRules(lanes=_lanes)


def rules(executor: OmpExecutor) -> TriangleRules:
    """Return the rules of substitution: lanes if they pay, else one operation."""
    return _RULES
