"""The launcher of all map operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.operation import OPERATIONS, Operation
from ..simt.operands import CODES
from ..unified.places import dtypes, sizes
from ..unified.wrappers import has_functor, sum_bytes
from . import launch
from .arguments import address, flatten
from .base import GpuExecutor
from .table import kernel

if TYPE_CHECKING:
    from ...core.executor import Array
    from .function import Function
    from .types import Dtype


def run_map(executor: GpuExecutor, operation: Operation, arguments: tuple[Any, ...]) -> None:
    """Visit all elements, then finish every column."""
    value, index = dtypes(operation, arguments)
    function = executor.device.map_function(operation, CODES[value], CODES[index])
    _launch(executor, operation, function, sizes(operation, arguments), value, arguments, ())


def launch_map(
    executor: GpuExecutor,
    operation: Operation,
    function: Function,
    arguments: tuple[Any, ...],
    further: tuple[Any, ...] = (),
) -> None:
    """Launch a kernel that visits all elements; the arrays ``further`` follow its arguments."""
    value, _ = dtypes(operation, arguments)
    extents = sizes(operation, arguments)
    _launch(executor, operation, function, extents, value, arguments, further)


def visit(
    executor: GpuExecutor, operation: Operation, slots: Array, arguments: tuple[Any, ...]
) -> None:
    """Visit all elements, and store the sums of each column in slots."""
    value, index = dtypes(operation, arguments)
    operands = (operation, "visiting", CODES[value], CODES[index])
    function = executor.device.half_function(*operands)
    launch_map(executor, operation, function, arguments, (slots,))


def finish(
    executor: GpuExecutor, operation: Operation, slots: Array, arguments: tuple[Any, ...]
) -> None:
    """Finish every column with the sums in the slots."""
    value, index = dtypes(operation, arguments)
    operands = (operation, "finishing", CODES[value], CODES[index])
    function = executor.device.half_function(*operands)
    extents = (0, sizes(operation, arguments)[1])
    _launch(executor, operation, function, extents, value, arguments, (slots,))


def _launch(
    executor: GpuExecutor,
    operation: Operation,
    function: Function,
    extents: tuple[int, int],
    value: Dtype,
    arguments: tuple[Any, ...],
    slots: tuple[Any, ...],
) -> None:
    n, k = extents
    if k == 0:
        return
    # Launch at most the resident blocks, with or without a sum: consecutive rows then find the
    # previous step's results in the caches (10 microseconds instead of 17 for a direction of 128^3,
    # H200).
    resident = executor.device.resident_blocks(function, launch.BLOCK)
    grid = launch.map_grid(n, k, resident, of_sum=sum_bytes(operation))
    scratch = executor.scratch(grid.scratch) if operation.sums else (0, 0)
    flat = [n, k, *flatten(operation.parameters, arguments, value)]
    executor.launch(function, grid.blocks, [*flat, *map(address, slots), *scratch])


kernel.halves = (visit, finish)


@kernel.of_functors
@kernel.of_steps
def make(operation: Operation) -> Callable[..., None]:
    """Return the kernel of a map operation."""

    def run(executor: GpuExecutor, *arguments: Any) -> None:
        run_map(executor, operation, arguments)

    run.__name__ = operation.symbol
    return run


for _operation in OPERATIONS:
    if _operation.step is None and not _operation.functor and has_functor(_operation):
        kernel(_operation)(make(_operation))
