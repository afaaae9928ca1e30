"""Every map operation: one launcher for all functors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...core.operation import OPERATIONS, Operation
from ..unified.wrappers import has_functor
from . import launch
from .arguments import CODES, flatten
from .base import GpuExecutor
from .table import kernel


@cache
def places(operation: Operation) -> tuple[tuple[int, int], tuple[int, int], int, int | None]:
    """Return where a map operation's sizes and dtypes are to be read from.

    The argument and axis of its rows, the same of its columns, the argument that has the dtype of
    values, and the one that has that of indices.
    """
    assert operation.over is not None
    found = {}
    for dimension in operation.over:
        found[dimension] = next(
            (i, parameter.dims.index(dimension))
            for i, parameter in enumerate(operation.parameters)
            if parameter.is_array and dimension in parameter.dims
        )
    kinds = [parameter.kind if parameter.is_array else "" for parameter in operation.parameters]
    rows, columns = (found[dimension] for dimension in operation.over)
    return rows, columns, kinds.index("T"), kinds.index("I") if "I" in kinds else None


def sizes(operation: Operation, arguments: tuple[Any, ...]) -> tuple[int, int]:
    """Return the rows and columns of a call."""
    (row_at, row_axis), (column_at, column_axis), _, _ = places(operation)
    return int(arguments[row_at].shape[row_axis]), int(arguments[column_at].shape[column_axis])


def dtypes(operation: Operation, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the dtypes of values and indices of a call."""
    _, _, value_at, index_at = places(operation)
    index = np.dtype(np.int32) if index_at is None else arguments[index_at].dtype
    return arguments[value_at].dtype, index


def run_map(executor: GpuExecutor, operation: Operation, *arguments: Any) -> None:
    """Visit all elements, then finish every column."""
    n, k = sizes(operation, arguments)
    if k == 0:
        return
    value, index = dtypes(operation, arguments)
    device = executor.device
    function = device.map_function(operation, CODES[value], CODES[index])
    # No more blocks than are there at once, sum or not: one row after the other keeps what the step
    # before left in the caches (17 microseconds instead of 10 for a direction of 128^3, H200).
    grid = launch.map_grid(n, k, device.resident_blocks(function, launch.BLOCK))
    scratch = executor.scratch(grid.scratch) if operation.sums else (0, 0)
    flat = [n, k, *flatten(operation.parameters, arguments, value), *scratch]
    executor.launch(function, grid.blocks, flat)


@kernel.of_steps
def make(operation: Operation) -> Callable[..., None]:
    """Return the kernel of a map operation."""

    def run(executor: GpuExecutor, *arguments: Any) -> None:
        run_map(executor, operation, *arguments)

    run.__name__ = operation.symbol
    return run


for _operation in OPERATIONS:
    if _operation.step is None and has_functor(_operation):
        kernel(_operation)(make(_operation))
