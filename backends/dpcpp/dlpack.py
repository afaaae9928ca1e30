"""Exchange memory of SYCL devices with other libraries through DLPack, without copies.

Both the versioned (from 1.0 on) and the unversioned form of the protocol are supported. dpctl had
this code until its tensors moved to dpnp (0.22), so the structures are declared here with
:mod:`ctypes`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from sys import is_finalizing
from typing import Any, NamedTuple

import numpy as np

from .shim import capsule as new_capsule
from .shim import shim

#: DLPack's device types of the host and of SYCL devices.
CPU, ONEAPI = 1, 14

#: The version that is written; versions with the same major number are read.
VERSION = (1, 0)

_READ_ONLY, _IS_COPIED = 1, 2

#: Kinds of NumPy dtypes by DLPack's codes; bfloat16 is not a NumPy kind.
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_BFLOAT = 4
_CODES = {kind: code for code, kind in _KINDS.items()}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


# Name of the capsule, its name after consumption, and its structure. Capsules do not copy names.
_PLAIN = (b"dltensor", b"used_dltensor", _Managed)
_WITH_VERSION = (b"dltensor_versioned", b"used_dltensor_versioned", _Versioned)
_FORMS = (_WITH_VERSION, _PLAIN)

_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_python = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _python)
)
_keep = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", _python))


class _Export:
    """An array and the structures that describe it; lives until the consumer calls the deleter."""

    def __init__(self, array: Any, device: tuple[int, int], versioned: bool, copied: bool) -> None:
        self.array = array
        self.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        item = array.dtype.itemsize
        self.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // item for s in array.strides))
        made = self.managed = (_Versioned if versioned else _Managed)()
        if versioned:
            made.major, made.minor = VERSION
            made.flags = _IS_COPIED if copied else 0
        made.context = id(self)
        made.deleter = _address("wl_dlpack_delete_versioned" if versioned else "wl_dlpack_delete")
        tensor = made.tensor
        tensor.data, tensor.ndim = array.pointer, array.ndim
        tensor.device_type, tensor.device_id = device
        tensor.code, tensor.bits = _code(array.dtype)
        tensor.lanes, tensor.shape, tensor.strides = 1, self.shape, self.strides


def _code(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return DLPack's type code and number of bits of a dtype."""
    bits = 8 * dtype.itemsize
    if dtype.name == "bfloat16":
        return _BFLOAT, bits
    if dtype.kind not in _CODES:
        raise BufferError(f"DLPack has no name for {dtype}")
    return _CODES[dtype.kind], bits


def _dtype(tensor: _Tensor) -> np.dtype[Any] | None:
    """Return the NumPy dtype of a tensor, or None if NumPy has none."""
    if tensor.lanes != 1:
        return None
    if tensor.code == _BFLOAT and tensor.bits == 16:
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            return None
        return np.dtype(bfloat16)
    kind = _KINDS.get(tensor.code)
    return None if kind is None else np.dtype(f"{kind}{tensor.bits // 8}")


def capsule(array: Any, device: tuple[int, int], versioned: bool, copied: bool) -> Any:
    """Return a capsule that shares an array's memory.

    Parameters
    ----------
    array : UsmArray
        The array; it stays alive as long as the consumer needs it.
    device : tuple of int
        DLPack's type and number of the device.
    versioned : bool
        Whether the consumer supports version 1.
    copied : bool
        Whether the array is a copy; the consumer is told.

    Raises
    ------
    BufferError
        If DLPack does not support the dtype.
    """
    export = _Export(array, device, versioned, copied)
    name = (_WITH_VERSION if versioned else _PLAIN)[0]
    result = new_capsule(ctypes.addressof(export.managed), name, _address("wl_dlpack_unused"))
    _keep(export)  # until the consumer calls the deleter
    return result


def _address(function: str) -> int | None:
    return ctypes.cast(getattr(shim(), function), ctypes.c_void_p).value


class _Import:
    """Owns another library's memory until it is released."""

    def __init__(self, address: int, deleter: int | None) -> None:
        self._address, self._deleter = address, deleter

    def __del__(self, python_ends: Callable[[], bool] = is_finalizing) -> None:
        if self._deleter and not python_ends():
            _Deleter(self._deleter)(self._address)


class Taken(NamedTuple):
    """Another library's tensor.

    Attributes
    ----------
    owner : object
        Keeps the memory alive.
    address : int
        Address of the first element.
    shape : tuple of int
        Number of elements along each axis.
    strides : tuple of int or None
        Bytes between adjacent elements along each axis; None means C-contiguous.
    dtype : numpy.dtype
        The dtype of the elements.
    read_only : bool
        Whether the producer forbids writing.
    """

    owner: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any]
    read_only: bool


def take(array: Any) -> Taken | None:
    """Return the contents of an array's ``__dlpack__`` capsule, or None if it cannot be read."""
    try:
        given = array.__dlpack__(max_version=VERSION)
    except TypeError:  # the producer implements a protocol before version 1
        given = array.__dlpack__()
    for name, used, form in _FORMS:
        if not _is_valid(given, name):
            continue
        address = _pointer(given, name)
        managed: Any = form.from_address(address)
        tensor: _Tensor = managed.tensor
        dtype = _dtype(tensor)
        if getattr(managed, "major", VERSION[0]) != VERSION[0] or dtype is None:
            return None
        _rename(given, used)
        axes = range(tensor.ndim)
        return Taken(
            _Import(address, managed.deleter),
            int(tensor.data or 0) + int(tensor.byte_offset),
            tuple(tensor.shape[axis] for axis in axes),
            tuple(tensor.strides[axis] * dtype.itemsize for axis in axes)
            if tensor.strides
            else None,
            dtype,
            bool(getattr(managed, "flags", 0) & _READ_ONLY),
        )
    return None
