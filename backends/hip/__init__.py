"""AMD GPUs: memory and streams from CuPy, kernels from HIPRTC, loops in batches of iterations.

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
from . import availability
from .compiler import compile_source
from .executor import HipExecutor

__all__ = ["BACKEND", "HipExecutor", "kernels"]

NOTE = (
    "hip has never run on an AMD GPU: its kernels are compiled for seven targets and executed by "
    "emulated waves of 64 and 32 lanes in CI, see docs/hip.md."
)


@cache
def _executor(device: int) -> HipExecutor:
    return HipExecutor(device)


def _make(device: str) -> HipExecutor:
    if device and not device.isdecimal():
        raise ExecutorUnavailable(
            f'"hip:{device}" names no GPU; write "hip" for the first one, or "hip:1"'
        )
    return _executor(int(device or 0))


def _devices() -> list[str]:
    return [f"hip:{i}" for i in range(availability.count())]


def _kernels() -> KernelTable:
    return HipExecutor.kernels


def _compile_functor(operation: Operation, value: str, index: str) -> object:
    availability.require_compiler()
    source = map_program(
        "HIP", [operation], CODES[np.dtype(value)], CODES[np.dtype(index)], warp=64
    )
    return compile_source(source, "gfx90a", operation.name)


HipExecutor.kernels.compile_functor = _compile_functor

BACKEND = Backend(
    name="hip",
    make=_make,
    devices=_devices,
    kernels=_kernels,
    note=NOTE,
    algorithms=lambda: HipExecutor.algorithms,
)
