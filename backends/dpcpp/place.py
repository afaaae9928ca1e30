"""A device's queue and memory, and transfers between the device and the host."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import DeviceError, OutOfDeviceMemory
from . import runtime
from .pool import UsmBlock, UsmPool
from .shim import capsule, check, last_error, shim

#: On a CPU, request pages of 2 MB for allocations from this size (bytes) on: vectors and matrices
#: are read up to 1.6 times as fast (NumPy does the same).
HUGE_BYTES = 4 << 20
_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14

#: Cache at most 1 / _KEPT_PART of the device's memory for later arrays.
_KEPT_PART = 8

#: Dpctl's name of a capsule with a queue.
_QUEUE = b"SyclQueueRef"

#: Minimum size of pinned memory in bytes: one page, so that it rarely has to grow.
_PINNED_BYTES = 4096


class Place:
    """The location of arrays: one in-order queue of one device.

    Parameters
    ----------
    device : dpctl.SyclDevice
        A SYCL device of any kind.
    """

    def __init__(self, device: Any) -> None:
        dpctl = runtime.load()
        self.device = device
        self._shim = shim()
        like = dpctl.SyclQueue(device)
        self.address = self._shim.wl_place(int(like.addressof_ref()))
        if not self.address:
            raise DeviceError(f"{device.name.strip()} gives no queue: {last_error()}")
        #: The same queue as a dpctl object.
        self.queue = dpctl.SyclQueue(capsule(self._shim.wl_queue(self.address), _QUEUE))
        self.is_host = device.device_type.name == "cpu"
        #: The device's number among all SYCL devices, for DLPack.
        self.number = int(device.get_device_id())
        self._memory = dpctl.memory.MemoryUSMDevice
        self._host_memory = dpctl.memory.MemoryUSMHost
        self._local = threading.local()
        self._pool = UsmPool(self._new_memory, int(device.global_mem_size) // _KEPT_PART)

    def allocate(self, nbytes: int) -> UsmBlock:
        """Return a block of at least ``nbytes``.

        Raises
        ------
        OutOfDeviceMemory
            If the device does not have enough memory.
        """
        return self._pool.allocate(nbytes)

    def release_idle_memory(self) -> None:
        """Free the memory that is cached for later arrays."""
        self._pool.release()

    def _new_memory(self, nbytes: int) -> Any:
        """Return a dpctl memory object of at least ``nbytes``."""
        huge = self.is_host and nbytes >= HUGE_BYTES
        size = -(-nbytes // _HUGE_PAGE) * _HUGE_PAGE if huge else nbytes
        try:
            # align to 64 bytes: a cache line, and the widest vector register of any CPU
            memory = self._memory(size, alignment=_HUGE_PAGE if huge else 64, queue=self.queue)
        except Exception as error:  # dpctl's error class depends on its version
            known = ("USMAllocationError", "MemoryError", "ValueError", "OverflowError")
            if type(error).__name__ not in known:
                raise
            free = self.device.global_mem_size
            raise OutOfDeviceMemory(
                f"{self.device.name.strip()} has no room for {nbytes} bytes (its memory has {free})"
            ) from error
        if huge:
            _libc().madvise(memory._pointer, size, _MADV_HUGEPAGE)
        return memory

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy bytes between addresses of the device and the host, and wait."""
        if nbytes:
            check(self._shim.wl_copy(self.address, to, source, nbytes), "a copy failed")

    def gather(self, pieces: Sequence[tuple[int, int]]) -> list[np.ndarray[Any, Any]]:
        """Copy pieces of device memory, given by address and size, to the host with one wait.

        They go through pinned memory, which the device writes directly.

        Returns
        -------
        list of numpy.ndarray
            Arrays of bytes; the thread's next call overwrites them.
        """
        begins = np.cumsum([0, *(-(-nbytes // 16) * 16 for _, nbytes in pieces)]).tolist()
        room = self.pinned(begins[-1])
        addresses = (ctypes.c_void_p * len(pieces))(*(address for address, _ in pieces))
        sizes = (ctypes.c_size_t * len(pieces))(*(nbytes for _, nbytes in pieces))
        check(
            self._shim.wl_gather(self.address, host_address(room), addresses, sizes, len(pieces)),
            "a copy failed",
        )
        return [
            room[begin : begin + nbytes] for begin, (_, nbytes) in zip(begins, pieces, strict=False)
        ]

    def pinned(self, nbytes: int) -> np.ndarray[Any, Any]:
        """Return this thread's pinned memory, which the device writes directly, or None."""
        room: np.ndarray[Any, Any] | None = getattr(self._local, "pinned", None)
        if room is None or room.nbytes < nbytes:
            size = max(nbytes, _PINNED_BYTES)
            has_pinned = self.device.has_aspect_usm_host_allocations
            room = (
                np.frombuffer(self._host_memory(size, queue=self.queue), np.uint8)
                if has_pinned
                else np.empty(size, np.uint8)
            )
            self._local.pinned = room
        return room

    def reaches(self, address: int) -> bool:
        """Return whether the device can access an address."""
        return bool(self._shim.wl_reaches(self.address, address))

    def wait(self, label: str = "work") -> None:
        """Wait for all submitted work, and raise earlier errors of the device.

        Raises
        ------
        DeviceError, OutOfDeviceMemory
            If the work failed; the message says that ``label`` failed.
        """
        check(self._shim.wl_wait(self.address), f"{label} failed on {self.device.name.strip()}")


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of a C-contiguous array in bytes."""
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def host_address(array: np.ndarray[Any, Any]) -> int:
    """Return the address of a NumPy array."""
    return int(array.ctypes.data)
