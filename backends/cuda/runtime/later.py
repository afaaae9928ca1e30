"""Small copies to the host that are requested now and awaited later.

Work submitted in between continues while the host waits. Memory and events are reused, because
pinning memory takes as long as dozens of launches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

#: Largest array, in bytes, that is copied this way.
LARGEST = 256


class Copies(threading.local):
    """Idle pinned memory and events of one device, per thread."""

    def __init__(self) -> None:
        self.idle: list[tuple[np.ndarray[Any, Any], Any]] = []

    def ask(self, xp: Any, array: Any) -> Callable[[], np.ndarray[Any, Any]]:
        """Submit the copy of a contiguous array; return a function that waits (call it once)."""
        cuda, idle = xp.cuda, self.idle
        memory, event = idle.pop() if idle else _made(cuda)
        stream = cuda.get_current_stream()
        place = memory.ctypes.data, array.data.ptr, array.nbytes
        cuda.runtime.memcpyAsync(*place, cuda.runtime.memcpyDeviceToHost, stream.ptr)
        event.record(stream)
        shape, dtype, nbytes = array.shape, array.dtype, array.nbytes

        def wait() -> np.ndarray[Any, Any]:
            event.synchronize()
            copied = memory[:nbytes].view(dtype).reshape(shape).copy()
            idle.append((memory, event))
            return copied

        return wait


def _made(cuda: Any) -> tuple[np.ndarray[Any, Any], Any]:
    memory = np.frombuffer(cuda.alloc_pinned_memory(LARGEST), np.uint8, LARGEST)
    return memory, cuda.Event(disable_timing=True)
