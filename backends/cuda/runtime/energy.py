"""The energy counter of an NVIDIA GPU, read through NVML."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ....core.energy import EnergyCounter

#: The library, which the driver installs.
LIBRARY = "libnvidia-ml.so.1"


@cache
def nvml() -> Any | None:
    """Return the initialized library, or None if it does not load."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def counter_of(pci_bus_id: str, library: Any | None = None) -> EnergyCounter | None:
    """Return the energy counter of a GPU, or None if it has none.

    Parameters
    ----------
    pci_bus_id : str
        The GPU's bus address, ``0000:1B:00.0``: NVML's numbering of GPUs differs from CUDA's.
    library : object, optional
        NVML; loaded by default.
    """
    library = library or nvml()
    if library is None:
        return None
    handle, millijoules = ctypes.c_void_p(), ctypes.c_ulonglong()
    place = ctypes.c_char_p(pci_bus_id.encode("ascii"))
    if library.nvmlDeviceGetHandleByPciBusId_v2(place, ctypes.byref(handle)) != 0:
        return None

    def read() -> int:
        return int(library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules)))

    if read() != 0:
        return None

    def joules() -> float:
        read()
        return millijoules.value / 1e3

    return EnergyCounter("NVML", joules)
