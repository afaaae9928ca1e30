"""The executor of AMD GPUs, on CuPy for ROCm."""

from __future__ import annotations

from ...core.iteration import Iteration
from ..gpu.base import GpuExecutor
from ..gpu.function import address_of
from .availability import require
from .device import HipDevice, device
from .loop import Batches
from .table import algorithms, kernel

_KDLROCM = 10


class HipExecutor(GpuExecutor):
    """An AMD GPU.

    Arrays are ``cupy.ndarray`` of a CuPy for ROCm. All code is shared with NVIDIA GPUs except for
    the compiler, the wave width and the loop.

    Parameters
    ----------
    device : int
        The number of the GPU, from 0.

    Examples
    --------
    >>> import wollemi as wl
    >>> A = wl.Identity(3).to("hip")  # doctest: +SKIP
    >>> A.executor  # doctest: +SKIP
    <HipExecutor hip:0>
    """

    kernels = kernel
    algorithms = algorithms
    constants_kind = "amd"
    dlpack_kinds = (_KDLROCM,)

    def __init__(self, device: int = 0) -> None:
        require(device)
        super().__init__(device)

    @property
    def device(self) -> HipDevice:
        """The GPU's properties and loaded kernels."""
        return device(self.ordinal)

    def launch_address(self) -> int:
        """Return the address of ``hipModuleLaunchKernel``."""
        return address_of("libamdhip64.so", "hipModuleLaunchKernel")

    def make_program(self, iteration: Iteration) -> Batches:
        """Return a program that runs iterations in batches."""
        return Batches(self, self.record(iteration.body), iteration.status)
