"""Right-hand sides whose squares would leave the range of the dtype are scaled by powers of two.

A solve then computes with numbers near one, and what it returns is scaled back. Only columns of
extreme norms are: for the others nothing is done, and nothing is spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import is_complex, real_dtype
from ...core.errors import InvalidArgument
from ...core.operations import vector

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]

#: Norms of b in between are squared without over- or underflow, residuals far below them included.
SAFE_NORMS = {np.dtype(np.float32): (1e-8, 1e15), np.dtype(np.float64): (1e-100, 1e100)}

#: A sum of squares whose root is at least this has lost no digits to underflow.
LEAST_NORM = {np.dtype(np.float32): 1e-15, np.dtype(np.float64): 1e-145}

#: Of two, as a scale, whose inverse is a number too: subnormal numbers ask for more.
LARGEST_POWER = 1023


def column_values(
    executor: Executor, operation: Any, block: Array, value: Array | None = None
) -> Numbers:
    """Return one number a column, computed by an operation such as ``vector.norm``.

    ``value`` is memory for them on the device, if there is some to spare.
    """
    if value is None:
        value = executor.allocate((int(block.shape[1]),), real_dtype(block.dtype))
    executor.run(operation, block, value)
    return np.array(executor.to_host_together(value)[0], np.float64)


def indices(columns: Numbers) -> list[int]:
    """Return the numbers of the columns for which a condition holds."""
    return [int(c) for c in np.flatnonzero(columns)]


def column(block: Array, c: int) -> Array:
    """Return one column of a block as a block."""
    return block[:, c : c + 1]


def largest_values(executor: Executor, block: Array) -> Numbers:
    """Return the largest absolute value of each column; NaN or Inf if it has one."""
    found = column_values(executor, vector.largest, block)
    if is_complex(block.dtype):
        # the absolute value of a number whose parts are finite may not be
        for c in indices(np.isinf(found)):
            values = np.asarray(executor.to_host(executor.copy(column(block, c))))
            if not executor.agreed(not np.all(np.isfinite(values))):
                found[c] = np.finfo(real_dtype(block.dtype)).max
    return found


def norms(executor: Executor, block: Array) -> Numbers:
    """Return the norm of each column, whatever its range; NaN or Inf if the column has one."""
    found = column_values(executor, vector.norm, block)
    low = LEAST_NORM[real_dtype(block.dtype)]
    extreme = np.flatnonzero(~((found >= low) & np.isfinite(found)))
    for c in map(int, extreme):
        one = executor.copy(column(block, c))
        largest = largest_values(executor, one)[0]
        if largest > 0 and np.isfinite(largest):
            factor = np.array([power_of_two(largest)])
            scale_columns(executor, one, factor)
            with np.errstate(over="ignore"):
                found[c] = column_values(executor, vector.norm, one)[0] / factor[0]
    return found


def power_of_two(largest: float) -> float:
    """Return the power of two that brings a positive number near one."""
    power = -np.floor(np.log2(largest))
    return float(2.0 ** np.clip(power, -LARGEST_POWER, LARGEST_POWER))


def scale_columns(executor: Executor, block: Array, factors: Numbers) -> None:
    """Multiply columns by powers of two; those of factor 1 are left alone."""
    for c in indices(factors != 1.0):
        view = column(block, c)
        # in two steps, because the factor itself may be out of the dtype's range
        half = 2.0 ** np.round(np.log2(factors[c]) / 2)
        for factor in (half, factors[c] / half):
            executor.run(vector.axpby, view, view, float(factor), 0.0)


class RightHandSides:
    """The right-hand sides of a solve, scaled where that is needed.

    Parameters
    ----------
    executor : Executor
        Where they are.
    block : array, shape (n, k)
        As they were given; not changed.
    spare : real array, shape (k,), optional
        Memory for their norms on the device.
    known : array, shape (k,), optional
        Their norms, if they were found before and need no scaling.

    Attributes
    ----------
    block : array, shape (n, k)
        The scaled ones.
    norm, scale : array, shape (k,)
        Their norms, and what each column was multiplied by.
    scaled : list of int
        The columns that were scaled.

    Raises
    ------
    InvalidArgument
        If a column is not finite.
    """

    def __init__(
        self,
        executor: Executor,
        block: Array,
        spare: Array | None = None,
        known: Numbers | None = None,
    ) -> None:
        self.executor, self.block = executor, block
        if known is None:
            self.norm = column_values(executor, vector.norm, block, spare)
        else:
            self.norm = known.astype(np.float64)
        self.scale = np.ones(self.norm.size)
        self.scaled: list[int] = []
        low, high = SAFE_NORMS[real_dtype(block.dtype)]
        if all(low <= norm <= high for norm in self.norm.tolist()):
            return
        outside = ~((self.norm >= low) & (self.norm <= high))
        largest = largest_values(executor, block)
        bad = np.flatnonzero(~np.isfinite(largest))
        if bad.size:
            raise InvalidArgument(f"b has NaN or Inf in column {bad[0]}: there is no solution")
        outside &= largest > 0
        if outside.any():
            self.scale[outside] = [power_of_two(value) for value in largest[outside]]
            self.block = executor.copy(block)
            scale_columns(executor, self.block, self.scale)
            self.norm = column_values(executor, vector.norm, self.block)
            self.scaled = indices(self.scale != 1.0)

    def given(self, norm: Numbers) -> Numbers:
        """Return norms in the units of what was given."""
        if not self.scaled:
            return norm.copy()
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(norm / self.scale)

    def given_of(self, c: int, norms: Numbers) -> Numbers:
        """Return norms of one column in the units of what was given."""
        if c not in self.scaled:
            return norms
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(norms / self.scale[c])
