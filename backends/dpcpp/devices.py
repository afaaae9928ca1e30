"""Select SYCL devices by the names of executors, and query their properties.

A name is a SYCL selector: ``cpu``, ``gpu``, ``gpu:1``, ``level_zero:gpu:0``. The empty name selects
SYCL's default device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import ExecutorUnavailable, UnsupportedOperation
from . import runtime

#: Work-items that a CPU driver's compiler vectorizes together: 16 float32 values fill an AVX-512
#: register.
CPU_LANES = 16


@dataclass(frozen=True)
class DeviceProperties:
    """Properties of a device that determine the choice of kernels.

    Parameters
    ----------
    name : str
        The name as the driver reports it.
    kind : str
        ``cpu``, ``gpu`` or ``accelerator``.
    backend : str
        ``level_zero``, ``opencl``, ``cuda`` or ``hip``.
    units : int
        Compute units; on a CPU, its cores.
    memory, local_memory : int
        Bytes of device memory, and of local memory per work-group.
    sub_groups : tuple of int
        The supported widths of sub-groups.
    largest_block : int
        Upper bound of work-items per work-group.
    fp64 : bool
        Whether the device supports double precision.
    """

    name: str
    kind: str
    backend: str
    units: int
    memory: int
    local_memory: int
    sub_groups: tuple[int, ...]
    largest_block: int
    fp64: bool

    def require(self, dtype: np.dtype[Any]) -> None:
        """Raise an error unless the device computes in ``dtype``.

        Raises
        ------
        UnsupportedOperation
            If it does not; the message names the device and the remedy.
        """
        if real_dtype(dtype) == np.float64 and not self.fp64:
            narrow = "complex64" if dtype.kind == "c" else "float32"
            raise UnsupportedOperation(
                f"{self.name} has no double precision, and the values are {dtype}; compute in "
                f'single: A.astype("{narrow}"), or take a device that has it: A.to("dpcpp:cpu")'
            )

    @property
    def wave(self) -> int:
        """Lanes that execute in lockstep; 1 on a CPU, where single work-items are fastest."""
        if self.kind == "cpu":
            return 1
        # Intel's GPUs natively execute 16 lanes; kernels support at most 32
        for width in (16, 32, 8):
            if width in self.sub_groups:
                return width
        raise UnsupportedOperation(
            f"{self.name} runs sub-groups of {self.sub_groups} work-items; the kernels are written "
            "for 8, 16 and 32"
        )

    @property
    def block(self) -> int:
        """Work-items per work-group."""
        return 1 if self.kind == "cpu" else min(256, self.largest_block // self.wave * self.wave)

    @property
    def map_block(self) -> int:
        """Work-items per work-group for element-wise work."""
        return CPU_LANES if self.kind == "cpu" else self.block


def facts(device: Any) -> DeviceProperties:
    """Query the properties of a dpctl device."""
    return DeviceProperties(
        name=device.name.strip(),
        kind=device.device_type.name,
        backend=device.backend.name,
        units=int(device.max_compute_units),
        memory=int(device.global_mem_size),
        local_memory=int(device.local_mem_size),
        sub_groups=tuple(int(width) for width in device.sub_group_sizes),
        largest_block=int(device.max_work_group_size),
        fp64=bool(device.has_aspect_fp64),
    )


def select(selector: str) -> Any:
    """Return the dpctl device that a selector names.

    Raises
    ------
    ExecutorUnavailable
        If there is no such device; the message lists the devices, or says how to install one.
    """
    dpctl = runtime.load()
    try:
        device = dpctl.SyclDevice(selector) if selector else dpctl.select_default_device()
    except Exception as error:  # dpctl's error class depends on its version
        raise ExecutorUnavailable(_absent(selector)) from error
    if not device.has_aspect_usm_device_allocations:
        raise ExecutorUnavailable(
            f"{device.name.strip()} has no unified shared memory, which the arrays live in"
        )
    return device


def _absent(selector: str) -> str:
    names = available()
    wanted = f'"dpcpp:{selector}"' if selector else "SYCL"
    if not names:
        return (
            f"{wanted}: SYCL finds no device at all. A CPU needs intel-opencl-rt "
            f"({runtime.INSTALL}), an Intel GPU its driver (intel-level-zero-gpu, "
            "intel-opencl-icd) and permission to open /dev/dri"
        )
    hint = ""
    if "gpu" in selector:
        hint = (
            "; an Intel GPU needs its driver (intel-level-zero-gpu, intel-opencl-icd) and "
            "permission to open /dev/dri"
        )
    return f"{wanted} is not a device here; there are: {', '.join(names)}{hint}"


@cache
def available() -> tuple[str, ...]:
    """Return the executor names of all devices with unified shared memory."""
    found = runtime.load().get_devices()
    names = (name_of(d) for d in found if d.has_aspect_usm_device_allocations)
    return tuple(dict.fromkeys(names))


def name_of(device: Any) -> str:
    """Return the name of a device's executor, from which :func:`select` finds the device.

    The shortest name is chosen: ``dpcpp:cpu`` for the first CPU, ``dpcpp:gpu:1``, and with its
    backend (``dpcpp:opencl:gpu:0``) if SYCL would select another device for the shorter name.
    """
    full = device.filter_string  # backend, kind and number
    short = full.partition(":")[2]
    for name in ("cpu", short) if short == "cpu:0" else (short,):
        try:
            if runtime.load().SyclDevice(name) == device:
                return f"dpcpp:{name}"
        except Exception:  # no device has this name; error classes differ by version
            continue
    return f"dpcpp:{full}"
