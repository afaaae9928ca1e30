"""The HIP executor on an NVIDIA GPU: waves of 64 lanes are pairs of warps."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from wollemi.backends.cuda.runtime.availability import require
from wollemi.backends.cuda.runtime.compiler import cached_cubin
from wollemi.backends.cuda.runtime.device import CudaDevice
from wollemi.backends.cuda.runtime.executor import CudaExecutor
from wollemi.backends.gpu.base import GpuExecutor
from wollemi.backends.hip import HipExecutor
from wollemi.core.operation import KernelTable

PRELUDE = (Path(__file__).parent / "prelude.hpp").read_text().replace("#pragma once\n", "\n")
#: One barrier of a block's sixteen belongs to all threads.
LARGEST_BLOCK = 15 * 64


def paired(source: str) -> str:
    """Return a program of the dialect HIP as NVRTC takes it."""
    return f'#line 1 "prelude.hpp"\n{PRELUDE}#line 1 "program"\n{source}'


class PairedDevice(CudaDevice):
    """An NVIDIA GPU that says it has waves of 64 lanes."""

    dialect = "HIP"

    def __init__(self, ordinal: int) -> None:
        super().__init__(ordinal)
        self.warp = 64
        self.shared_bytes = 0  # as on AMD: no kernel that is NVIDIA's own

    def compile(self, source: str, name: str) -> bytes:
        return cached_cubin(paired(source), self.architecture, name)


@cache
def _device(ordinal: int) -> PairedDevice:
    return PairedDevice(ordinal)


class PairedExecutor(HipExecutor):
    """Everything that :class:`HipExecutor` does, but for the device it does it on."""

    kernels = KernelTable("paired", parent=HipExecutor.kernels)
    dlpack_kinds = CudaExecutor.dlpack_kinds

    def __init__(self, device: int = 0) -> None:
        require(device)
        GpuExecutor.__init__(self, device)

    @property
    def device(self) -> Any:
        return _device(self.ordinal)
