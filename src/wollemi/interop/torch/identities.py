"""Identify tensors by memory and content, to find results for tensors seen before."""

from __future__ import annotations

import weakref
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor

T = TypeVar("T")


def identity(tensor: Tensor) -> tuple[int, ...]:
    """Return a key that is equal for tensors with equal memory and unmodified content."""
    version = 0 if tensor.is_inference() else tensor._version
    storage = tensor.untyped_storage()._cdata
    return storage, tensor.storage_offset(), tensor.shape[0], version


class _Entry(NamedTuple, Generic[T]):
    first: weakref.ref[Tensor]
    second: weakref.ref[Tensor]
    state: tuple[int, ...]
    found: T


class Seen(Generic[T]):
    """Results for two tensors and a number, by the identity of the tensors.

    A lookup takes a third of the time of :func:`identity` of both tensors. An entry keeps neither
    tensor alive. It becomes invalid when a tensor is written to or gets other memory.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int, int], _Entry[T]] = {}

    def get(self, first: Tensor, second: Tensor, number: int) -> T | None:
        """Return the result for these arguments, or None."""
        entry = self._entries.get((id(first), id(second), number))
        if entry is None or entry[0]() is not first or entry[1]() is not second:
            return None
        return entry[3] if entry[2] == _state(first, second) else None

    def add(self, first: Tensor, second: Tensor, number: int, value: T) -> None:
        """Store the result for these arguments, for as long as both tensors live."""
        if first.is_inference() or second.is_inference():
            return  # writes to such tensors cannot be detected
        key = (id(first), id(second), number)

        def forget(_: object) -> None:
            self._entries.pop(key, None)

        refs = (weakref.ref(first, forget), weakref.ref(second, forget))
        self._entries[key] = _Entry(*refs, _state(first, second), value)


def _state(first: Tensor, second: Tensor) -> tuple[int, ...]:
    return (
        first._version,
        second._version,
        first.data_ptr(),
        second.data_ptr(),
        first.numel(),
        second.numel(),
    )
