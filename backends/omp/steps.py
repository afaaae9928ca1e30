"""Steps that the build did not know, such as a user's own: NumPy on rows that fit the cache."""

from __future__ import annotations

from typing import Any

from ...core.executor import Array, Executor
from ...core.step.blocks import finish_blocks, run_blocks, visit_blocks

#: Bytes of a block of rows, of all vectors together: they stay in the second-level cache while
#: NumPy goes over them once for each operator.
BLOCK_BYTES = 1 << 18


def run_in_blocks(step: Any, executor: Executor, *arguments: Any) -> None:
    """Run a step on the arguments of its operation."""
    run_blocks(step, BLOCK_BYTES, *arguments)


def visit_in_blocks(step: Any, executor: Executor, slots: Array, *arguments: Any) -> None:
    """Visit all elements, and leave the sums of each column in slots."""
    visit_blocks(step, BLOCK_BYTES, slots, *arguments)


def finish_in_blocks(step: Any, executor: Executor, slots: Array, *arguments: Any) -> None:
    """Finish every column with the sums that are in slots."""
    finish_blocks(step, slots, *arguments)
