"""Substitution on a GPU: narrow levels by one block, runs of wide ones by all multiprocessors."""

from __future__ import annotations

from ...core.executor import Array
from ...core.operations import triangular
from ..simt import kernels as simt
from .base import GpuExecutor
from .table import kernel


@kernel(triangular.substitute)
def substitute(
    executor: GpuExecutor,
    rows: Array,
    bounds: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    inverse: Array,
    factor: complex,
    upper: int,
    x: Array,
) -> None:
    """Launch one block, or, for levels that are wide on average, one a multiprocessor.

    The work-items of one block wait for one another after each level. With many blocks, a wave
    waits for the waves that have rows of the previous level. That takes less than a launch for each
    level.
    """
    levels, k = int(bounds.shape[0]) - 1, int(x.shape[1])
    if levels < 1 or k == 0:
        return
    arguments = (levels, k, rows, bounds, indptr, indices, data, inverse, factor, upper, x)
    if rows.shape[0] >= levels * executor.level_rows:
        _, done = executor.scratch(0, levels + 1)
        executor.launch_simt(
            simt.triangular_levels,
            executor.device.multiprocessors,
            (*arguments, done),
            data.dtype,
            indptr.dtype,
        )
        return
    executor.launch_simt(simt.triangular_substitute, 1, arguments, data.dtype, indptr.dtype)
