"""Conversions of vectors and blocks at the public interface.

Internally every vector is a native block of shape ``(n, k)`` with adjacent columns and any row
stride. This module converts users' arguments to blocks, and results to the shape of the arguments.
"""

from __future__ import annotations

from contextlib import suppress
from numbers import Number
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .dtypes import (
    COMPUTED,
    NUMBER_KINDS,
    common_dtype,
    is_complex,
    is_exact,
    is_narrow,
    value_dtype,
)
from .errors import (
    ExecutorMismatch,
    ExecutorUnavailable,
    InvalidArgument,
    InvalidMatrix,
    NoNumbers,
    ShapeMismatch,
    UnsupportedDtype,
)
from .registry import executor_owning
from .small_values import as_dtype
from .tracked import untracked

if TYPE_CHECKING:
    from .executor import Array, Executor
    from .linop import LinOp

# DLPack device types, from which messages derive the location of another library's array.
_DLPACK_CPU = 1
_HOST = "the host"
_DLPACK_DEVICES = {1: _HOST, 2: "cuda", 3: _HOST, 10: "hip", 13: "cuda", 14: "dpcpp"}


def is_host(array: object) -> bool:
    """Return whether ``array`` is on the host: NumPy, a sequence, or another library's CPU array.

    Raises
    ------
    InvalidArgument
        If other libraries cannot read the array's memory.
    """
    if isinstance(array, (np.ndarray, np.generic, list, tuple)):
        return True
    device = getattr(array, "__dlpack_device__", None)
    if device is None:  # such as pandas columns; operators are no arrays
        return hasattr(array, "__array__") and not hasattr(array, "matvec")
    try:
        return bool(device()[0] == _DLPACK_CPU)
    except (BufferError, RuntimeError, ValueError) as error:
        raise InvalidArgument(
            f"a {type(array).__name__} without memory that other libraries can read ({error}): "
            'pass one with values on a device, for instance array.to("cpu")'
        ) from error


def is_array(array: object) -> bool:
    """Return whether ``array`` is a number, a sequence of numbers, or any library's array."""
    return isinstance(array, (np.ndarray, list, tuple, Number)) or any(
        hasattr(array, name)
        for name in ("__array__", "__dlpack_device__", "__cuda_array_interface__")
    )


def home(array: object) -> str:
    """Return the name of the executor that owns an array's memory, or "" for the host.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.core.operands import home
    >>> home(np.ones(3))
    ''
    """
    device = getattr(array, "__dlpack_device__", None)
    if device is None or is_host(array):
        return ""
    kind, number = device()
    backend = _DLPACK_DEVICES.get(int(kind), "")
    return "" if backend in ("", _HOST) else f"{backend}:{number}"


def executor_beside(executor: Executor, *arrays: object) -> Executor | None:
    """Return the executor of the first array on another device, or None if there is none.

    It is also None if no executor here works on the device of the array.
    """
    for array in arrays:
        name = "" if executor.owns(array) else home(array)
        if name:
            with suppress(ExecutorUnavailable):
                return executor_owning(array, name)
    return None


def native(executor: Executor, array: object, label: str) -> Array:
    """Return ``array`` as a native array of ``executor``; host arrays are copied.

    Raises
    ------
    InvalidArgument
        If ``array`` is not an array.
    NoNumbers
        If its elements are not numbers.
    ExecutorMismatch
        If it is on another device.
    """
    if executor.owns(array):
        made = plain(array, label)
        if made.dtype.kind not in NUMBER_KINDS and not is_narrow(made.dtype):
            raise no_numbers(made, label)
        # An instance of a subclass may be native here.
        return made if made is array or executor.owns(made) else array
    array = untracked(array, label)
    if is_host(array):
        host = _as_numpy(array, label)
        if host.dtype.kind not in NUMBER_KINDS:
            if is_narrow(host.dtype):  # bfloat16, no number to NumPy
                value_dtype(host.dtype)  # raises
            raise no_numbers(host, label)
        return executor.from_host(host)
    if not hasattr(array, "__dlpack_device__"):
        raise InvalidArgument(
            f"{label}: expected an array, got {type(array).__name__}{_as_array(array)}"
        )
    return aligned(executor, _adopted(executor, array, label))


