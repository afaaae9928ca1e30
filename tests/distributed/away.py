"""An executor whose arrays are not NumPy's, as those of a GPU are not, and links between such.

Functions of the host refuse its arrays, and its functions those of the host. It counts the calls
that a GPU would launch kernels for, and the times that the host waits for their results.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from wollemi.backends.reference.executor import ReferenceExecutor
from wollemi.core.distributed.threads import ThreadLinks
from wollemi.core.links import Move
from wollemi.core.operation import Operation
from wollemi.core.transfer import Transfer

#: Calls and waits of each thread, by its name.
COUNTS: dict[str, Counter[str]] = {}


def counted(kind: str) -> None:
    COUNTS.setdefault(threading.current_thread().name, Counter())[kind] += 1


def near(value: Any) -> Any:
    """Return NumPy's array of an array, alone, in a tuple, or in an object that has some."""
    if isinstance(value, Away):
        return value._array
    if isinstance(value, (tuple, list)):
        return type(value)(near(one) for one in value)
    found = getattr(value, "__dict__", None)
    if found and any(isinstance(one, Away) for one in found.values()):
        made = copy.copy(value)
        made.__dict__.update({name: near(one) for name, one in found.items()})
        return made
    return value


def away(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(away(one) for one in value)
    return Away(value) if isinstance(value, np.ndarray) else value


def require_no_host_array(*values: Any) -> None:
    for value in values:
        if isinstance(value, (tuple, list)):
            require_no_host_array(*value)
        elif isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("an array of the host meets one of the device")


class Away:
    """An array of the device."""

    __array_ufunc__ = None
    __slots__ = ("__weakref__", "_array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __array__(self, *given: Any, **options: Any) -> Any:
        raise TypeError("implicit conversion to an array of the host")

    @property
    def flags(self) -> Any:
        return SimpleNamespace(
            c_contiguous=self._array.flags.c_contiguous, f_contiguous=self._array.flags.f_contiguous
        )

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self._array.ctypes.data)

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        counted("wait")
        return bool(self._array)

    def __int__(self) -> int:
        counted("wait")
        return int(self._array)

    def __float__(self) -> float:
        counted("wait")
        return float(self._array)

    def __getitem__(self, key: Any) -> Any:
        require_no_host_array(key)
        mask = isinstance(key, Away) and key.dtype == bool
        if isinstance(key, Away):
            counted("call")
        if mask:
            counted("wait")
        return away(np.asarray(self._array[near(key)]))

    def __setitem__(self, key: Any, value: Any) -> None:
        require_no_host_array(key, value)
        counted("call")
        self._array[near(key)] = near(value)


def _method(name: str) -> Any:
    def call(self: Away, *given: Any, **options: Any) -> Any:
        require_no_host_array(given)
        counted("call")
        return away(np.asarray(getattr(self._array, name)(*near(given), **options)))

    return call


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "mod", "and", "or", "invert", "neg",
    "lt", "le", "gt", "ge", "eq", "ne", "abs", "truediv", "iadd", "isub", "imul", "ior",
):  # fmt: skip
    setattr(Away, f"__{_name}__", _method(f"__{_name}__"))
for _name in ("copy", "cumsum", "max", "min", "sum", "any", "all", "nonzero", "conj"):
    setattr(Away, _name, _method(_name))
Away.__hash__ = None  # type: ignore[assignment]


def _astype(self: Away, dtype: Any, copy: bool = True) -> Any:
    if not copy and self.dtype == dtype:
        return self
    counted("call")
    return Away(self._array.astype(dtype))


def _view_of(name: str) -> Any:
    return lambda self, *given, **options: away(getattr(self._array, name)(*given, **options))


Away.astype = _astype  # type: ignore[attr-defined]
for _name in ("reshape", "view", "ravel"):
    setattr(Away, _name, _view_of(_name))
for _name in ("shape", "dtype", "size", "nbytes", "ndim", "itemsize", "strides"):
    setattr(Away, _name, property(lambda self, name=_name: getattr(self._array, name)))


