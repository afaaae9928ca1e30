"""Passes over arrays of the host by all threads."""

from __future__ import annotations

from ...core.array_scans import ArrayScans
from ...core.executor import Array, Executor
from .level import native

#: Entries below which 64 bits hold the sum of the squared lengths of rows.
COUNTED = 1 << 31

#: Bytes from which threads share a copy; below, waking them takes as long.
SHARED_COPY = 1 << 20


class NativeScans(ArrayScans):
    """The passes of native code."""

    def row_lengths(self, on: Executor, indptr: Array) -> tuple[int, int, int] | None:
        """Return the sum of squared row lengths, the largest one, and how many are not 0."""
        entries = int(indptr[-1]) if indptr.size else 0
        if native().recording() or not 0 < entries < COUNTED:
            return None
        found: tuple[int, int, int] = native().row_lengths(on, indptr)
        return found

    def copy_of_indices(self, on: Executor, indices: Array) -> tuple[Array, int] | None:
        """Return a copy of large indices and the largest one, by all threads; else None."""
        if indices.nbytes < SHARED_COPY or native().recording():
            return None
        made = on.allocate(indices.shape, indices.dtype)
        return made, native().indices_copy(on, indices, made)
