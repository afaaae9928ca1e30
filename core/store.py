"""Data stored with a matrix, derived from its pattern or from its values.

Analysing a matrix takes longer than a product with it, and is done once. Data that follow from the
pattern alone (row statistics, partitions, the transposed pattern, plans) are in a
:class:`PatternStore`, which all matrices of that pattern share. Data that also depend on the values
(a packed copy) are in a :class:`ValueStore`, which belongs to one matrix and is updated with its
values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from .capture import refuse_making

if TYPE_CHECKING:
    from .algorithm import Plan
    from .products.repeats import KnownProduct

V = TypeVar("V")


class Key(NamedTuple, Generic[V]):
    """The key of stored data; its type parameter is the type of the data.

    Parameters
    ----------
    name : str
        Description of the data, such as ``"tiles of columns"``.
    of : tuple
        Inputs other than the matrix, such as the width of a tile.

    Examples
    --------
    >>> WIDTH: Key[int] = Key("width")
    >>> store = Store()
    >>> store.get(WIDTH.of_size(8), lambda: 64), store.get(WIDTH.of_size(8), lambda: 0)
    (64, 64)
    """

    name: str
    of: tuple[Hashable, ...] = ()

    def of_size(self, *of: Hashable) -> Key[V]:
        """Return the key of the same kind of data with these parameters."""
        return self._replace(of=of)


class Store:
    """Data by their keys."""

    def __init__(self) -> None:
        self._things: dict[Key[Any], Any] = {}

    def get(self, key: Key[V], make: Callable[[], V]) -> V:
        """Return the data stored under ``key``; the first call makes them with ``make()``."""
        try:
            found: V = self._things[key]
        except KeyError:
            refuse_making(key.name)
            found = self._things[key] = make()
        return found

    def put(self, key: Key[V], thing: V) -> None:
        """Store data under ``key``, also while a graph is captured: no kernel makes them."""
        self._things[key] = thing

    def __contains__(self, key: Key[Any]) -> bool:
        return key in self._things

    def __len__(self) -> int:
        return len(self._things)


class PatternStore(Store):
    """Data that follow from a pattern alone.

    Attributes
    ----------
    plans : dict
        The plans of products with dense matrices, by operation, columns, kernel and dtype.
    repeats : dict
        The results of :meth:`Executor.run_repeatably`, by the operation and by all properties of
        the arrays of a call except their addresses.
    products : dict
        The products that public functions can repeat, by options and by all properties of the
        operands except their addresses.
    """

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[tuple[str, int, str, str], Plan] = {}
        self.repeats: dict[Hashable, Callable[[Sequence[int]], None] | None] = {}
        self.products: dict[Hashable, KnownProduct] = {}


class ValueStore(Store):
    """Data made from the values of one matrix; objects in it have ``update_values(matrix)``."""

    def update_values(self, matrix: Any) -> None:
        """Update all data to the new values of ``matrix``."""
        for thing in self._things.values():
            thing.update_values(matrix)
