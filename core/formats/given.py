"""Arguments of constructors: the target executor, the owner of the memory, and the shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import is_narrow
from ..errors import InvalidArgument, InvalidMatrix, UnsupportedDtype
from ..linop import LinOp
from ..operands import home, is_host, to_host
from ..provided import Provided
from ..registry import executor as executor_by_name
from ..registry import executor_owning, get_default_executor
from ..small_values import as_dtype

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .base import Matrix

#: Upper bound of rows and columns: they are int64 numbers, and pointers need one more element.
_LARGEST = int(np.iinfo(np.int64).max) - 1


def is_of_scipy(arg: Any) -> bool:
    """Return whether an object is a sparse matrix, array or vector of SciPy."""
    return type(arg).__module__.startswith("scipy.sparse.") and hasattr(arg, "tocsr")


def same_memory(a: Array, b: Array) -> bool:
    """Return whether two host arrays share memory."""
    if a is b:
        return isinstance(a, np.ndarray)
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def refuse_narrow_in_scipy(dtype: np.dtype[Any]) -> None:
    """Raise UnsupportedDtype for 16-bit values, which SciPy's sparse matrices do not support."""
    if is_narrow(dtype):
        raise UnsupportedDtype(
            f"SciPy's sparse matrices have no values of {dtype}: "
            'A.astype("float32").to_scipy() has the same ones'
        )


def as_source(executor: Executor, values: Array, target: Array) -> Array:
    """Return native values in the dtype of ``target``, so that they can be copied to it.

    NumPy copies within an array in a correct order. A device copies all elements concurrently, and
    therefore needs a temporary copy if both arrays may share memory.
    """
    on_host = executor.xp is np
    copy = not on_host and values.size > 0 and _may_overlap(executor, values, target)
    return as_dtype(executor, values, target.dtype, copy=copy)


def _may_overlap(executor: Executor, a: Array, b: Array) -> bool:
    """Return whether two native arrays may share memory, from their first and last addresses."""
    (begin, end), (other_begin, other_end) = (_extent(executor, array) for array in (a, b))
    return begin < other_end and other_begin < end


def _extent(executor: Executor, array: Array) -> tuple[int, int]:
    begin = end = executor.address(array)
    for length, stride in zip(array.shape, array.strides, strict=True):
        begin += min(0, stride * (length - 1))
        end += max(0, stride * (length - 1))
    return begin, end + int(array.itemsize)


def place(executor: Executor | str | None, *arrays: Any) -> Executor:
    """Return the executor of a matrix made of ``arrays``: the given one, or that of the arrays.

    Host arrays go to the default executor.
    """
    if executor is not None:
        return executor_by_name(executor)
    for array in arrays:
        name = home(array)
        if name:
            return executor_owning(array, name)
    return get_default_executor()


def homeless(executor: Executor | str | None, arg: Any) -> bool:
    """Return whether a matrix made of ``arg`` has no fixed executor: host data, none given."""
    if executor is not None:
        return False
    if isinstance(arg, LinOp):
        return arg._follows
    if isinstance(arg, (tuple, list)):
        return all(homeless(None, part) for part in arg) if _holds_arrays(arg) else True
    if str(getattr(arg, "layout", "")).startswith("torch.sparse"):
        return str(arg.device) == "cpu"
    return not home(getattr(arg, "data", None)) if hasattr(arg, "tocsr") else not home(arg)


def _holds_arrays(arg: Any) -> bool:
    return len(arg) <= 3 and any(not isinstance(part, (int, float, complex)) for part in arg)


def as_held(executor: Executor, array: Array, dtype: Any = None, *, copy: bool = True) -> Array:
    """Return a native array as a matrix stores it: a copy, or itself if that is allowed.

    Parameters
    ----------
    executor : Executor
        The executor of the array.
    array : array
        The array, which may be the caller's.
    dtype : dtype, optional
        The dtype of the matrix; by default, the dtype of the array.
    copy : bool
        Whether the array must be copied. It is copied anyway if kernels cannot read it in place, or
        if new values cannot be written to it.
    """
    if dtype is not None and array.dtype != dtype:
        return as_dtype(executor, array, dtype, copy=True)
    readable = array.flags.c_contiguous and getattr(array.flags, "writeable", True)
    return array if readable and not copy else executor.copy(array)


