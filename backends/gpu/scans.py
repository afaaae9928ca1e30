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

#: Upper bound of the parts of a running sum, and minimum length of a part: one block sums a part,
#: and another block all parts. With one part per work-item, three launches for a million numbers
#: took 67 microseconds (H100, 26 November).
PARTS, PART = 1024, 2048

#: One block alone scans up to this many numbers: its four steps take less time than a second launch
#: (an estimate).
ALONE = 4 * PART


@kernel(scan.pointers)
def scan_pointers(executor: GpuExecutor, lengths: Array, indptr: Array) -> None:
    """Sum each part, then scan each part, starting from the sum of the parts before it.

    Each block itself adds up the sums before its part, at most 4 numbers per work-item, which takes
    less time than another launch. CuPy's running sum would compile two kernels at its first use in
    a process.
    """
    m, index = int(lengths.size), indptr.dtype
    parts = 1 if m <= ALONE else min(PARTS, m // PART)
    if lengths.dtype != index:
        lengths = lengths.astype(index)

    def step(kernel: SimtKernel, blocks: int, *operands: LaunchOperand) -> None:
        executor.launch_simt(kernel, blocks, operands, np.float32, index)

    totals = None  # the first part needs no other sums
    if parts > 1:
        totals = executor.allocate((parts,), index)
        step(simt.scan_block_totals, parts, m, lengths, totals)
    step(simt.scan_block_fill, parts, m, lengths, totals, indptr)


def running_sum(executor: GpuExecutor, numbers: Array) -> Array:
    """Return the sum of all integers before each one, and the total."""
    sums = executor.allocate((int(numbers.size) + 1,), numbers.dtype)
    scan_pointers(executor, numbers, sums)
    return sums