#: Functions whose results have a size that the host must know, and launches of each, about.
_WAITS = {"flatnonzero": 4, "nonzero": 4, "unique": 12}


class Functions:
    """NumPy's functions for arrays of the device alone."""

    ndarray = Away

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)

        def call(*given: Any, **options: Any) -> Any:
            require_no_host_array(given)
            COUNTS.setdefault(threading.current_thread().name, Counter())["call"] += _WAITS.get(
                name, 1
            )
            if name in _WAITS:
                counted("wait")
            return away(function(*near(given), **near_of(options)))

        return call


def near_of(options: dict[str, Any]) -> dict[str, Any]:
    return {name: near(value) for name, value in options.items()}


class AwayTransfer(Transfer):
    """Copies with one wait for all."""

    def read(self) -> list[Any]:
        counted("wait")
        return [np.array(near(array)) for array in self.arrays]


class AwayExecutor(ReferenceExecutor):
    """The reference's kernels for arrays that are not the host's."""

    checks_calls = False
    transfer_type = AwayTransfer  # type: ignore[assignment]
    array_type = Away  # type: ignore[assignment]

    @property
    def name(self) -> str:
        return "away"

    @property
    def xp(self) -> Any:
        return Functions()

    def perform(self, operation: Operation, kernel: Any, *arguments: Any) -> Any:
        if operation.everywhere is not None:
            return super().perform(operation, kernel, *arguments)
        counted("call")
        return away(super().perform(operation, kernel, *near(list(arguments))))

    def allocate(self, shape: Any, dtype: Any) -> Any:
        return Away(np.empty(shape, dtype))

    def zeros(self, shape: Any, dtype: Any) -> Any:
        counted("call")
        return Away(np.zeros(shape, dtype))

    def from_host(self, array: Any) -> Any:
        counted("call")
        return Away(np.array(array, order="C"))

    def to_host(self, array: Any) -> Any:
        if isinstance(array, np.ndarray):  # within a kernel
            return array
        counted("wait")
        return np.array(array._array)

    def copy(self, array: Any) -> Any:
        counted("call")
        return Away(np.array(array._array, order="C"))

    def copy_into(self, target: Any, source: Any) -> None:
        counted("call")
        near(target)[...] = near(source)

    def owns(self, array: object) -> bool:
        return isinstance(array, Away)

    def synchronize(self) -> None:
        counted("wait")


class AwayLinks(ThreadLinks):
    """Links between such executors, which copy from one to the other."""

    on_device = fuses = True

    def all(self, thing: Any) -> list[Any]:
        counted("meeting")
        return super().all(thing)

    def _of_all(self, array: Any) -> Any:
        return super()._of_all(away(near(array)))

    def sum(self, array: Any) -> None:
        self._replace(array, lambda found: sum(found[1:], found[0]))

    def largest(self, array: Any) -> None:
        self._replace(array, np.maximum.reduce)

    def norm(self, array: Any) -> None:
        self._replace(array, lambda found: np.sqrt(sum(part * part for part in found)))

    def _replace(self, array: Any, total: Any) -> None:
        found = ThreadLinks.all(self, np.array(near(array)))
        near(array)[...] = total(found)

    def push(self, halo: Any, x: Any, ghosts: Any) -> None:
        rows = near(x)[near(halo.send_index)]
        found = ThreadLinks.all(self, (rows, halo.sends))
        counted("call")
        for rank, begin, end in halo.receives:
            packed, sends = found[rank]
            first, last = next((b, e) for r, b, e in sends if r == self.rank)
            near(ghosts)[begin:end] = packed[first:last]

    def swap(self, moves: Sequence[Move]) -> list[list[Any]]:
        counted("wait")
        for move in moves:
            require_no_host_array(*move.arrays)
        found = super().swap([Move(near(list(m.arrays)), m.sends, m.receives) for m in moves])
        return [[away(np.array(array)) for array in arrays] for arrays in found]
