"""Substitution on a GPU: narrow levels one after the other in one block."""

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
    """Launch one block: its work-items meet after each level."""
    levels, k = int(bounds.shape[0]) - 1, int(x.shape[1])
    if levels < 1 or k == 0:
        return
    arguments = (levels, k, rows, bounds, indptr, indices, data, inverse, factor, upper, x)
    executor.launch_simt(simt.triangular_substitute, 1, arguments, data.dtype, index=indptr.dtype)
