"""A thin array over USM memory with the methods that solvers and conversions need.

It has a shape, a dtype and strides like NumPy's arrays, and views need no copy. Kernels do the
arithmetic of solvers. NumPy does the rest (an ``astype``, a conversion between formats: work that
happens once) on a copy on the host, so any NumPy function takes these arrays; the result is again
an array of the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from . import dlpack
from .place import Place, contiguous_strides, host_address
from .pool import UsmBlock


class UsmArray(NDArrayOperatorsMixin):
    """An array in the memory of a SYCL device.

    Parameters
    ----------
    place : Place
        The device and its queue.
    memory : object
        The owner of the memory: a dpctl memory object, or another library's array.
    address : int
        Address of the first element.
    shape : tuple of int
        Number of elements along each axis.
    dtype : numpy.dtype
        Any dtype of fixed size.
    strides : tuple of int, optional
        Bytes between adjacent elements along each axis; C-contiguous by default.

    Attributes
    ----------
    pointer : int
        The address of the first element.
    """

    __slots__ = ("dtype", "memory", "place", "pointer", "shape", "strides")

    def __init__(
        self,
        place: Place,
        memory: Any,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.place, self.memory, self.pointer = place, memory, address
        self.shape, self.dtype = shape, dtype
        self.strides = contiguous_strides(shape, dtype.itemsize) if strides is None else strides

    # ---- making

    @classmethod
    def empty(cls, place: Place, shape: tuple[int, ...], dtype: DTypeLike) -> UsmArray:
        """Return an uninitialized C-contiguous array."""
        dtype = np.dtype(dtype)
        memory = place.allocate(math.prod(shape) * dtype.itemsize)
        return cls(place, memory, memory.address, tuple(map(int, shape)), dtype)

    @classmethod
    def of(cls, place: Place, array: Any) -> UsmArray:
        """Return a C-contiguous copy of a NumPy array."""
        host = np.asarray(array)
        result = cls.empty(place, host.shape, host.dtype.newbyteorder("="))
        result.write(host)
        return result

    # ---- facts

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> SimpleNamespace:
        """Memory layout: ``flags.c_contiguous``."""
        return SimpleNamespace(c_contiguous=self._is_contiguous())

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """The interface through which dpctl and dpnp create an array without a copy."""
        item = self.dtype.itemsize
        self._export_memory()
        return {
            "data": (self.pointer, False),
            "shape": self.shape,
            "strides": tuple(stride // item for stride in self.strides),
            "typestr": self.dtype.str,
            "version": 1,
            "syclobj": self.place.queue,
            "offset": 0,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type of SYCL devices, and the number of this device."""
        return dlpack.ONEAPI, self.place.number

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Wait for pending work on the array, and return a capsule that shares its memory.

        Parameters
        ----------
        stream : object, optional
            The consumer's queue. It is ignored: the consumer does not have to wait.
        max_version : tuple of int, optional
            The version of the protocol that the consumer supports.
        dl_device : tuple of int, optional
            The device that the consumer wants; the host, ``(1, 0)``, gets a copy.
        copy : bool, optional
            True requires a copy; False forbids one.

        Raises
        ------
        BufferError
            If the consumer wants another device, or if a copy is needed but forbidden.
        """
        here = self.__dlpack_device__()
        wanted = here if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if wanted == (dlpack.CPU, 0) and copy is not False:
            return self.asnumpy().__dlpack__(max_version=max_version)
        if wanted != here:
            raise BufferError(
                f"an array of DLPack's device {here} is not on device {wanted}"
                + (" without a copy" if wanted == (dlpack.CPU, 0) else "")
            )
        shared = self.copy() if copy else self
        shared._export_memory()
        self.place.wait()
        versioned = max_version is not None and max_version[0] >= dlpack.VERSION[0]
        return dlpack.capsule(shared, here, versioned, bool(copy))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"UsmArray({self.asnumpy()!r}, {self.place.device.filter_string})"

    def _export_memory(self) -> None:
        """Exclude the memory from the pool permanently: another library will refer to it."""
        if isinstance(self.memory, UsmBlock):
            self.memory.export()

    def _is_contiguous(self) -> bool:
        wanted = contiguous_strides(self.shape, self.dtype.itemsize)
        return self.size == 0 or all(
            extent == 1 or have == want
            for extent, have, want in zip(self.shape, self.strides, wanted, strict=True)
        )

    # ---- views

    def __getitem__(self, key: Any) -> Any:
        """Return a view for integers, slices and None; other keys copy through the host."""
        if not _is_basic(key):
            return self._back(self.asnumpy()[_on_host(key)])
        view = self._basic(key)
        return view if view.ndim or key is Ellipsis or key == () else view.asnumpy()[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        if _is_basic(key):
            self._basic(key).write(_on_host(value))
            return
        host = self.asnumpy()
        host[_on_host(key)] = _on_host(value)
        self.write(host)

    def _basic(self, key: Any) -> UsmArray:
        parts = key if isinstance(key, tuple) else (key,)
        # with an ellipsis, NumPy returns a view even for one element, and reads nothing
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)
        shadow = self._shadow()
        view = shadow[parts]
        offset = host_address(view) - host_address(shadow) if view.size else 0
        return UsmArray(
            self.place, self.memory, self.pointer + offset, view.shape, self.dtype, view.strides
        )

    def reshape(self, *shape: Any) -> UsmArray:
        """Return a view of another shape, or a copy if no view is possible."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if wanted == (1, *self.shape) and self.ndim:  # a batch of one array, with any strides
            strides = (self.shape[0] * self.strides[0], *self.strides)
            return UsmArray(self.place, self.memory, self.pointer, wanted, self.dtype, strides)
        if not self._is_contiguous():
            return self.copy().reshape(wanted)
        known = math.prod(extent for extent in wanted if extent != -1)
        full = tuple(int(self.size // max(known, 1) if e == -1 else e) for e in wanted)
        if math.prod(full) != self.size or wanted.count(-1) > 1:
            raise ValueError(f"an array of shape {self.shape} does not take shape {wanted}")
        return UsmArray(self.place, self.memory, self.pointer, full, self.dtype)

    @property
    def T(self) -> UsmArray:
        """The transpose, as a view."""
        return UsmArray(
            self.place, self.memory, self.pointer, self.shape[::-1], self.dtype, self.strides[::-1]
        )

    def transpose(self, *axes: int) -> UsmArray:
        """Return a view with permuted axes; the default reverses them."""
        order = axes or range(self.ndim)[::-1]
        return UsmArray(
            self.place, self.memory, self.pointer, tuple(self.shape[a] for a in order), self.dtype,
            tuple(self.strides[a] for a in order),
        )  # fmt: skip

    def _shadow(self) -> np.ndarray[Any, Any]:
        """Return a NumPy array of equal layout to compute views with; its elements are invalid."""
        # only one byte of memory backs it; strides reach beyond it, but nothing reads there
        return np.lib.stride_tricks.as_strided(
            np.empty(1, self.dtype), self.shape, self.strides, writeable=False
        )

    # ---- moving

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Return a NumPy copy of the elements."""
        if self._is_contiguous():
            host = np.empty(self.shape, self.dtype)
            self.place.copy(host_address(host), self.pointer, self.nbytes)
            return host
        return np.array(self._span()[1])

    def write(self, values: Any) -> None:
        """Overwrite the elements with a host array, which is broadcast and converted."""
        host = np.asarray(values)
        if self._is_contiguous():
            if host.shape != self.shape:
                host = np.broadcast_to(host, self.shape)
            source = np.ascontiguousarray(host, self.dtype)
            self.place.copy(self.pointer, host_address(source), self.nbytes)
            return
        block, view = self._span()
        view[...] = host
        self.place.copy(self._low(), host_address(block), block.nbytes)

    def assign(self, source: UsmArray) -> None:
        """Overwrite the elements with an array of the same device, shape and dtype."""
        if self._is_contiguous() and source._is_contiguous():
            self.place.copy(self.pointer, source.pointer, self.nbytes)
        else:
            self.write(source.asnumpy())

    def copy(self) -> UsmArray:
        """Return a C-contiguous copy."""
        result = UsmArray.empty(self.place, self.shape, self.dtype)
        result.assign(self)
        return result

    def _low(self) -> int:
        return self.pointer + sum(
            min(0, stride * (extent - 1))
            for stride, extent in zip(self.strides, self.shape, strict=True)
        )

    def _span(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return a host copy of all bytes from first to last element, and the view in it."""
        low = self._low()
        extent = self.dtype.itemsize + sum(
            abs(stride) * (n - 1) for stride, n in zip(self.strides, self.shape, strict=True)
        )
        block = np.empty(extent if self.size else 0, np.uint8)
        self.place.copy(host_address(block), low, block.nbytes)
        view = np.ndarray(self.shape, self.dtype, block, self.pointer - low, self.strides)
        return block, view

    # ---- arithmetic, on the host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Raise an error: implicit copies between devices are not allowed."""
        raise TypeError(
            "an array of a SYCL device does not become NumPy's by itself; use .asnumpy()"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        host = [_on_host(value) for value in inputs]
        result = getattr(ufunc, method)(*host, **{k: _on_host(v) for k, v in options.items()})
        if method == "at":
            inputs[0].write(host[0])
            return None
        if out is not None:
            out[0][...] = result
            return out[0]
        return self._back(result)

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, options: dict[str, Any]
    ) -> Any:
        made = UsmArray._shadow if function in _OF_LAYOUT else UsmArray.asnumpy
        host = {name: _on_host(value, made) for name, value in options.items()}
        return self._back(function(*_on_host(arguments, made), **host))

    def _back(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(self._back(part) for part in result)
        return UsmArray.of(self.place, result) if isinstance(result, np.ndarray) else result

    def astype(self, dtype: DTypeLike, copy: bool = True) -> UsmArray:
        """Return a copy converted to ``dtype``; with ``copy=False``, self if the dtype matches."""
        if self.dtype == np.dtype(dtype):
            return self.copy() if copy else self
        return UsmArray.of(self.place, self.asnumpy().astype(dtype))

    def view(self, dtype: DTypeLike) -> UsmArray:
        """Return the same memory reinterpreted as another dtype of equal size."""
        made = np.dtype(dtype)
        if made.itemsize != self.dtype.itemsize:
            raise ValueError(f"a view of {self.dtype} as {made}: the sizes differ")
        return UsmArray(self.place, self.memory, self.pointer, self.shape, made, self.strides)

    def conj(self) -> UsmArray:
        """Return the complex conjugate."""
        return UsmArray.of(self.place, self.asnumpy().conj())

    @property
    def real(self) -> UsmArray:
        """The real part, a copy."""
        return UsmArray.of(self.place, self.asnumpy().real)

    @property
    def imag(self) -> UsmArray:
        """The imaginary part, a copy."""
        return UsmArray.of(self.place, self.asnumpy().imag)

    def max(self, axis: int | None = None) -> Any:
        """Return the largest element, or the largest ones along an axis."""
        return self._back(self.asnumpy().max(axis=axis))

    def min(self, axis: int | None = None) -> Any:
        """Return the smallest element, or the smallest ones along an axis."""
        return self._back(self.asnumpy().min(axis=axis))

    def all(self, axis: int | None = None) -> Any:
        """Return whether all elements are true, or all along an axis."""
        return self._back(self.asnumpy().all(axis=axis))

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of the elements, or the sums along an axis."""
        return self._back(self.asnumpy().sum(axis=axis))

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.asnumpy().item()

    def tolist(self) -> Any:
        """Return the elements as nested Python lists."""
        return self.asnumpy().tolist()

    def __bool__(self) -> bool:
        return bool(self.asnumpy())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        index: int = self.asnumpy().item().__index__()
        return index


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None
        or part is Ellipsis
        or (isinstance(part, (slice, int, np.integer)) and not isinstance(part, bool))
        for part in parts
    )


#: NumPy functions that need only the shape or the dtype. When elements were copied for them,
#: ``np.ndim`` took 0.8 ms of the 2.7 ms of a product with 100^3 rows.
_OF_LAYOUT = frozenset((np.iscomplexobj, np.isrealobj, np.ndim, np.shape, np.size))


def _on_host(value: Any, convert: Callable[[UsmArray], Any] = UsmArray.asnumpy) -> Any:
    if isinstance(value, UsmArray):
        return convert(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_on_host(part, convert) for part in value)
    return value


class Namespace:
    """NumPy's functions, for arrays of one device.

    It serves structural work that is done once, such as a conversion between formats. Functions of
    arrays are NumPy's own, which :class:`UsmArray` evaluates on the host. Functions that create
    arrays allocate them on the device.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    @staticmethod
    def ascontiguousarray(array: UsmArray) -> UsmArray:
        """Return a C-contiguous array; ``array`` itself if it is contiguous already."""
        return array if array._is_contiguous() else array.copy()

    @staticmethod
    def broadcast_to(array: UsmArray, shape: tuple[int, ...]) -> UsmArray:
        """Return a view that repeats elements along new axes and axes of length one."""
        view = np.broadcast_to(array._shadow(), shape)
        return UsmArray(
            array.place, array.memory, array.pointer, view.shape, array.dtype, view.strides
        )

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name not in ("arange", "array", "asarray", "empty", "eye", "full", "ones", "zeros"):
            return found

        def made(*arguments: Any, **options: Any) -> UsmArray:
            return UsmArray.of(self._place, found(*_on_host(arguments), **options))

        return made
