"""The executor of this machine's cores: threads, vector units, and loops without Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import ExecutorUnavailable
from ...core.registry import Backend

if TYPE_CHECKING:
    from ...core.algorithm import AlgorithmTable
    from ...core.operation import KernelTable
    from .executor import OmpExecutor

__all__ = ["BACKEND"]


def _make(device: str) -> OmpExecutor:
    from .executor import OmpExecutor

    if not device:
        return OmpExecutor()
    if not device.isdecimal() or int(device) < 1:
        raise ExecutorUnavailable(
            f'"omp:{device}" names no number of threads; write "omp" for all cores, or "omp:4"'
        )
    return OmpExecutor(int(device))


def _kernels() -> KernelTable:
    from .kernels import kernel

    return kernel


def _algorithms() -> AlgorithmTable:
    from .table import algorithms

    _kernels()  # importing its modules registers the algorithms
    return algorithms


def _built() -> bool:
    from .level import built

    return built()


BACKEND = Backend(
    name="omp",
    make=_make,
    devices=lambda: [_make("").name],
    kernels=_kernels,
    algorithms=_algorithms,
    built=_built,
)
