"""Kernels of all map operations: functors of ``backends/unified`` with the SYCL launcher."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.operation import OPERATIONS, Operation
from ...core.registry import executor as executor_called
from ..unified.wrappers import has_functor, sum_bytes
from .arguments import Flatten, flattener
from .devices import CPU_LANES
from .programs import CompiledKernel, index_code, takes_lanes, value_code
from .table import kernel

if TYPE_CHECKING:
    from .executor import DpcppExecutor


@cache
def _launcher(operation: Operation) -> Callable[..., None]:
    """Return the function that launches a map operation, or one half."""
    parameters = operation.parameters
    values = next((i for i, p in enumerate(parameters) if p.kind == "T" and p.is_array), None)
    index = next((i for i, p in enumerate(parameters) if p.kind == "I"), None)
    shape_of = _shape(operation)
    flatteners: dict[str, list[Flatten]] = {
        code: [flattener(p, code) for p in parameters] for code in ("f4", "f8", "c8", "c16")
    }
    int32, of_sum = np.dtype(np.int32), sum_bytes(operation)
    in_lanes = takes_lanes(operation.group)

    def launch(
        executor: DpcppExecutor, half: str, slots: tuple[Any, ...], arguments: tuple[Any, ...]
    ) -> None:
        rows, columns = shape_of(arguments)
        if columns == 0:
            return
        value = "f4" if values is None else value_code(arguments[values].dtype)
        code = index_code(int32 if index is None else arguments[index].dtype)
        programs = executor.programs
        found: CompiledKernel = (
            programs.of_half(operation, half, value, code)
            if half
            else programs.of_map(operation, value, code)
        )
        rows = 0 if half == "finishing" else rows
        flat: list[Any] = [rows, columns]
        for flatten, argument in zip(flatteners[value], arguments, strict=True):
            flatten(flat, argument)
        flat += [array.pointer for array in slots]
        blocks, block = executor.map_grid(rows, columns, in_lanes)
        launcher = executor.launcher
        flat.append(launcher.scratch(blocks * max(columns, CPU_LANES) * of_sum))
        flat.append(launcher.counter)
        launcher.submit(found, blocks, block, *flat)

    return launch


def make(operation: Operation) -> Callable[..., None]:
    """Return the kernel of a map operation."""
    launch = _launcher(operation)

    def run(executor: DpcppExecutor, *arguments: Any) -> None:
        launch(executor, "", (), arguments)

    return run


def visit(
    executor: DpcppExecutor, operation: Operation, slots: Any, arguments: tuple[Any, ...]
) -> None:
    """Visit all elements, and store the sums of each column in slots."""
    _launcher(operation)(executor, "visiting", (slots,), arguments)


def finish(
    executor: DpcppExecutor, operation: Operation, slots: Any, arguments: tuple[Any, ...]
) -> None:
    """Finish every column with the sums in the slots."""
    _launcher(operation)(executor, "finishing", (slots,), arguments)


def _shape(operation: Operation) -> Callable[[tuple[Any, ...]], tuple[int, int]]:
    """Return the function that finds a call's number of rows and columns in its arguments."""
    assert operation.over is not None
    parameters = operation.parameters
    blocks = (i for i, p in enumerate(parameters) if p.is_block and p.dims == operation.over)
    block = next(blocks, None)
    if block is not None:
        return lambda arguments: arguments[block].shape
    rows = next(i for i, p in enumerate(parameters) if p.dims == operation.over[:1])
    across = operation.over[1]
    if across.isdigit():
        columns = int(across)
        return lambda arguments: (arguments[rows].shape[0], columns)
    wide = next(i for i, p in enumerate(parameters) if p.is_block and p.dims[1] == across)
    return lambda arguments: (arguments[rows].shape[0], arguments[wide].shape[1])


kernel.halves = (visit, finish)

for _operation in OPERATIONS:
    if _operation.step is None and not _operation.functor and has_functor(_operation):
        kernel(_operation)(make(_operation))

kernel.of_steps(make)
kernel.of_functors(make)


def compile_functor(operation: Operation, value: str, index: str) -> CompiledKernel:
    """Compile another package's functor for dtypes that are given by name."""
    executor: Any = executor_called("dpcpp")
    result: CompiledKernel = executor.programs.of_map(
        operation, value_code(np.dtype(value)), index_code(np.dtype(index))
    )
    return result


kernel.compile_functor = compile_functor
