"""Compiled functions of the host as the functions of operators.

A compiled function has the signature ::

    void f(const T *x, T *y, int64_t n, int64_t m, void *data)

It sets ``y``, of ``m`` elements, to the image of ``x``, of ``n`` elements. ``T`` is the dtype of
the operator; a complex number is two real ones. It may be called on any thread, without Python's
lock.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

from .errors import InvalidArgument

Numbers = np.ndarray[Any, Any]

_INTEGER, _POINTER = ctypes.c_int64, ctypes.c_void_p
_PROTOTYPE = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _INTEGER, _INTEGER, _POINTER)
_OF_CTYPES = type(_PROTOTYPE()).__mro__[1]


def address_of(function: object) -> int | None:
    """Return the address of a compiled function, or None for any other object.

    Numba's ``cfunc``, functions of cffi and ctypes, and addresses as integers are compiled.
    """
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if isinstance(function, _OF_CTYPES):
        return ctypes.cast(function, _POINTER).value  # type: ignore[arg-type]
    if type(function).__module__ == "_cffi_backend":
        return int(import_module("cffi").FFI().cast("intptr_t", function))
    address = getattr(function, "address", None)  # Numba's
    return int(address) if isinstance(address, int) and hasattr(function, "ctypes") else None


def data_address(data: object) -> int:
    """Return the address of the data that a compiled function gets; 0 for None."""
    if data is None:
        return 0
    if isinstance(data, np.ndarray):
        return int(data.ctypes.data)
    found = address_of(data)
    if found is None:
        raise InvalidArgument(
            f"data: expected an array of NumPy or an address as an integer, got "
            f"{type(data).__name__}"
        )
    return found


def call(function: int, x: Numbers, rows: int, data: int) -> Numbers:
    """Return the image of a vector of the function's dtype."""
    x = np.ascontiguousarray(x)
    y = np.empty(rows, x.dtype)
    _PROTOTYPE(function)(x.ctypes.data, y.ctypes.data, x.size, rows, data or None)
    return y
