"""Passes over arrays of the host that an executor makes with all its threads, not with NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .executor import Array, Executor


class ArrayScans(ABC):
    """The passes that a backend offers; each returns None where NumPy is as good."""

    @abstractmethod
    def row_lengths(self, on: Executor, indptr: Array) -> tuple[int, int, int] | None:
        """Return the sum of squared row lengths, the largest one, and how many are not 0."""

    @abstractmethod
    def copy_of_indices(self, on: Executor, indices: Array) -> tuple[Array, int] | None:
        """Return a copy of native indices and the largest one, -1 where one is negative."""
