"""GPU memory that other processes of the host map through CUDA IPC handles."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from ....core.errors import DeviceError
from ....core.executor import Array
from ...gpu.arguments import address


class MappedPlace(NamedTuple):
    """The location of memory in a process, in the form that is sent to other processes.

    Attributes
    ----------
    handle : bytes
        The IPC handle of the allocation.
    offset : int
        Offset in bytes from the beginning of the allocation.
    """

    handle: bytes
    offset: int


def begin_of_allocation(place: int) -> int:
    """Return the beginning of the allocation that contains a device address."""
    driver, begin, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_size_t()
    operands = ctypes.byref(begin), ctypes.byref(size), ctypes.c_uint64(place)
    code = driver.cuMemGetAddressRange_v2(*operands)
    if code:
        raise DeviceError(f"cuMemGetAddressRange: error {code} of the driver for {place:#x}")
    return int(begin.value)


class MappedMemory:
    """The memory that this process shares, and other processes' memory that it maps.

    An allocation that others may have mapped is never returned to the driver: one of its arrays is
    kept.

    Parameters
    ----------
    runtime : module
        ``cupy.cuda.runtime``, or a substitute with its functions.
    begin_of : callable
        Returns the beginning of the allocation that contains an address.
    """

    def __init__(self, runtime: Any, begin_of: Callable[[int], int] = begin_of_allocation) -> None:
        self._runtime, self._begin_of = runtime, begin_of
        self._kept: dict[int, Array] = {}
        self._handles: dict[int, bytes] = {}
        self._mapped: dict[bytes, int] = {}

    def place(self, array: Array) -> MappedPlace | None:
        """Return the location of an array for other processes, or None for an empty array."""
        if not array.size:
            return None
        begin = self._begin_of(address(array))
        if begin not in self._handles:
            self._handles[begin] = bytes(self._runtime.ipcGetMemHandle(begin))
            self._kept[begin] = array
        return MappedPlace(self._handles[begin], address(array) - begin)

    def address(self, place: MappedPlace | None) -> int:
        """Return the local address of another process's memory, or 0 for an empty array."""
        if place is None:
            return 0
        if place.handle not in self._mapped:
            flags = self._runtime.cudaIpcMemLazyEnablePeerAccess
            self._mapped[place.handle] = int(self._runtime.ipcOpenMemHandle(place.handle, flags))
        return self._mapped[place.handle] + place.offset

    def close(self) -> None:
        """Unmap the memory of other processes; no kernel may use it afterwards."""
        while self._mapped:
            _, mapped = self._mapped.popitem()
            self._runtime.ipcCloseMemHandle(mapped)
