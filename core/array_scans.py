"""Passes over host arrays that an executor runs on all its threads instead of NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .executor import Array, Executor


class ArrayScans(ABC):
    """The passes that a backend implements; each returns None where NumPy is as fast."""

    @abstractmethod
    def row_lengths(self, on: Executor, indptr: Array) -> tuple[int, int, int] | None:
        """Return the sum of squared row lengths, the largest one, and the nonempty rows."""

    @abstractmethod
    def copy_of_indices(self, on: Executor, indices: Array) -> tuple[Array, int] | None:
        """Return a copy of native indices and the largest one, -1 if an index is negative."""
