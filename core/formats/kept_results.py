"""Patterns of results, which are kept for repeated operations.

An operation on structure makes a pattern from patterns. Finding the positions of its entries costs
launches, a wait for their number, and memory. A program that selects the same columns of a matrix
in every step, or stacks the same matrices, needs only new values. Therefore the second call of an
operation with the same arguments keeps the pattern of its result, and later calls only move the
values. A single call keeps no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from ..store import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .csr import Csr

V = TypeVar("V")


class Repeated(Generic[V]):
    """An object that is made for the arguments of the last call, and kept from the second call on.

    Examples
    --------
    >>> kept, made = Repeated(), []
    >>> def make():
    ...     made.append("pattern")
    ...     return made[-1]
    >>> [kept.of((0, 3), make) for _ in range(3)], len(made)
    ([None, 'pattern', 'pattern'], 1)
    """

    def __init__(self) -> None:
        self._last: tuple[Hashable, V | None] = (None, None)

    def of(self, arguments: Hashable, make: Callable[[], V]) -> V | None:
        """Return the object for these arguments, or None if the last call had other arguments.

        The fields are replaced together, so that threads can share this object.
        """
        last, result = self._last
        if last != arguments:
            self._last = arguments, None
            return None
        if result is None:
            result = make()
            self._last = arguments, result
        return result


def repeated(csr: Csr, key: Key[Repeated[V]]) -> Repeated[V] | None:
    """Return the object of a key for the pattern of a matrix, or None if it keeps nothing."""
    return None if csr.is_lean else csr._pattern.get(key, Repeated)


def kept_or_made(csr: Csr, key: Key[Repeated[V]], arguments: Hashable, make: Callable[[], V]) -> V:
    """Return the object that is kept for these arguments, or a new one."""
    kept = repeated(csr, key)
    found = None if kept is None else kept.of(arguments, make)
    return make() if found is None else found
