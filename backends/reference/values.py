"""Element-wise functions and reductions of values, all from NumPy."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import values as operations
from . import sums
from .table import kernel


@kernel(operations.magnitude)
def magnitude(executor: Executor, x: Array, y: Array) -> None:
    """Set y = |x|."""
    np.abs(x, out=y)


@kernel(operations.real)
def real(executor: Executor, x: Array, y: Array) -> None:
    """Set y = the real part of x."""
    y[...] = x.real


@kernel(operations.imaginary)
def imaginary(executor: Executor, x: Array, y: Array) -> None:
    """Set y = the imaginary part of x."""
    y[...] = x.imag


@kernel(operations.power)
def power(executor: Executor, x: Array, y: Array, exponent: complex) -> None:
    """Set y = x to the exponent."""
    with np.errstate(all="ignore"):
        y[...] = x ** x.dtype.type(exponent)


@kernel(operations.total)
def total(executor: Executor, x: Array, value: Array) -> None:
    """Set value_c = the sum of all x_ic."""
    value[:] = sums.total(x)


def _extremes(function: np.ufunc, x: Array, value: Array) -> None:
    value[:] = function.reduce(x, axis=0) if x.shape[0] else 0


@kernel(operations.largest)
def largest(executor: Executor, x: Array, value: Array) -> None:
    """Compute the maximum with NumPy."""
    _extremes(np.maximum, x, value)


@kernel(operations.smallest)
def smallest(executor: Executor, x: Array, value: Array) -> None:
    """Compute the minimum with NumPy."""
    _extremes(np.minimum, x, value)
