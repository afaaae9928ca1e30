"""Measure the memory bandwidth of a GPU."""

from __future__ import annotations

import numpy as np

from .device import GpuDevice


def bandwidth(device: GpuDevice) -> float | None:
    """Return the bandwidth of a copy (bytes read plus written per second); None without memory."""
    import cupy

    nbytes = min(1 << 28, device.memory // 16)
    with device.handle:
        try:
            source, target = cupy.zeros(nbytes, np.uint8), cupy.empty(nbytes, np.uint8)
        except cupy.cuda.memory.OutOfMemoryError:
            return None
        best = float("inf")
        for _ in range(5):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            target[...] = source
            end.record()
            end.synchronize()
            best = min(best, cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
        return 2 * nbytes / best
