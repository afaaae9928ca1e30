"""Copies of several contiguous arrays at once between an executor and the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .events import reports_copies
from .wording import counted

if TYPE_CHECKING:
    from .executor import Array, Executor

HostArray = np.ndarray[Any, Any]


class Transfer:
    """Copies of contiguous arrays between an executor and the host, all at once.

    Starting a copy takes the host of a device several microseconds regardless of its size, and a
    wait takes longer. A solve of few iterations takes about as long as its copies. Therefore a
    solve keeps one transfer, which determines once where its copies go.

    :meth:`Executor.transfer` makes transfers. This class copies the arrays one by one; it serves
    executors that have no faster way.

    Parameters
    ----------
    executor : Executor
        The executor of the arrays.
    arrays : sequence of arrays
        Arrays to read.
    written : sequence of arrays
        Arrays to overwrite. All these arrays keep their addresses.

    Attributes
    ----------
    filled_for : object
        The object for which the caller has filled :attr:`host`; None at first.
    """

    filled_for: object = None

    def __init__(
        self, executor: Executor, arrays: Sequence[Array], written: Sequence[Array] = ()
    ) -> None:
        self.executor = executor
        self.arrays, self.written = tuple(arrays), tuple(written)

    def __repr__(self) -> str:
        read, written = (counted(len(a), "array") for a in (self.arrays, self.written))
        return f"<transfer of {read} from {self.executor.name}, and of {written} to it>"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        reports_copies(cls)

    @classmethod
    def allocate(
        cls, executor: Executor, *wanted: tuple[tuple[int, ...], DTypeLike]
    ) -> list[Array]:
        """Return uninitialized arrays of these shapes and dtypes, adjacent if that helps.

        Transfers copy adjacent arrays with one copy if they are passed in the same order.
        """
        return [executor.allocate(shape, dtype) for shape, dtype in wanted]

    @cached_property
    def host(self) -> list[HostArray]:
        """The values that :meth:`write` writes: initially zeros, to be filled by the caller."""
        return [np.zeros(tuple(array.shape), array.dtype) for array in self.written]

    def write(self, *values: HostArray) -> None:
        """Overwrite the arrays with contiguous host arrays of the same shapes and dtypes.

        By default the values are :attr:`host`.
        """
        for target, source in zip(self.written, values or self.host, strict=True):
            self.executor.copy_into(target, source)

    def read(self) -> list[HostArray]:
        """Return the result of :meth:`Executor.to_host` for each array; a device waits once."""
        return [self.executor.to_host(array) for array in self.arrays]

    def peek(self) -> list[HostArray]:
        """Return the result of :meth:`read` in memory that the next transfer may overwrite."""
        return self.read()

    def ask(self) -> Callable[[], list[HostArray]]:
        """Start :meth:`read`; return a function that waits for the result, to be called once.

        On devices that support it, the function does not wait for later submissions.
        """
        found = self.read()
        return lambda: found


class HostTransfer(Transfer):
    """Transfers of executors with NumPy arrays: the host reads the arrays in place."""

    def read(self) -> list[HostArray]:
        """Return the arrays."""
        return list(self.arrays)

    def peek(self) -> list[HostArray]:
        """Return the arrays."""
        return list(self.arrays)


reports_copies(Transfer)
