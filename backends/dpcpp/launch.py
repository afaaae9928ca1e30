"""Kernel launches: submitted immediately, or recorded for repeated submission by the shim."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from sys import is_finalizing
from typing import Any

import numpy as np

from .place import Place, host_address
from .pool import UsmBlock
from .programs import CompiledKernel
from .shim import check, shim

#: Environment variable that makes every launch wait, so that a device error names the kernel that
#: caused it.
WAIT = "WOLLEMI_DPCPP_WAIT"


class Record:
    """Recorded launches in order, with all arguments bound.

    Attributes
    ----------
    kept : list
        Objects to keep alive: the program, and memory that was allocated while recording.
    replayable : bool
        Whether the record can be replayed; False if the host took part in the recorded work.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._shim = shim()
        self._handle = self._shim.wl_record_new()
        self.kept: list[Any] = []
        self.replayable = True
        self.length = 0

    def __del__(self, python_ends: Callable[[], bool] = is_finalizing) -> None:
        if hasattr(self, "_handle") and not python_ends():
            self._shim.wl_record_free(self._handle)

    def add(self, kernel: CompiledKernel, blocks: int, block: int, slots: bytes) -> None:
        """Append a launch."""
        self._shim.wl_record_add(self._handle, kernel.handle, blocks, block, slots)
        self.length += 1

    @property
    def is_graph(self) -> bool:
        """Whether the runtime has made a SYCL graph of the record, for long batches."""
        return bool(self._shim.wl_record_is_graph(self._handle))

    def run(self, times: int, watched: Any) -> int:
        """Submit all launches ``times`` times, wait, and return the watched int32 of the device."""
        seen = self._place.pinned(4)
        check(
            self._shim.wl_record_run(
                self._place.address, self._handle, times, watched.pointer, host_address(seen), 4
            ),
            f"an iteration failed on {self._place.device.name.strip()}",
        )
        return int(seen[:4].view(np.int32)[0])


class Launcher:
    """Launches the kernels of one device, and owns the scratch memory that they share.

    The queue is in order, so consecutive kernels may use the same scratch memory.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._launch = shim().wl_launch
        self._scratch: dict[int, UsmBlock] = {}
        self._counter = self._place.allocate(64)
        zeros = (ctypes.c_char * 64)()
        self._place.copy(self._counter.address, ctypes.addressof(zeros), 64)
        self._local = threading.local()
        self._waits = bool(os.environ.get(WAIT))

    @property
    def record(self) -> Record | None:
        """The record of this thread, or None if the thread does not record."""
        return getattr(self._local, "record", None)

    @record.setter
    def record(self, record: Record | None) -> None:
        self._local.record = record

    def submit(self, kernel: CompiledKernel, blocks: int, block: int, *values: Any) -> None:
        """Launch a kernel with ``blocks`` work-groups, or record the launch."""
        slots = kernel.slots.pack(*values)
        record = self.record
        if record is not None:
            record.add(kernel, blocks, block, slots)
            return
        code = self._launch(self._place.address, kernel.handle, blocks, block, slots)
        if code:
            check(code, f"{kernel.name} failed on {self._place.device.name.strip()}")
        if self._waits:
            self._place.wait(kernel.name)

    def scratch(self, nbytes: int) -> int:
        """Return the address of at least ``nbytes`` of scratch memory, valid for one launch."""
        size = max(1 << (nbytes - 1).bit_length(), 4096) if nbytes else 4096
        memory = self._scratch.get(size)
        if memory is None:  # if several threads allocate, all use the first memory
            memory = self._scratch.setdefault(size, self._place.allocate(size))
        return memory.address

    @property
    def counter(self) -> int:
        """The address of an int32 that is 0 before and after every launch."""
        return self._counter.address
