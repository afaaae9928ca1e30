"""Patterns of results that are asked for again.

An operation on structure makes a pattern from patterns: where its entries are costs launches, a
wait for their number, and memory. A program that takes the same columns of a matrix in every step,
or stacks the same matrices, asks for new values alone. So the second call of an operation keeps the
pattern of its result, and later calls move the values. One call keeps no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from ..store import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .csr import Csr

V = TypeVar("V")


class Repeated(Generic[V]):
    """An object that is made for the arguments of the last call, and kept from the second on.

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
        """Return the object for these arguments; None if the last call had others.

        Arguments, results and who asks are replaced at once, so that threads may share this.
        """
        last, found = self._last
        if last != arguments:
            self._last = arguments, None
            return None
        if found is None:
            found = make()
            self._last = arguments, found
        return found


def repeated(csr: Csr, key: Key[Repeated[V]]) -> Repeated[V] | None:
    """Return the object of a key with the pattern of a matrix; None where nothing is to be kept."""
    return None if csr.is_lean else csr._pattern.get(key, Repeated)


def kept_or_made(csr: Csr, key: Key[Repeated[V]], arguments: Hashable, make: Callable[[], V]) -> V:
    """Return the object that is kept for these arguments, or a new one."""
    kept = repeated(csr, key)
    found = None if kept is None else kept.of(arguments, make)
    return make() if found is None else found
