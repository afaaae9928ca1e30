"""The kernels of all map operations: functors of ``backends/unified`` under this launcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.operation import OPERATIONS, Operation
from ..unified.wrappers import LARGEST_SUM, has_functor
from .arguments import Flatten, flattener
from .devices import CPU_LANES
from .programs import Kernel, index_code, value_code
from .table import kernel

if TYPE_CHECKING:
    from .executor import DpcppExecutor


def make(operation: Operation) -> Callable[..., None]:
    """Return the kernel of a map operation."""
    parameters = operation.parameters
    values = next((i for i, p in enumerate(parameters) if p.kind == "T" and p.is_array), None)
    index = next((i for i, p in enumerate(parameters) if p.kind == "I"), None)
    shape_of = _shape(operation)
    flatteners: dict[str, list[Flatten]] = {
        code: [flattener(p, code) for p in parameters] for code in ("f4", "f8", "c8", "c16")
    }
    int32 = np.dtype(np.int32)

    def run(executor: DpcppExecutor, *arguments: Any) -> None:
        rows, columns = shape_of(arguments)
        if columns == 0:
            return
        value = "f4" if values is None else value_code(arguments[values].dtype)
        dtype = int32 if index is None else arguments[index].dtype
        found: Kernel = executor.programs.of_map(operation, value, index_code(dtype))
        flat: list[Any] = [rows, columns]
        for flatten, argument in zip(flatteners[value], arguments, strict=True):
            flatten(flat, argument)
        blocks, block = executor.map_grid(rows, columns)
        launcher = executor.launcher
        flat.append(launcher.scratch(blocks * max(columns, CPU_LANES) * LARGEST_SUM))
        flat.append(launcher.counter)
        launcher.submit(found, blocks, block, *flat)

    return run


def _shape(operation: Operation) -> Callable[[tuple[Any, ...]], tuple[int, int]]:
    """Return what reads the rows and columns of a call off its arguments."""
    assert operation.over is not None
    parameters = operation.parameters
    blocks = (i for i, p in enumerate(parameters) if p.is_block and p.dims == operation.over)
    block = next(blocks, None)
    if block is not None:
        return lambda arguments: arguments[block].shape
    rows = next(i for i, p in enumerate(parameters) if p.dims == operation.over[:1])
    columns = int(operation.over[1])
    return lambda arguments: (arguments[rows].shape[0], columns)


for _operation in OPERATIONS:
    if _operation.step is None and has_functor(_operation):
        kernel(_operation)(make(_operation))

kernel.of_steps(make)
