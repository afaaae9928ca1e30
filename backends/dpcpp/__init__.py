"""SYCL devices: Intel GPUs, and CPUs through OpenCL, with kernels compiled at run time.

dpctl finds the devices and owns queues and memory. The kernels are in ``backends/unified``, in
``backends/simt`` and, for CPU devices, in this folder. The SYCL runtime compiles them at the first
use.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ...core.algorithm import AlgorithmTable
from ...core.operation import KernelTable
from ...core.registry import Backend

__all__ = ["BACKEND"]


@cache
def _on(device: Any) -> Any:
    """Return the one executor of a device, which owns its compiled kernels and scratch memory."""
    from .executor import DpcppExecutor

    _kernels()
    return DpcppExecutor(device)


def _make(selector: str) -> Any:
    from .devices import select

    return _on(select(selector))


def _devices() -> list[str]:
    from .devices import available
    from .shim import shim

    names = list(available())
    if not names:
        _make("")  # raises an error that says why
    shim()
    return names


def _kernels() -> KernelTable:
    from . import gmres, maps, matrix, ordering, products, spmv, structure, triangular
    from .table import kernel

    # importing these modules filled the table
    del gmres, maps, matrix, ordering, products, spmv, structure, triangular
    return kernel


def _algorithms() -> AlgorithmTable:
    from .table import algorithms

    _kernels()  # importing its modules registers the algorithms
    return algorithms


BACKEND = Backend(
    name="dpcpp",
    make=_make,
    devices=_devices,
    kernels=_kernels,
    algorithms=_algorithms,
)
