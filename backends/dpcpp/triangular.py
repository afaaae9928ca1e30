"""Triangular substitution on a SYCL device: one work-group processes the narrow levels in turn."""

from __future__ import annotations

from ...core.operations import triangular
from ...core.triangle_rules import TriangleRules, rules_of
from ..simt import kernels as simt
from . import templates
from .array import UsmArray
from .executor import SERIAL_ELEMENTS, DpcppExecutor
from .table import kernel


@rules_of.register(DpcppExecutor)
def _rules(executor: DpcppExecutor) -> TriangleRules:
    """Return rules with two rows per work-item of a group; on a CPU, rows for all cores."""
    if executor.one_item_groups:
        return TriangleRules(level_rows=SERIAL_ELEMENTS)
    return TriangleRules(level_rows=2 * int(executor.facts.block))


@kernel(triangular.substitute)
def substitute(
    executor: DpcppExecutor,
    rows: UsmArray,
    bounds: UsmArray,
    indptr: UsmArray,
    indices: UsmArray,
    data: UsmArray,
    inverse: UsmArray,
    factor: complex,
    upper: int,
    x: UsmArray,
) -> None:
    """Launch one work-group, which has a barrier after each level; on a CPU it is one work-item."""
    levels, k = int(bounds.shape[0]) - 1, int(x.shape[1])
    if levels < 1 or k == 0:
        return
    _, block = executor.grid(1)
    arguments = (levels, k, rows, bounds, indptr, indices, data, inverse, factor, upper, x)
    executor.launch(
        simt.triangular_substitute,
        templates.SUBSTITUTE,
        (1, block),
        arguments,
        data.dtype,
        indptr.dtype,
    )
