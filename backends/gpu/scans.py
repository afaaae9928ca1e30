"""Running sums on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.executor import Array
from ...core.operations import scan
from ..simt import kernels as simt
from . import launch
from .base import GpuExecutor
from .table import kernel

#: Parts that a running sum is made of, at most, and numbers of a part, at least: a work-item adds
#: up one, a block all of these.
PARTS, PART = 16384, 32


@kernel(scan.pointers)
def scan_pointers(executor: GpuExecutor, lengths: Array, indptr: Array) -> None:
    """Add up parts, then what is before each part, then each part again.

    CuPy's running sum takes as many launches, and compiles two kernels when a process first meets
    it.
    """
    m, index = int(lengths.size), indptr.dtype
    parts = max(1, min(PARTS, m // PART))
    lengths = lengths.astype(index, copy=False)
    totals = executor.allocate((parts,), index)

    def step(kernel: Any, items: int, *given: Any) -> None:
        blocks = launch.row_blocks(items, kernel.block)
        executor.launch_simt(kernel, blocks, given, np.float32, index)

    step(simt.scan_totals, parts, m, parts, lengths, totals)
    step(simt.scan_join, 1, parts, totals)
    step(simt.scan_fill, parts, m, parts, lengths, totals, indptr)


def running_sum(executor: GpuExecutor, numbers: Array) -> Array:
    """Return the sums of all integers before each, and of all."""
    sums = executor.allocate((int(numbers.size) + 1,), numbers.dtype)
    scan_pointers(executor, numbers, sums)
    return sums
