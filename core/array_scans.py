"""Passes over host arrays that an executor runs on all its threads instead of NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .executor import Array, Executor


class RowLengthSums(NamedTuple):
    """Sums of the row lengths: of their squares, their maximum, and the nonempty rows."""

    squares: int
    longest: int
    filled: int


class ArrayScans(ABC):
    """The passes that a backend implements; each returns None where NumPy is as fast."""

    @abstractmethod
    def row_lengths(self, on: Executor, indptr: Array) -> RowLengthSums | None:
        """Return sums of the row lengths."""

    @abstractmethod
    def copy_of_indices(self, on: Executor, indices: Array) -> tuple[Array, int] | None:
        """Return a copy of native indices and the largest one, -1 if an index is negative."""