def owned_array(
    executor: Executor, checked: np.ndarray[Any, Any], source: Any, *, copy: bool = True
) -> Array:
    """Return a host array as a native array that nothing else writes to.

    Parameters
    ----------
    executor : Executor
        The target executor.
    checked : numpy.ndarray
        The array made from ``source``; it may share its memory, or be a copy already.
    source : array or sequence
        The caller's argument, which the caller may change later.
    copy : bool
        If False, the memory may remain the caller's; see :func:`as_held`.
    """
    array = executor.from_host(checked)
    if not isinstance(array, np.ndarray) or is_new(array, source):
        return array
    return as_held(executor, array, copy=copy)


def is_new(array: Array, source: Any) -> bool:
    """Return whether a native array that was made from ``source`` has its own memory."""
    if not isinstance(array, np.ndarray):
        return is_host(source)  # copied to the device
    if isinstance(source, (list, tuple)) or home(source):
        return True
    return not same_memory(array, to_host(source))


def is_coordinates(arg: Any) -> bool:
    """Return whether ``arg`` is a pair ``(data, (row, col))``."""
    if not (isinstance(arg, tuple) and len(arg) == 2):
        return False
    return isinstance(arg[1], (tuple, list, np.ndarray)) and len(arg[1]) == 2


def checked_shape(shape: Any) -> tuple[int, int]:
    """Return ``shape`` as two nonnegative integers, or raise InvalidMatrix."""
    try:
        rows, columns = shape
        if int(rows) != rows or int(columns) != columns:
            raise ValueError
        if not 0 <= rows <= _LARGEST or not 0 <= columns <= _LARGEST:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidMatrix(
            "shape: expected two non-negative integers (rows, columns) of 64 bits, got "
            f"{shape!r}{_shape_remedy(shape)}"
        ) from None
    return int(rows), int(columns)


def _shape_remedy(shape: Any) -> str:
    """Return the remedy for something that is no shape, or ""."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not all(isinstance(size, (int, np.integer)) for size in sizes):
        return ""
    if any(size < 0 for size in sizes):
        return "; 'shape' elements cannot be negative"  # SciPy's words
    return f"; a square matrix has the shape ({sizes[0]}, {sizes[0]})" if len(sizes) == 1 else ""


def check_axes(axes: Any) -> None:
    """Raise InvalidArgument unless the axes of a transpose are None or (1, 0)."""
    if axes is not None and axes != (1, 0):
        raise InvalidArgument(f"transpose: expected axes (1, 0) or None, got {axes!r}")


@Provided
def is_sparse(arg: object) -> bool:
    """Return whether an object is a sparse matrix; :mod:`.other_libraries` provides it."""
    raise NotImplementedError


@Provided
def matrix_of(arg: Any, executor: Executor | str | None, *, copy: bool = True) -> Matrix:
    """Return an object as a matrix; :mod:`.other_libraries` provides it."""
    raise NotImplementedError


@Provided
def coordinates_in_any_order(
    arg: Any, shape: Any, executor: Executor | str | None
) -> Matrix | None:
    """Return coordinates for a conversion, or None; :mod:`.coo` provides it."""
    raise NotImplementedError


def converted(
    arg: Any,
    format: str,
    shape: Any,
    executor: Executor | str | None,
    *,
    copy: bool | None = None,
    **options: Any,
) -> Any:
    """Return a constructor's argument in its format; a given shape must match.

    With ``copy=False``, an argument in this format may share memory with the result. With
    ``copy=True``, the result shares no memory with any argument. By default operators share memory,
    and arrays do not.

    Raises
    ------
    InvalidMatrix
        If ``shape`` differs from the shape of the matrix.
    """
    entries = None if format == "coo" else coordinates_in_any_order(arg, shape, executor)
    if entries is not None:
        arg, executor = entries, None
    if format == "csr" and isinstance(arg, np.ndarray) and is_narrow(arg.dtype):
        # Only Csr stores 16-bit values, and the conversion of a dense array goes through Dense.
        made = converted(arg.astype(np.float32), format, None, executor).astype(arg.dtype)
    else:
        made = matrix_of(arg, executor, copy=copy is not False).asformat(format, **options)
        if copy and isinstance(arg, LinOp):
            made = made.copy()
    require_shape(made, shape)
    return made


def require_shape(matrix: LinOp, shape: Any) -> None:
    """Raise InvalidMatrix if a shape was given and the matrix has another one."""
    if shape is not None and checked_shape(shape) != matrix.shape:
        raise InvalidMatrix(f"shape: {shape} was given for a matrix of {matrix.shape}")
