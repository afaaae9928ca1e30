"""A set of objects by their identity, which keeps none of them alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar
from weakref import ref

V = TypeVar("V")


class WeakIdentitySet(Generic[V]):
    """Objects that may define ``==`` in any way: two of them are the same if they are one object.

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
        """Add an object; it leaves the set when it is freed."""
        key, references = id(item), self._references

        def forget(dead: ref[V]) -> None:
            if references.get(key) is dead:
                del references[key]

        references[key] = ref(item, forget)

    def discard(self, item: V) -> None:
        """Take an object out, if it is there."""
        self._references.pop(id(item), None)

    def __iter__(self) -> Iterator[V]:
        """Return the objects that are alive."""
        alive = (reference() for reference in list(self._references.values()))
        return iter([item for item in alive if item is not None])

    def __bool__(self) -> bool:
        return bool(self._references)