def _as_array(array: object) -> str:
    """Return the hint of an error on how to convert an operand to an array, or ""."""
    if isinstance(array, (str, PathLike)):
        return (
            f"; {str(array)!r} is no array: wl.read(file) reads a matrix, and "
            "wl.io.read_vector(file) a vector"
        )
    if not hasattr(array, "toarray"):
        return ""
    shape: tuple[int, ...] = getattr(array, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        return "; .toarray()[:, 0] is its column, and wl.io.read_vector reads a file as a vector"
    return "; make it dense with .toarray()"


def aligned(executor: Executor, array: Array) -> Array:
    """Return an array of the executor's device, or an aligned copy if kernels need it."""
    return array if executor.owns(array) else executor.copy(array)


def native_in_place(executor: Executor, array: object, label: str) -> Array:
    """Return an array on the executor's device as a native array that shares its memory.

    Raises
    ------
    InvalidArgument
        If kernels cannot write to the array because its elements are not aligned.
    ExecutorMismatch
        If it is on another device.
    """
    if executor.owns(array):
        return array
    adopted = _adopted(executor, untracked(array, label), label)
    if not executor.owns(adopted):
        raise InvalidArgument(
            f"{label}: the elements of this array begin at addresses that are no multiples of "
            f"their {adopted.dtype.itemsize} bytes; pass an aligned array"
        )
    return adopted


def _adopted(executor: Executor, array: Any, label: str) -> Array:
    adopted = executor.adopt(array)
    if adopted is None:
        where = _DLPACK_DEVICES.get(array.__dlpack_device__()[0], "another device")
        raise ExecutorMismatch(
            f"{label}: the operator lives on {executor.name} and the array on {where}; "
            "move one of them"
        )
    return adopted


def new_values(
    executor: Executor, data: object, shape: tuple[int, ...], dtype: np.dtype[Any], kind: str
) -> Array:
    """Return the array of a value update as a native array with the required shape and kind.

    Raises
    ------
    InvalidMatrix
        If the shape differs, if complex values would become real, or if fractions would become
        integers.
    """
    values = native(executor, data, "data")
    if tuple(values.shape) != shape:
        raise InvalidMatrix(
            f"update_values: expected data of shape {shape}, got {tuple(values.shape)}"
        )
    if is_complex(values.dtype) and not is_complex(dtype):
        raise InvalidMatrix(f"update_values: complex values do not fit a {dtype} {kind}")
    if is_exact(dtype) and not np.can_cast(values.dtype, dtype, "same_kind"):
        raise InvalidMatrix(
            f"update_values: {values.dtype} values do not fit a {dtype} {kind}; "
            f"A.astype({str(values.dtype)!r}) holds them"
        )
    return values


def no_numbers(array: Array, label: str) -> NoNumbers:
    """Return the error for an array of texts, dates, objects or records."""
    return NoNumbers(
        f"{label}: expected numbers, got an array of dtype {array.dtype}, which is not supported"
    )


def fits(operator: LinOp, x: object) -> bool:
    """Return whether kernels of an operator can read the NumPy vector ``x`` without conversion.

    This is the most frequent case, and the product of a small matrix takes less time than separate
    checks of its operands.
    """
    return (
        type(x) is np.ndarray
        and x.dtype == operator.dtype
        and x.dtype in COMPUTED
        and x.shape == operator.shape[1:]
        and x.flags.c_contiguous
        and operator.executor.owns(x)
    )


def may_overlap(a: Array, b: Array) -> bool:
    """Return whether two arrays may share memory; only NumPy arrays can be tested."""
    if a is b:
        return True
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def plain(array: Any, label: str) -> Any:
    """Return an instance of a NumPy subclass as a NumPy array; other arrays are unchanged.

    Subclasses have their own arithmetic, which compiled kernels do not implement: ``numpy.matrix``
    always has two dimensions, and masked arrays leave out elements.

    Raises
    ------
    InvalidArgument
        If elements of a masked array are masked.
    """
    if type(array) is np.ndarray or not isinstance(array, np.ndarray):
        return array
    if np.ma.is_masked(array):
        raise InvalidArgument(
            f"{label}: elements of this masked array are masked; replace them with "
            ".filled(0), or take .data"
        )
    return np.asarray(array)


def _as_numpy(array: Any, label: str) -> np.ndarray[Any, Any]:
    array = untracked(plain(array, label), label)
    try:
        if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
            return np.from_dlpack(array)
        return np.asarray(array)
    # sequences of different lengths; arrays that refuse to be shared
    except (ValueError, BufferError, RuntimeError) as error:
        # DLPack raises one of these for bfloat16 and narrower types, depending on NumPy's version.
        narrow = isinstance(error, RuntimeError) or "nsupported dtype" in str(error)
        if not narrow:
            raise InvalidArgument(f"{label}: not an array of numbers: {error}") from None
        raise UnsupportedDtype(
            f"{label}: NumPy has no {array.dtype}; convert the array, or use wollemi.interop.torch"
        ) from None


def as_block(executor: Executor, array: object, rows: int, label: str) -> Array:
    """Return ``array`` of shape ``(rows,)`` or ``(rows, k)`` as a native ``(rows, k)`` block.

    A native array is copied only if its columns are not adjacent.
    """
    return block_of(executor, native(executor, array, label), rows, label)


def block_of(
    executor: Executor, block: Array, rows: int, label: str, beside: DTypeLike = np.float64
) -> Array:
    """Return a native array as :func:`as_block` does; integers are converted for ``beside``."""
    dimensions = block.ndim
    if dimensions not in (1, 2) or block.shape[0] != rows:
        raise ShapeMismatch(
            f"{label}: expected shape ({rows},) or ({rows}, k), got {tuple(block.shape)}"
        )
    if block.dtype not in COMPUTED:
        block = as_dtype(executor, block, common_dtype(beside, block.dtype))
    if dimensions == 1:
        if block.strides[0] == block.itemsize:
            return block.reshape(rows, 1)
        block = block[:, None]
    return block if has_block_layout(block) else executor.copy(block)


def as_column(array: Array) -> Array:
    """Return a two-dimensional view of ``array``: a vector becomes a column."""
    if array.ndim != 1:
        return array
    if array.strides[0] == array.itemsize:  # twice as fast as indexing in CuPy
        return array.reshape(array.shape[0], 1)
    return array[:, None]


def as_batch(array: Array) -> Array:
    """Return a view of ``array`` as a batch of one; CuPy's indexing takes twice as long."""
    return array.reshape((1, *array.shape))


def has_block_layout(block: Array) -> bool:
    """Return whether kernels accept ``block``: adjacent columns, rows that do not overlap."""
    rows, columns = block.shape
    item = block.dtype.itemsize
    if rows == 0 or columns == 0:
        return True
    return (columns == 1 or block.strides[1] == item) and (
        rows == 1 or (block.strides[0] >= columns * item and block.strides[0] % item == 0)
    )


class OutputTarget:
    """A user's output array, in a form that kernels can write.

    Parameters
    ----------
    executor : Executor
        The executor that computes the result.
    out : array
        The user's array: a native array of the executor, a NumPy array, or another library's array
        that shares its memory through DLPack. Any other array would have to be copied, and the
        result would be lost.
    shape : tuple of int
        Shape of the result.

    Attributes
    ----------
    array : native array
        ``out`` itself, or a copy on the executor; its dtype is always one of NumPy's.

    Raises
    ------
    InvalidArgument, ShapeMismatch, ExecutorMismatch
        Before any computation.
    """

    def __init__(self, executor: Executor, out: Any, shape: tuple[int, ...]) -> None:
        found, owned = getattr(out, "shape", None), executor.owns(out)
        self._executor = executor
        self._host: np.ndarray[Any, Any] | None = None
        on_host = isinstance(out, np.ndarray)
        if not isinstance(found, tuple) or not (
            owned or on_host or hasattr(out, "__dlpack_device__")
        ):
            raise InvalidArgument(f"out: expected an array to write to, got {type(out).__name__}")
        if found != shape:
            raise ShapeMismatch(f"out: expected shape {shape}, got {tuple(found)}")
        if type(out) is np.ndarray and owned and out.flags.carray and out.dtype.isnative:
            self.array: Array = out
        elif on_host or (not owned and is_host(out)):
            self.array = self._on_executor(_as_numpy(out, "out"))
        else:
            self.array = native_in_place(executor, out, "out")

    def _on_executor(self, host: np.ndarray[Any, Any]) -> Array:
        if not host.flags.writeable:
            raise InvalidArgument("out: this array is read-only; pass one that can be written to")
        if host.flags.aligned and host.dtype.isnative and self._executor.owns(host):
            return host
        if host.dtype.hasobject or host.dtype.kind in "SUMm":
            return host  # devices have no such dtype; the check of the dtype refuses it
        self._host = host
        return self._executor.from_host(np.require(host, host.dtype.newbyteorder("="), "A"))

    def require(self, dtype: np.dtype[Any]) -> None:
        """Raise InvalidArgument unless ``out`` can store a result of ``dtype`` unchanged."""
        if self.array.dtype != dtype:
            raise InvalidArgument(
                f"out: expected dtype {dtype} (that of the result) or one that holds its values, "
                f"got {self.array.dtype}"
            )

    def holding(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the array; it must store a result of ``dtype`` without loss."""
        asked: np.dtype[Any] = self.array.dtype
        if asked is dtype:
            return asked
        if asked not in COMPUTED or common_dtype(dtype, asked) != asked:
            self.require(dtype)
        return asked

    def finish(self) -> None:
        """Copy the contents of ``array`` to the user's array."""
        if self._host is not None:
            self._host[...] = self._executor.to_host(self.array)


def dimensions(array: Any) -> int:
    """Return the number of dimensions of an array or a sequence."""
    found = getattr(array, "ndim", None)
    if isinstance(found, (int, np.integer)):
        return int(found)
    return 0 if isinstance(array, Number) else _as_numpy(array, "the operand").ndim


def like(executor: Executor, block: Array, operand: object) -> Array:
    """Return ``block`` with the dimensions of ``operand``, as NumPy if that is on the host."""
    one = operand.ndim == 1 if type(operand) is np.ndarray else dimensions(operand) == 1
    if one:
        block = block.reshape(-1) if block.shape[1] == 1 else block[:, 0]
    if not executor.owns(operand) and is_host(operand):
        return executor.to_host(block)
    return block


def to_host(array: Any) -> np.ndarray[Any, Any]:
    """Return any library's array as NumPy; checks of a matrix's arrays use this."""
    if isinstance(array, np.ndarray):
        host: np.ndarray[Any, Any] = plain(array, "array")
        return host
    if hasattr(array, "get") and hasattr(array, "__cuda_array_interface__"):
        return np.asarray(array.get())
    if hasattr(array, "asnumpy"):  # arrays of wollemi on SYCL devices, and of dpnp
        return np.asarray(array.asnumpy())
    if hasattr(array, "detach"):
        return np.asarray(array.detach().cpu().resolve_conj().resolve_neg())
    return _as_numpy(array, "array")
