"""Arithmetic on native arrays that preserves subnormal numbers on every executor.

CuPy compiles its kernels with ``-ftz=true``: they read a subnormal float32 as zero, and flush
subnormal results to zero. A matrix of such numbers becomes a zero matrix, with different solutions.
Kernels of wollemi do not flush. Therefore this module computes single-precision values that affect
entries, scales and verdicts by operations or by their bits. On executors that do not flush, it uses
array functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .dtypes import double_dtype, is_complex, real_dtype
from .operations import precision, vector

if TYPE_CHECKING:
    from .executor import Array, Executor

_SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))
_DOUBLE = (np.dtype(np.float64), np.dtype(np.complex128))

#: Bit mask of a value without its sign, by the size of the value in bytes; the masked bits are 0
#: only for a zero.
_SIZES = {
    2: (np.uint16, 0x7FFF),
    4: (np.uint32, 0x7FFFFFFF),
    8: (np.uint64, 0x7FFFFFFF7FFFFFFF),
}


def as_dtype(executor: Executor, values: Array, dtype: DTypeLike, *, copy: bool = False) -> Array:
    """Return values in another dtype, rounded once; of complex values to real, the real parts.

    Parameters
    ----------
    executor : Executor
        The executor of the values.
    values : array
        Values of any dtype and shape.
    dtype : dtype
        The requested dtype.
    copy : bool
        Whether to copy values that already have the dtype.
    """
    dtype = np.dtype(dtype)
    if values.dtype == dtype or not executor.flushes_subnormals or not values.size:
        return values.astype(dtype, copy=copy)
    if values.dtype in _SINGLE + _DOUBLE and is_complex(values.dtype) and not is_complex(dtype):
        return as_dtype(executor, values.real, dtype)
    if values.dtype in _SINGLE and dtype in _DOUBLE:
        return _raised(executor, values).astype(dtype, copy=False)
    if values.dtype in _DOUBLE and dtype not in _DOUBLE and dtype.kind not in "biu":
        return _lowered(executor, values).astype(dtype, copy=False)
    if values.dtype.itemsize == 2 and dtype in _DOUBLE:  # bfloat16 has float32's range
        single = values.astype(np.float32)
        return as_dtype(executor, single, dtype)
    return values.astype(dtype)


def _raised(executor: Executor, values: Array) -> Array:
    """Return single-precision values in double precision."""
    result = executor.allocate(tuple(values.shape), double_dtype(values.dtype))
    unscaled = executor.zeros((1,), real_dtype(result.dtype))
    flat = result.reshape(-1, 1)
    executor.run(precision.raised, values.reshape(-1, 1), unscaled, flat, 1.0, 0.0)
    return result


def _lowered(executor: Executor, values: Array) -> Array:
    """Return double-precision values in single precision."""
    single = np.complex64 if is_complex(values.dtype) else np.float32
    result = executor.allocate(tuple(values.shape), single)
    unscaled = executor.zeros((1,), real_dtype(values.dtype))
    executor.run(precision.lower, values.reshape(-1, 1), unscaled, result.reshape(-1, 1))
    return result


def not_flushed(executor: Executor, values: Array) -> Array:
    """Return values in a dtype in which array functions flush none of them."""
    if executor.flushes_subnormals and values.dtype in _SINGLE:
        return as_dtype(executor, values, double_dtype(values.dtype))
    return values


def number_beside(number: Any, values: Array, own_values: Array) -> Any:
    """Return a number, in the dtype of ``own_values`` if ``values`` are these in a wider dtype."""
    if values is own_values:
        return number
    with np.errstate(over="ignore"):
        return own_values.dtype.type(number)


def unflushed(executor: Executor, function: Callable[..., Array], *values: Array) -> Array:
    """Apply an array function, in double precision if it would flush single-precision values."""
    wide = [not_flushed(executor, array) for array in values]
    result = function(*wide)
    if all(a is b for a, b in zip(wide, values, strict=True)) or result.dtype not in _DOUBLE:
        return result
    return as_dtype(executor, result, np.result_type(*values))


def for_zero_tests(executor: Executor, values: Array) -> Array:
    """Return values, or integers, that are 0 exactly where ``values`` are 0."""
    if not executor.flushes_subnormals or values.dtype in _DOUBLE or values.dtype.kind in "biu":
        return values
    unsigned, sizes = _SIZES[values.dtype.itemsize]
    return executor.xp.ascontiguousarray(values).view(unsigned) & unsigned(sizes)


def values_times(executor: Executor, values: Array, factor: complex) -> Array:
    """Return values times a Python number, which does not change their dtype."""
    if not executor.flushes_subnormals or values.dtype not in _SINGLE or not values.size:
        return values * factor
    result = executor.allocate(tuple(values.shape), values.dtype)
    flat = result.reshape(-1, 1)
    executor.run(vector.axpby, values.reshape(-1, 1), flat, factor, 0.0)
    return result


def entry_products(executor: Executor, a: Array, b: Array) -> Array:
    """Return the element-wise products of two arrays of the same shape and dtype."""
    if not executor.flushes_subnormals or a.dtype not in _SINGLE or not a.size:
        return a * b
    result = executor.allocate(tuple(a.shape), a.dtype)
    flat = result.reshape(-1, 1)
    executor.run(vector.scale_rows, a.reshape(-1), b.reshape(-1, 1), flat, 1.0, 0.0)
    return result


def entry_sums(executor: Executor, a: Array, b: Array, beta: int = 1) -> Array:
    """Return ``a + b``, or ``a - b`` if ``beta`` is -1; both have one shape and dtype."""
    if not executor.flushes_subnormals or a.dtype not in _SINGLE or not a.size:
        return a + b if beta == 1 else a - b
    result = executor.copy(b)
    executor.run(vector.axpby, a.reshape(-1, 1), result.reshape(-1, 1), 1.0, float(beta))
    return result


def conjugated(executor: Executor, values: Array) -> Array:
    """Return the complex conjugates of complex values."""
    if not executor.flushes_subnormals or values.dtype != np.complex64 or not values.size:
        return values.conj()
    result = executor.copy(values)
    result.reshape(-1).view(np.uint32)[1::2] ^= np.uint32(1 << 31)  # sign bits of imaginary parts
    return result
