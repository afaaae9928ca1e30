"""NVIDIA GPUs: memory and streams from CuPy, kernels from NVRTC, loops as CUDA graphs.

Importing this package does not import CuPy; requesting an executor does.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...core.errors import ExecutorUnavailable
from ...core.operation import KernelTable, Operation
from ...core.registry import Backend
from ..gpu import kernels
from ..simt.operands import CODES
from ..unified.wrappers import map_program
from . import algorithms
from .runtime import availability
from .runtime.compiler import compile_source
from .runtime.executor import CudaExecutor

__all__ = ["BACKEND", "CudaExecutor", "algorithms", "kernels"]


@cache
def _executor(device: int) -> CudaExecutor:
    return CudaExecutor(device)


def _make(device: str) -> CudaExecutor:
    if device and not device.isdecimal():
        raise ExecutorUnavailable(
            f'"cuda:{device}" names no GPU; write "cuda" for the first one, or "cuda:1"'
        )
    return _executor(int(device or 0))


def _devices() -> list[str]:
    return [f"cuda:{i}" for i in range(availability.count())]


def _kernels() -> KernelTable:
    return CudaExecutor.kernels


def _compile_functor(operation: Operation, value: str, index: str) -> object:
    source = map_program("CUDA", [operation], CODES[np.dtype(value)], CODES[np.dtype(index)])
    return compile_source(source, "sm_90", operation.name)


CudaExecutor.kernels.compile_functor = _compile_functor

BACKEND = Backend(
    name="cuda",
    make=_make,
    devices=_devices,
    kernels=_kernels,
    algorithms=lambda: CudaExecutor.algorithms,
)
