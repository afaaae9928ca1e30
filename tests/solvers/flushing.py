"""An executor of the host on which functions of arrays flush, as functions of CuPy do on a GPU.

CuPy compiles its kernels with ``-ftz=true``: subnormal arguments and results of single precision
are zeros. Kernels of wollemi keep them, here too.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import wollemi as wl

TINY = np.finfo(np.float32).tiny


class InKernels(threading.local):
    """How many kernels of the executor a thread is within."""

    count = 0


_kernels = InKernels()


def flushed(value: Any) -> Any:
    """Return values with zeros in place of the subnormal ones of single precision."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(flushed, value))
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype not in ("f4", "c8"):
        return value
    plain = np.array(value)
    parts = plain.reshape(-1).view(np.float32)
    parts[np.abs(parts) < TINY] = 0
    return plain


def plain(value: Any) -> Any:
    """Return arrays of the executor as arrays of NumPy."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(plain, value))
    return np.asarray(value) if isinstance(value, Flushing) else value


def native(value: Any) -> Any:
    """Return arrays of NumPy as arrays of the executor."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(native, value))
    return value.view(Flushing) if isinstance(value, np.ndarray) else value


#: Functions that copy or select values, and make none.
MOVES = {"where", "concatenate", "stack", "ascontiguousarray", "broadcast_to", "take", "transpose"}


class Flushing(np.ndarray):
    """A native array of the executor."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        function = getattr(ufunc, method)
        if _kernels.count:
            made = function(*plain(inputs), **options)
        else:
            made = flushed(function(*flushed(plain(inputs)), **options))
        if out is None:
            return native(made)
        np.asarray(out[0])[...] = made
        return out[0]

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        keep = _kernels.count or function.__name__ in MOVES
        given = plain(arguments) if keep else flushed(plain(arguments))
        made = function(*given, **{name: plain(value) for name, value in options.items()})
        return native(made if keep else flushed(made))

    def astype(self, dtype: Any, *arguments: Any, **options: Any) -> Any:
        if self.dtype == dtype or _kernels.count:
            return native(np.asarray(self).astype(dtype, *arguments, **options))
        with np.errstate(over="ignore"):
            return native(flushed(flushed(np.asarray(self)).astype(dtype, *arguments, **options)))

    def conj(self) -> Any:
        return np.conjugate(self)

    def nonzero(self) -> Any:
        return native(np.asarray(flushed(np.asarray(self))).nonzero())


class Functions(types.ModuleType):
    """NumPy's functions; the arrays that they make are native."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *arguments, **options: native(found(*arguments, **options))


class FlushingExecutor(type(wl.executor("reference"))):  # type: ignore[misc]
    """The reference executor with such arrays."""

    name = "flushing"
    flushes_subnormals = True
    xp = Functions("flushing")
    array_type = Flushing

    def allocate(self, *given: Any) -> Any:
        return native(super().allocate(*given))

    def zeros(self, *given: Any) -> Any:
        return native(super().zeros(*given))

    def from_host(self, array: Any) -> Any:
        return native(np.array(array))

    def to_host(self, array: Any) -> Any:
        return np.asarray(array)

    def copy(self, array: Any) -> Any:
        return native(np.array(np.asarray(array), order="C"))

    def copy_into(self, target: Any, source: Any) -> None:
        np.asarray(target)[...] = np.asarray(source)

    def owns(self, array: object) -> bool:
        return isinstance(array, Flushing)

    def perform(self, *given: Any) -> Any:
        with _in_kernel():
            return native(super().perform(*given))


@contextmanager
def _in_kernel() -> Iterator[None]:
    _kernels.count += 1
    try:
        yield
    finally:
        _kernels.count -= 1
