"""Emptying caches, for timings that begin with operands in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

#: This multiple of the last cache is written, because caches choose freely which lines to keep.
FACTOR = 3

#: The size of a last cache where the system does not say.
USUAL_CACHE = 64 << 20


@cache
def cache_bytes() -> int:
    """Return the size of the last cache of this machine's first core."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        factor = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * factor)
    return max(sizes, default=USUAL_CACHE)


class HostFlush:
    """Writes more than the caches hold, on every core at once."""

    def __init__(self) -> None:
        self._cores = len(os.sched_getaffinity(0))
        each = FACTOR * cache_bytes() // 8 // self._cores
        self._parts = [np.zeros(each) for _ in range(self._cores)]
        self._pool = ThreadPoolExecutor(self._cores)

    def __call__(self) -> None:
        """Do it."""
        list(self._pool.map(_write, self._parts))


def _write(part: np.ndarray[Any, Any]) -> None:
    np.add(part, 1.0, out=part)


class GpuFlush:
    """Writes more than the second-level cache of the device holds."""

    def __init__(self) -> None:
        import cupy

        size = cupy.cuda.Device().attributes["L2CacheSize"]
        self._memory = cupy.empty(FACTOR * size, np.uint8)

    def __call__(self) -> None:
        """Do it."""
        self._memory.fill(1)


@cache
def flush(gpu: bool) -> Callable[[], None]:
    """Return a function that empties the caches of this machine, or of the GPU."""
    return GpuFlush() if gpu else HostFlush()
