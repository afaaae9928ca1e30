"""A set of objects by identity that does not keep the objects alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar
from weakref import ref

V = TypeVar("V")


class WeakIdentitySet(Generic[V]):
    """A set in which two objects are equal only if they are the same object, whatever ``==`` does.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A, B = wl.Csr(np.eye(2)), wl.Csr(np.eye(2))
    >>> matrices = WeakIdentitySet([A, B, A])
    >>> len(list(matrices))
    2
    """

    def __init__(self, items: Iterable[V] = ()) -> None:
        self._references: dict[int, ref[V]] = {}
        for item in items:
            self.add(item)

    def add(self, item: V) -> None:
        """Add an object; it is removed from the set when it is freed."""
        key, references = id(item), self._references

        def forget(dead: ref[V]) -> None:
            if references.get(key) is dead:
                del references[key]

        references[key] = ref(item, forget)

    def discard(self, item: V) -> None:
        """Remove an object if it is in the set."""
        self._references.pop(id(item), None)

    def __iter__(self) -> Iterator[V]:
        """Iterate over the objects that are still alive."""
        alive = (reference() for reference in list(self._references.values()))
        return iter([item for item in alive if item is not None])

    def __bool__(self) -> bool:
        return bool(self._references)
