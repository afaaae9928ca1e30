"""Deprecated methods of executors for copies; :class:`Transfer` replaces them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .deprecation import Decorator, deprecated
from .transfer import Transfer

if TYPE_CHECKING:
    from .executor import Array


def _old(name: str, instead: str) -> Decorator[Any, Any]:
    return deprecated(since="0.3", removal="0.5", instead=instead, name=f"Executor.{name}")


class OldTransfers:
    """The deprecated methods of :class:`~wollemi.Executor` that :class:`Transfer` replaces."""

    @_old("allocate_together", "Executor.transfer_type.allocate(executor, ...)")
    def allocate_together(self: Any, *wanted: tuple[tuple[int, ...], DTypeLike]) -> list[Array]:
        """Return uninitialized arrays of these shapes and dtypes."""
        return self.transfer_type.allocate(self, *wanted)

    @_old("overwrite_together", "Executor.transfer(written=arrays).write(*values)")
    def overwrite_together(self: Any, *pairs: tuple[Array, np.ndarray]) -> None:
        """Overwrite contiguous arrays with small host arrays."""
        self.transfer(written=[target for target, _ in pairs]).write(*(s for _, s in pairs))

    @_old("to_host_together", "Executor.transfer(*arrays).read()")
    def to_host_together(self: Any, *arrays: Array) -> list[np.ndarray]:
        """Return the result of ``to_host`` for each array."""
        return self.transfer(*arrays).read()

    @_old("to_host_later", "Executor.transfer(array).ask()")
    def to_host_later(self: Any, array: Array) -> Callable[[], np.ndarray]:
        """Start ``to_host``; return a function that waits for the result."""
        wait = self.transfer(array).ask()
        return lambda: wait()[0]

    @_old("exchange", "Executor.transfer(*read, written=written)")
    def exchange(self: Any, written: Sequence[Array], read: Sequence[Array]) -> Transfer:
        """Return a transfer, the argument of ``write`` and ``read``.

        Parameters
        ----------
        written, read : sequence of arrays
            Small contiguous arrays of this executor.
        """
        return self.transfer(*read, written=written)

    @_old("write", "Transfer.write()")
    def write(self: Any, exchange: Transfer) -> None:
        """Overwrite the written arrays of a transfer with its values."""
        exchange.write()

    @_old("read", "Transfer.peek()")
    def read(self: Any, exchange: Transfer) -> list[np.ndarray]:
        """Return the arrays that a transfer reads."""
        return exchange.peek()
