"""Launches of the kernels that are defined in this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...gpu.arguments import flatten
from ...gpu.products import declarations as ml
from ...simt.operands import CODES
from ...unified.wrappers import SimtKernel, program, simt_wrapper
from ..runtime.overlapped import Overlapped

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...gpu.products.adapter import Adapter


def source(kernel: SimtKernel, value: str, index: str = "i4", **constants: int) -> str:
    """Return the program of one kernel."""
    return program(
        "CUDA",
        [kernel.header],
        [simt_wrapper(kernel, value, index, **constants)],
        warp=32,
        block=kernel.block,
        defines={"WL_BLOCKS_EACH": kernel.resident} if kernel.resident else None,
    )


def launch_kernel(
    on: Adapter,
    kernel: SimtKernel,
    blocks: int,
    arguments: tuple[Any, ...],
    dtype: np.dtype[Any],
    index: DTypeLike = np.int32,
    overlapped: bool = False,
    /,
    shared: int = 0,
    **constants: int,
) -> None:
    """Launch a kernel.

    Parameters
    ----------
    on : Adapter
        The executor.
    kernel : SimtKernel
        The kernel's declaration.
    blocks : int
        Number of blocks.
    arguments : tuple
        The arguments, in the order of the declaration.
    dtype, index : dtype
        Dtypes of values and of indices; scalars of 16-bit values are float32.
    overlapped : bool
        Whether the kernel itself waits for the previous launch.
    shared : int
        Shared memory of a block in bytes.
    **constants
        Constants to compile the program with.
    """
    device = on.executor.device
    value, code = ml.value_code(dtype), CODES[np.dtype(index)]
    function = device.function(
        kernel.symbol(value, code, **constants), lambda: source(kernel, value, code, **constants)
    )
    if shared:
        device.allow_shared(function, shared)
    scalars = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    flat = flatten(kernel.parameters, arguments, scalars)
    launched = Overlapped(function) if overlapped else function
    on.executor.launch(launched, blocks, flat, kernel.block, shared)
