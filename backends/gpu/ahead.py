"""Find programs to compile ahead of time: of operations by name, and of recorded calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.operation import OPERATIONS, Operation
from ..simt import kernels as simt
from ..simt import plan_kernels as plans
from ..simt import radix_kernels as sorts
from ..simt.operands import CODES
from ..unified.places import NO_INDICES, NO_VALUES, dtypes, places
from ..unified.wrappers import SimtKernel, has_functor
from .device import Program

if TYPE_CHECKING:
    from .device import GpuDevice


class Used(NamedTuple):
    """A kernel of ``backends/simt`` that an operation launches."""

    kernel: SimtKernel
    #: Whether it is launched with 64-bit indices whatever the matrix.
    wide: bool = False


#: The usual launches of operations without functors. Other programs are compiled at their first
#: launch.
LAUNCHED: dict[str, tuple[Used, ...]] = {
    "csr.plan": (
        Used(plans.measure_rows),
        Used(plans.examine_rows),
        Used(plans.find_patterns),
        Used(plans.write_patterns),
        Used(plans.check_patterns),
        Used(plans.write_offsets),
        Used(plans.order_windows),
        Used(plans.lay_lanes),
        Used(plans.measure_slices, wide=True),
        Used(plans.equal_slices),
        Used(plans.end_row_blocks),
        Used(plans.double_jumps),
        Used(plans.count_row_blocks),
        Used(plans.write_row_blocks),
        Used(simt.scan_block_totals, wide=True),
        Used(simt.scan_block_fill, wide=True),
        Used(simt.sell_fill),
    ),
    "csr.spmv": (Used(simt.sell_packed), Used(simt.csr_adaptive), Used(simt.csr_subwarp)),
    "csr.diagonal": (Used(simt.csr_diagonal),),
    "csr.transpose": (
        Used(sorts.split_count),
        Used(sorts.split_scan),
        Used(sorts.split_move),
        Used(sorts.sort_bucket),
        Used(sorts.unpack_sorted),
    ),
    "csr.matmul": (
        Used(simt.deal_rows),
        Used(simt.count_product),
        Used(simt.count_long),
        Used(simt.join_shares),
        Used(simt.fill_product),
    ),
    "csr.matmul_values": (Used(simt.refill_product),),
    "dense.spmv": (Used(simt.dense_rows),),
    "gmres.start": (Used(simt.gmres_start),),
    "gmres.project": (Used(simt.gmres_project),),
    "gmres.subtract": (Used(simt.gmres_subtract),),
    "gmres.rotate": (Used(simt.gmres_rotate),),
    "gmres.append": (Used(simt.gmres_append),),
    "gmres.solve": (Used(simt.gmres_solve),),
    "gmres.combine": (Used(simt.gmres_combine),),
}


def of_operations(
    device: GpuDevice, names: Iterable[str], dtype: np.dtype[Any], index: np.dtype[Any]
) -> Iterator[Program]:
    """Yield the programs of operations or groups of them, for given value and index dtypes."""
    wanted = set(names)
    for operation in OPERATIONS:
        if operation.name in wanted or operation.group in wanted:
            yield from _of_operation(device, operation, dtype, index)


def _of_operation(
    device: GpuDevice, operation: Operation, dtype: np.dtype[Any], index: np.dtype[Any]
) -> Iterator[Program]:
    if has_functor(operation):
        at = places(operation)
        value = NO_VALUES if at.values is None else dtype
        of_indices = NO_INDICES if at.indices is None else index
        yield device.map_program(operation, CODES[value], CODES[of_indices])
    for kernel, wide in LAUNCHED.get(operation.name, ()):
        of_indices = np.dtype(np.int64) if wide else index
        for constants in kernel.variants:
            yield device.simt_program(kernel, CODES[dtype], CODES[of_indices], **constants)


def of_calls(
    device: GpuDevice, calls: Iterable[tuple[Operation, tuple[Any, ...]]]
) -> Iterator[Program]:
    """Yield the programs of recorded calls of operations."""
    for operation, arguments in calls:
        if has_functor(operation):
            value, index = dtypes(operation, arguments)
            yield device.map_program(operation, CODES[value], CODES[index])
