"""Triangular substitution on a GPU: one block, or one per multiprocessor for wide levels."""

from __future__ import annotations

from ...core import triangle_rules
from ...core.executor import Array
from ...core.operations import triangular
from ...core.triangle_rules import TriangleRules
from ..simt import kernels as simt
from .base import GpuExecutor
from .table import kernel

_RULES = TriangleRules(
    level_rows=512,  # two per work-item of a block, about the time of a launch
    joined_rows=1 << 16,  # above, a launch takes a small part of a level's time
)


@triangle_rules.rules_of.register(GpuExecutor)
def _rules(executor: GpuExecutor) -> TriangleRules:
    return _RULES


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
    """Launch one block or, if levels are wide on average, one block per multiprocessor.

    The work-items of a single block synchronize after each level. With several blocks, a wave waits
    for the waves with rows of the previous level, which takes less time than a launch per level.
    """
    levels, k = int(bounds.shape[0]) - 1, int(x.shape[1])
    if levels < 1 or k == 0:
        return
    arguments = (levels, k, rows, bounds, indptr, indices, data, inverse, factor, upper, x)
    least = triangle_rules.rules_of(executor).level_rows
    if least is not None and rows.shape[0] >= levels * least:
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
