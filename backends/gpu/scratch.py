"""Temporary memory for launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...core.executor import Array


class Scratch:
    """Memory for partial sums, shared by consecutive launches on a stream."""

    def __init__(self) -> None:
        self.buffer: Array | None = None
        self.counter: Array | None = None
        self.slots: dict[Any, Any] = {}

    def reserve(self, nbytes: int, counters: int = 1) -> tuple[int, int]:
        """Return the addresses of ``nbytes`` of memory and of counters that are 0."""
        buffer, counter = self.buffer, self.counter
        if counter is None or counter.size < counters or buffer is None or buffer.size < nbytes:
            buffer, counter = self._grown(nbytes, counters)
        return buffer.data.ptr, counter.data.ptr

    def _grown(self, nbytes: int, counters: int) -> tuple[Array, Array]:
        """Reallocate the parts that are too small, and return both."""
        import cupy

        if self.counter is None or self.counter.size < counters:
            self.counter = cupy.zeros(max(counters, 1), np.int32)
        if self.buffer is None or self.buffer.size < nbytes:
            self.buffer = cupy.empty(max(nbytes, 1 << 16), np.uint8)
        return self.buffer, self.counter
