"""Vectors with spare rows at the end, where a product stores the rows of other members."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from .executor import Array, Executor

#: Blocks with spare rows, by the identity of their arrays.
_ROOMY: WeakValueDictionary[int, Any] = WeakValueDictionary()


def zeros_with_room(executor: Executor, rows: int, room: int, columns: int, dtype: Any) -> Array:
    """Return a block of zeros of shape (rows, columns) with ``room`` spare rows after it."""
    return _of(executor.zeros, rows, room, columns, dtype)


def with_room_after(executor: Executor, rows: int, room: int, columns: int, dtype: Any) -> Array:
    """Return an uninitialized block with spare rows after it."""
    return _of(executor.allocate, rows, room, columns, dtype)


def _of(make: Callable[..., Array], rows: int, room: int, columns: int, dtype: Any) -> Array:
    if not room:
        return make((rows, columns), dtype)
    whole = make((rows + room, columns), dtype)
    _ROOMY[id(whole)] = whole
    result: Array = whole[:rows]
    return result


def with_room(executor: Executor, block: Array, room: int) -> Array | None:
    """Return a block together with its spare rows, or None if it has none."""
    base = getattr(block, "base", None)
    if base is None or _ROOMY.get(id(base)) is not base:
        return None
    whole: Any = base
    rows, columns = block.shape
    fits = whole.shape[0] >= rows + room and whole.shape[1] == columns
    if not fits or whole.dtype != block.dtype or whole.strides != block.strides:
        return None
    if executor.address(whole) != executor.address(block):
        return None
    result: Array = whole[: rows + room]
    return result
