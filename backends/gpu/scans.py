"""Running sums on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.executor import Array
from ...core.operations import scan
from ..simt import kernels as simt
from .base import GpuExecutor
from .table import kernel

if TYPE_CHECKING:
    from ..unified.wrappers import SimtKernel
    from .types import LaunchOperand

#: Parts that a running sum is made of, at most, and numbers of a part, at least: a block adds up
#: one, and another block all of these. Where work-items had parts, three launches for a million
#: numbers took 67 microseconds (H100, 26 November).
PARTS, PART = 1024, 2048

#: Numbers that one block scans by itself: four steps of it take less time than a second launch (an
#: estimate).
ALONE = 4 * PART


@kernel(scan.pointers)
def scan_pointers(executor: GpuExecutor, lengths: Array, indptr: Array) -> None:
    """Add up parts, then each part again, beginning with the sum of the parts before it.

    Each block adds up the sums before its part by itself, 4 numbers for a work-item at most: that
    takes less time than a launch for it. CuPy's running sum compiles two kernels at its first use
    in a process.
    """
    m, index = int(lengths.size), indptr.dtype
    parts = 1 if m <= ALONE else min(PARTS, m // PART)
    if lengths.dtype != index:
        lengths = lengths.astype(index)

    def step(kernel: SimtKernel, blocks: int, *given: LaunchOperand) -> None:
        executor.launch_simt(kernel, blocks, given, np.float32, index)

    totals = None  # the first part does not ask for sums of others
    if parts > 1:
        totals = executor.allocate((parts,), index)
        step(simt.scan_block_totals, parts, m, lengths, totals)
    step(simt.scan_block_fill, parts, m, lengths, totals, indptr)


def running_sum(executor: GpuExecutor, numbers: Array) -> Array:
    """Return the sums of all integers before each, and of all."""
    sums = executor.allocate((int(numbers.size) + 1,), numbers.dtype)
    scan_pointers(executor, numbers, sums)
    return sums
