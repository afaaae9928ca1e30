"""Sums of all that came before."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from ...core.operations import scan as operations
from ..simt import kernels as simt
from ..unified.wrappers import SimtKernel
from . import templates
from .table import kernel

if TYPE_CHECKING:
    from .array import UsmArray
    from .executor import DpcppExecutor


@kernel(operations.pointers)
def pointers(executor: DpcppExecutor, lengths: UsmArray, indptr: UsmArray) -> None:
    """Add up parts, then what is before each part, then each part again."""
    m = lengths.size
    blocks, block = executor.grid(m)
    # As many parts as a part has numbers: one work-item goes through the sums of all parts.
    parts = blocks if executor.one_item_groups else max(1, isqrt(m))
    index = lengths.dtype
    totals = executor.allocate((parts,), index)

    def launch(step: SimtKernel, groups: int, *arguments: object) -> None:
        executor.launch(step, templates.SCAN, (groups, block), arguments, "f4", index)

    launch(simt.scan_totals, blocks, m, parts, lengths, totals)
    launch(simt.scan_join, 1, parts, totals)
    launch(simt.scan_fill, blocks, m, parts, lengths, totals, indptr)
