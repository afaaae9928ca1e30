"""Memory of GPUs that other processes of the host map, by handles of CUDA's IPC."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from ....core.errors import DeviceError
from ....core.executor import Array
from ...gpu.arguments import address


class MappedPlace(NamedTuple):
    """A place in memory of a process, as the process tells it to others.

    Attributes
    ----------
    handle : bytes
        Of the allocation.
    offset : int
        Bytes from its begin.
    """

    handle: bytes
    offset: int


def begin_of_allocation(place: int) -> int:
    """Return where the allocation begins that an address of the device lies in."""
    driver, begin, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_size_t()
    given = ctypes.byref(begin), ctypes.byref(size), ctypes.c_uint64(place)
    code = driver.cuMemGetAddressRange_v2(*given)
    if code:
        raise DeviceError(f"cuMemGetAddressRange: error {code} of the driver for {place:#x}")
    return int(begin.value)


class MappedMemory:
    """The memory that this process shares with others, and the memory of others that it maps.

    An allocation that others may have mapped is not given back to the driver: one of its arrays
    stays.

    Parameters
    ----------
    runtime : module
        ``cupy.cuda.runtime``, or a substitute with its functions.
    begin_of : callable
        Returns where the allocation of an address begins.
    """

    def __init__(self, runtime: Any, begin_of: Callable[[int], int] = begin_of_allocation) -> None:
        self._runtime, self._begin_of = runtime, begin_of
        self._kept: dict[int, Array] = {}
        self._handles: dict[int, bytes] = {}
        self._mapped: dict[bytes, int] = {}

    def place(self, array: Array) -> MappedPlace | None:
        """Return where an array is, for other processes; None for an empty one."""
        if not array.size:
            return None
        begin = self._begin_of(address(array))
        if begin not in self._handles:
            self._handles[begin] = bytes(self._runtime.ipcGetMemHandle(begin))
            self._kept[begin] = array
        return MappedPlace(self._handles[begin], address(array) - begin)

    def address(self, place: MappedPlace | None) -> int:
        """Return where memory of another process is in this one; 0 for an empty array."""
        if place is None:
            return 0
        if place.handle not in self._mapped:
            flags = self._runtime.cudaIpcMemLazyEnablePeerAccess
            self._mapped[place.handle] = int(self._runtime.ipcOpenMemHandle(place.handle, flags))
        return self._mapped[place.handle] + place.offset

    def close(self) -> None:
        """Unmap the memory of others; no kernel may use it any more."""
        while self._mapped:
            _, mapped = self._mapped.popitem()
            self._runtime.ipcCloseMemHandle(mapped)
