"""The executor of NVIDIA GPUs, on CuPy."""

from __future__ import annotations

from typing import Any

from ...core.iteration import Iteration
from .base import GpuExecutor
from .device import CudaDevice, device
from .table import kernel
from .thresholds import NVIDIA

_KDLCUDA, _KDLCUDA_MANAGED = 2, 13


class CudaExecutor(GpuExecutor):
    """An NVIDIA GPU.

    Arrays are ``cupy.ndarray``, from CuPy's memory pool. Kernels go to CuPy's current stream;
    ``with executor:`` makes the device current and gives the block a stream of its own, which
    waits for what was submitted before and which what comes after waits for.

    Parameters
    ----------
    device : int
        Its number, from 0.

    Notes
    -----
    A process that has used a GPU must not be forked: CUDA does not survive it. Use the ``spawn``
    start method of :mod:`multiprocessing`.

    Examples
    --------
    >>> import wollemi as wl
    >>> A = wl.Identity(3).to("cuda")  # doctest: +SKIP
    >>> A.executor  # doctest: +SKIP
    <CudaExecutor cuda:0>
    """

    kernels = kernel
    thresholds = NVIDIA
    dlpack_kinds = (_KDLCUDA, _KDLCUDA_MANAGED)

    def __init__(self, device: int = 0) -> None:
        from .availability import require

        require(device)
        super().__init__(device)

    @property
    def device(self) -> CudaDevice:
        """Facts and loaded kernels of the GPU."""
        return device(self.ordinal)

    def make_program(self, iteration: Iteration) -> Any:
        """Return one kernel for everything, or a graph whose condition the device sets."""
        from .loop import make_program

        return make_program(self, self.record(iteration), iteration.status)
