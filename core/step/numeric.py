"""Steps on NumPy arrays, which define the meaning of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from . import events
from .trace import EPSILON, KINDS, OF_STATUS

Array = Any


class Value(np.ndarray[Any, Any]):
    """An array in a step: ``a += b`` makes a new array, as it does for symbols."""


def _new(sign: str) -> Callable[[Any, Any], Any]:
    return lambda own, other: getattr(own, f"__{sign}__")(other)


for _sign in ("add", "sub", "mul", "truediv"):
    setattr(Value, f"__i{_sign}__", _new(_sign))


# ---- sums. All are pairwise: NumPy sums pairwise only along contiguous memory.

#: The function that sums terms over a group of executors; None outside of groups.
_TOTALS: ContextVar[Callable[[Array, str], Array] | None] = ContextVar("totals", default=None)


@contextmanager
def totals(of_group: Callable[[Array, str], Array] | None) -> Iterator[None]:
    """Make totals with ``of_group(terms, kind)`` inside; kinds are ``sum`` and ``largest``."""
    token = _TOTALS.set(of_group)
    try:
        yield
    finally:
        _TOTALS.reset(token)


def own_sum(terms: Array) -> Array:
    """Return the sum of each column of a block."""
    return np.ascontiguousarray(terms.T).sum(axis=1)


def own_largest(terms: Array) -> Array:
    """Return the maximum of each column of a block; NaN if any element is NaN."""
    return np.maximum.reduce(terms, axis=0, initial=0)


def total(terms: Array) -> Array:
    """Return the sum of each column over the whole group."""
    of_group = _TOTALS.get()
    return own_sum(terms) if of_group is None else of_group(terms, "sum")


def largest(terms: Array) -> Array:
    """Return the maximum of each column over the whole group."""
    of_group = _TOTALS.get()
    return own_largest(terms) if of_group is None else of_group(terms, "largest")


def dot(u: Array, v: Array) -> Array:
    """Return ``sum_i conj(u_ic) v_ic`` for each column."""
    return total(u.conj() * v)


def square(u: Array) -> Array:
    """Return ``|u|^2``."""
    return u.real**2 + u.imag**2 if np.iscomplexobj(u) else u**2


def norm2(u: Array) -> Array:
    """Return ``sum_i |u_ic|^2``, a real number, for each column."""
    return total(square(u))


# ---- functions

sqrt, conj, real, absolute, where = np.sqrt, np.conj, np.real, np.absolute, np.where
finite = np.isfinite


# ---- a step on arrays


class Running:
    """The workspace of a step that runs on arrays; it contains only the running columns.

    Values are written back at the end, so that all names are read before any is written.
    """

    _arrays: dict[str, Any]
    _kinds: dict[str, str]
    _on: Array
    _status: Any
    _now: dict[str, Any]
    _written: dict[str, None]

    def __init__(self, kinds: Any, arrays: dict[str, Any], status: Any) -> None:
        columns = next(a for n, a in arrays.items() if kinds[n] == "vectors").shape[1]
        on = np.arange(columns) if status is None else events.running(status)
        self.__dict__.update(
            _arrays=arrays, _kinds=kinds, _on=on, _status=status, _now={}, _written={}
        )

    def __getattr__(self, name: str) -> Any:
        if name == EPSILON:
            return self._epsilon()
        if name == OF_STATUS:
            return self._status.threshold[self._on].view(Value)
        if name not in self._now:
            self._now[name] = self._read(name)
        return self._now[name]

    def _epsilon(self) -> Any:
        return np.finfo(self._dtype()).eps

    def _dtype(self) -> Any:
        return next(a for n, a in self._arrays.items() if self._kinds[n] == "vectors").dtype

    def _read(self, name: str) -> Any:
        array, kind = self._arrays[name], self._kinds[name]
        if kind == "numbers":
            return self._dtype().type(array)
        if kind == "rows":
            return array[:, None].view(Value)
        taken = array[..., self._on].view(Value)
        return taken != 0 if kind == "flags" else taken

    def __setattr__(self, name: str, value: Any) -> None:
        array = self._arrays[name]
        shape = (array.shape[0], self._on.size) if array.ndim == 2 else self._on.shape
        if self._kinds[name] == "flags":
            self._now[name] = np.broadcast_to(np.asarray(value, bool), shape).view(Value)
        else:
            self._now[name] = np.broadcast_to(np.asarray(value, array.dtype), shape).view(Value)
        self._written[name] = None

    def begin(self, norm: Array) -> None:
        """Record the residual norm before the first iteration of a cycle."""
        events.begin(self._status, self._on, norm)

    def observe(self, norm: Array) -> None:
        """Record the residual norm after an iteration, and count the iteration."""
        events.observe(self._status, self._on, norm)

    def halt(self, why: str, *, when: Array) -> None:
        """Stop the running columns for which a condition is true."""
        events.halt_where(self._status, self._on, why, when)

    def write_back(self) -> None:
        """Write the assigned values to the arrays."""
        for name in self._written:
            self._arrays[name][..., self._on] = self._now[name]


def run(step: Any, *arguments: Any) -> None:
    """Run a step on the arguments of its operation; all arrays are NumPy's."""
    named = dict(zip(step.names, arguments, strict=True))
    status = named.pop("status", None)
    running = Running(step.traced.kinds, named, status)
    step.function(running)
    running.write_back()


__all__ = ["KINDS", "Running", "Value", "run", "totals"]
