"""NVIDIA GPUs: CuPy for memory and streams, NVRTC for kernels, CUDA graphs for loops.

Nothing here imports CuPy before an executor is asked for.
"""

from __future__ import annotations

from functools import cache

from ...core.errors import ExecutorUnavailable
from ...core.operation import KernelTable
from ...core.registry import Backend
from ..gpu import kernels
from . import algorithms
from .runtime import availability
from .runtime.executor import CudaExecutor

__all__ = ["BACKEND", "CudaExecutor", "algorithms", "kernels"]


@cache
def _executor(device: int) -> CudaExecutor:
    return CudaExecutor(device)


def _make(device: str) -> CudaExecutor:
    if device and not device.isdecimal():
        raise ExecutorUnavailable(f'a cuda device is a number, as in "cuda:0", not {device!r}')
    return _executor(int(device or 0))


def _devices() -> list[str]:
    return [f"cuda:{i}" for i in range(availability.count())]


def _kernels() -> KernelTable:
    return CudaExecutor.kernels


BACKEND = Backend(
    name="cuda",
    make=_make,
    devices=_devices,
    kernels=_kernels,
    algorithms=lambda: CudaExecutor.algorithms,
)
