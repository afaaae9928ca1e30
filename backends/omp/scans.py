"""Multithreaded passes over arrays of the host."""

from __future__ import annotations

from ...core.array_scans import ArrayScans, RowLengthSums
from ...core.executor import Array, Executor
from .level import native

#: Below this number of entries, 64 bits hold the sum of the squared row lengths.
COUNTED = 1 << 31

#: From this size (bytes) on, threads share a copy; below it, waking them takes as long.
SHARED_COPY = 1 << 20


class NativeScans(ArrayScans):
    """Array passes in native code."""

    def row_lengths(self, on: Executor, indptr: Array) -> RowLengthSums | None:
        """Return sums of the row lengths."""
        entries = int(indptr[-1]) if indptr.size else 0
        if native().recording() or not 0 < entries < COUNTED:
            return None
        return RowLengthSums(*native().row_lengths(on, indptr))

    def copy_of_indices(self, on: Executor, indices: Array) -> tuple[Array, int] | None:
        """Copy indices, with all threads if there are many; return the copy and the largest one."""
        if native().recording():
            return None
        made = on.allocate(indices.shape, indices.dtype)
        return made, native().indices_copy(on, indices, made)
