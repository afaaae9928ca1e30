"""Compiled host functions as functions of operators.

A compiled function has the signature ::

    void f(const T *x, T *y, int64_t n, int64_t m, void *data)

It sets ``y``, of ``m`` elements, to the image of ``x``, of ``n`` elements. ``T`` is the dtype of
the operator; a complex number is a pair of real ones. The function may be called on any thread,
without Python's global interpreter lock.
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


#: No function lies in the first page of memory, which is never mapped.
FIRST_PAGE = 4096


def address_of(function: object) -> int | None:
    """Return the address of a compiled function, or None for any other object.

    Compiled functions are Numba's ``cfunc``, functions of cffi and ctypes, and addresses as
    integers.
    """
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if isinstance(function, _OF_CTYPES):
        return ctypes.cast(function, _POINTER).value  # type: ignore[arg-type]
    if type(function).__module__ == "_cffi_backend":
        return int(import_module("cffi").FFI().cast("intptr_t", function))
    address = getattr(function, "address", None)  # Numba's
    return int(address) if isinstance(address, int) and hasattr(function, "ctypes") else None


def check_compiled(function: object, dtype: np.dtype[Any], name: str) -> None:
    """Raise an error if a compiled function has a wrong signature, or no address.

    Raises
    ------
    InvalidArgument
        If the signature differs from the one of this module for the dtype. Addresses have no
        signature.
    """
    address = address_of(function)
    if address is None:
        return
    if address < FIRST_PAGE:
        raise InvalidArgument(
            f"{name}: expected a function or the address of a compiled function, got {address}"
        )
    found = _parameters(function)
    number = np.dtype(dtype).name
    part = {"complex64": "float32", "complex128": "float64"}.get(number, number)
    pointers = (f"{number} *", f"{part} *", "void *")
    fits = found is None or (
        len(found) == 5
        and all(one in pointers for one in found[:2])
        and found[2:4] == ["int64", "int64"]
        and found[4].endswith("*")
    )
    if not fits and found is not None:
        raise InvalidArgument(
            f"{name}: the compiled function takes ({', '.join(found)}), and an operator of "
            f"{number} needs ({number} *x, {number} *y, int64 n, int64 m, void *data); compile it "
            "for that, or give dtype="
        )


def _parameters(function: Any) -> list[str] | None:
    """Return the types of the parameters of a compiled function, or None if they are unknown."""
    if isinstance(function, _OF_CTYPES):
        given = function.argtypes  # type: ignore[attr-defined]
        return None if given is None else [_of_ctypes(one) for one in given]
    if type(function).__module__ == "_cffi_backend":
        ffi = import_module("cffi").FFI()
        kind = ffi.typeof(function)
        kind = kind.item if kind.kind == "pointer" else kind
        return [_of_cffi(one, ffi) for one in kind.args] if kind.kind == "function" else None
    signature = getattr(function, "_sig", None)  # Numba's
    return None if signature is None else [_of_numba(one) for one in signature.args]


def _of_ctypes(kind: Any) -> str:
    if kind is ctypes.c_void_p:
        return "void *"
    if issubclass(kind, ctypes._Pointer):
        return f"{_of_ctypes(kind._type_)} *"
    try:
        return np.dtype(kind).name.replace("uint64", "int64")
    except TypeError:  # such as a function
        return str(kind.__name__)


def _of_cffi(kind: Any, ffi: Any) -> str:
    if kind.kind == "pointer":
        return "void *" if kind.item.kind == "void" else f"{_of_cffi(kind.item, ffi)} *"
    if kind.kind != "primitive":
        return str(kind.cname)
    letter = "c" if "Complex" in kind.cname else "f" if kind.cname in ("float", "double") else "i"
    return np.dtype(f"{letter}{ffi.sizeof(kind)}").name


def _of_numba(kind: Any) -> str:
    target = getattr(kind, "dtype", None)
    if target is not None:
        return f"{target} *"
    return "void *" if str(kind) == "void*" else str(kind)


def data_address(data: object) -> int:
    """Return the address of the data argument of a compiled function; 0 for None."""
    if data is None:
        return 0
    if isinstance(data, np.ndarray):
        return int(data.ctypes.data)
    result = address_of(data)
    if result is None:
        raise InvalidArgument(
            f"data: expected an array of NumPy or an address as an integer, got "
            f"{type(data).__name__}"
        )
    return result


def call(function: int, x: Numbers, rows: int, data: int) -> Numbers:
    """Return the image of a vector with the function's dtype."""
    x = np.ascontiguousarray(x)
    y = np.empty(rows, x.dtype)
    _PROTOTYPE(function)(x.ctypes.data, y.ctypes.data, x.size, rows, data or None)
    return y
