"""Kernels of steps: the declared function itself, run on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.executor import Executor
from ...core.operation import Operation
from ...core.step.numeric import run
from .table import kernel


@kernel.of_steps
def make(operation: Operation) -> Callable[..., None]:
    """Return the kernel of a step."""

    def run_step(executor: Executor, *arguments: Any) -> None:
        run(operation.step, *arguments)

    return run_step
