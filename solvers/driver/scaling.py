"""Scaling by powers of two: norms, right-hand sides and operators of any size.

Solvers square numbers, and squares leave the range of a dtype much earlier than the numbers
themselves. Scaling by a power of two causes no rounding. Hence a solver computes with numbers near
one, and its results are scaled back. Only this module does that:

- :func:`norms` and :func:`largest_values` are right for vectors of any size;
- :class:`RightHandSides` scales the columns of ``b``, and knows the scale of ``x``;
- :func:`size_of` measures an operator, :func:`scale_for` is the power of two that brings it near
  one, and :func:`times` applies it: ``times(scale_for(A), A)``;
- :class:`Rescaling` scales the operators of a solver after a solve failed;
- :func:`scaled_back` returns a result in the units of the user, and names the columns that lost
  digits by that.

Columns and operators of ordinary size are not scaled, at no cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...core.dtypes import is_complex, name_of, real_dtype
from ...core.errors import InvalidArgument
from ...core.lazy import Scaled
from ...core.operations import vector

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.linop import LinOp
    from .workspace import Workspace

Numbers = np.ndarray[Any, Any]

#: Norms of ``b`` in this range need no scaling: their squares, and squares of much smaller
#: residuals, neither overflow nor underflow.
SAFE_NORMS = {np.dtype(np.float32): (1e-8, 1e8), np.dtype(np.float64): (1e-100, 1e100)}

#: A norm of at least this value has lost no digits to underflow in its sum of squares.
LEAST_NORM = {np.dtype(np.float32): 1e-15, np.dtype(np.float64): 1e-145}

#: Largest exponent of an operator's factor of two: the factor and its inverse are representable.
LARGEST_EXPONENT = {np.dtype(np.float32): 125, np.dtype(np.float64): 1021}

#: Largest exponent of a column scale with a finite inverse; subnormal numbers would need a larger
#: one.
LARGEST_POWER = 1023


def column_values(
    executor: Executor, operation: Any, block: Array, value: Array | None = None
) -> Numbers:
    """Return one number per column, computed by an operation such as ``vector.norm``.

    ``value`` is optional device memory for the numbers.
    """
    if value is None:
        value = executor.allocate((int(block.shape[1]),), real_dtype(block.dtype))
    executor.run(operation, block, value)
    return np.array(executor.transfer(value).read()[0], np.float64)


def indices(columns: Numbers) -> list[int]:
    """Return the indices of the columns for which a condition holds."""
    return [int(c) for c in np.flatnonzero(columns)]


def column(block: Array, c: int) -> Array:
    """Return one column of a block as a block."""
    return block[:, c : c + 1]


def largest_values(executor: Executor, block: Array) -> Numbers:
    """Return the largest absolute value of each column; NaN or Inf if it has one."""
    largest = column_values(executor, vector.largest, block)
    if is_complex(block.dtype):
        # the absolute value of a complex number with finite parts may overflow
        for c in indices(np.isinf(largest)):
            values = np.asarray(executor.to_host(executor.copy(column(block, c))))
            if not executor.agreed(not np.all(np.isfinite(values))):
                largest[c] = np.finfo(real_dtype(block.dtype)).max
    return largest


def norms(executor: Executor, block: Array) -> Numbers:
    """Return the norm of each column, also for extreme values; NaN or Inf if the column has one."""
    found = column_values(executor, vector.norm, block)
    low = LEAST_NORM[real_dtype(block.dtype)]
    extreme = np.flatnonzero(~((found >= low) & np.isfinite(found)))
    for c in map(int, extreme):
        one = executor.copy(column(block, c))
        largest = largest_values(executor, one)[0]
        if largest > 0 and np.isfinite(largest):
            factor = np.array([power_of_two(largest)])
            scale_columns(executor, one, exponents_of(factor))
            with np.errstate(over="ignore"):
                found[c] = column_values(executor, vector.norm, one)[0] / factor[0]
    return found


def power_of_two(largest: float) -> float:
    """Return the power of two that scales a positive number near one."""
    power = -np.floor(np.log2(largest))
    return float(2.0 ** np.clip(power, -LARGEST_POWER, LARGEST_POWER))


def exponents_of(powers: Numbers) -> Numbers:
    """Return the exponents of powers of two, as integers."""
    return np.rint(np.log2(powers)).astype(np.int64)


def scale_columns(executor: Executor, block: Array, exponents: Numbers) -> None:
    """Multiply columns by the powers of two with these exponents."""
    most = LARGEST_EXPONENT[real_dtype(block.dtype)]
    for c in indices(exponents != 0):
        view, left = column(block, c), int(exponents[c])
        while left:  # in steps: the factor itself may be out of range
            step = max(-most, min(most, left))
            executor.run(vector.axpby, view, view, 2.0**step, 0.0)
            left -= step


#: Operators of a size in this range need no scaling: products of two sizes, and squares of these
#: products, are in range.
SAFE_SIZES = {
    np.dtype(np.float32): (2.0**-20, 2.0**20),
    np.dtype(np.float64): (2.0**-160, 2.0**160),
}

#: The seed of the vector that measures the size of operators.
SEED = 1701


def size_of(operator: LinOp) -> float:
    """Return the size of an operator: the largest element of its product with a fixed vector.

    The elements of the vector have random absolute values between 1/2 and 1, so that the largest
    rows determine the size. The size is NaN or Inf if the operator has such entries, and 0 if all
    its entries are zero.

    Parameters
    ----------
    operator : LinOp, shape (m, n)
        Any operator. If a group shares it, all members must call this.
    """
    executor, dtype = operator.executor, operator.dtype
    columns = operator.local_columns
    rank = 0 if executor.links is None else executor.links.rank
    random = np.random.default_rng((SEED, rank))
    values = random.uniform(0.5, 1.0, (columns, 1)) * random.choice([-1.0, 1.0], (columns, 1))
    y = executor.allocate((operator.local_rows, 1), dtype)
    reach = 2.0 ** (LARGEST_EXPONENT[real_dtype(dtype)] // 2)
    size = 0.0
    for factor in (1.0, reach, 1 / reach):  # repeat if the product left the range
        x = executor.copy(executor.from_host((factor * values).astype(dtype)))
        operator._apply(x, y, 1.0, 0.0)
        size = float(largest_values(executor, y)[0]) / factor
        if 0 < size < np.inf and (factor != 1.0 or size >= reach**-2):
            return size
    return size


def scale_for(operator: LinOp) -> float:
    """Return the power of two that scales an operator near one; 1.0 if none is needed.

    A zero operator, or one with entries that are not finite, is not scaled.
    """
    real = real_dtype(operator.dtype)
    size = size_of(operator)
    low, high = SAFE_SIZES[real]
    if low <= size <= high or not 0 < size < np.inf:
        return 1.0
    most = LARGEST_EXPONENT[real]
    return float(2.0 ** np.clip(-np.floor(np.log2(size)), -most, most))


class Scales(NamedTuple):
    """The powers of two by which a solver multiplies its operators.

    Attributes
    ----------
    A, M : float
        The scales of the operator and of the preconditioner. A positive factor of ``M`` does not
        change the iterates.
    """

    A: float = 1.0
    M: float = 1.0


UNSCALED = Scales()


def times(factor: float, operator: LinOp) -> LinOp:
    """Return an operator times a power of two, without copying entries; itself for 1.0."""
    return operator if factor == 1.0 else Scaled(factor, operator)


def near_one(block: Numbers) -> Numbers:
    """Return host arrays, scaled by powers of two so that the largest numbers are near one.

    Parameters
    ----------
    block : ndarray, shape (n,) or (n, k)
        Each column has its own power. A column of zeros, or one with a number that is not finite,
        is not scaled.

    Returns
    -------
    ndarray
        The scaled columns, in double precision.
    """
    return times_powers(block, exponents_near_one(block))


def exponents_near_one(block: Numbers) -> Numbers:
    """Return the exponents of the powers of two by which :func:`near_one` multiplies columns."""
    parts = (block.real, block.imag) if np.iscomplexobj(block) else (block,)
    largest = np.max([np.abs(part).max(axis=0, initial=0.0) for part in parts], axis=0)
    usual = np.isfinite(largest) & (largest > 0)
    return np.asarray(-np.frexp(np.where(usual, largest, 0.5))[1])


def times_powers(block: Numbers, exponents: Numbers) -> Numbers:
    """Return columns on the host, in double precision, times powers of two; they may overflow."""
    first = exponents // 2  # in two steps: the factor of a subnormal number is out of range
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(block * 2.0**first * 2.0 ** (exponents - first))


def column_norms(block: Numbers) -> Numbers:
    """Return the norms of columns on the host, also if their squares are out of range."""
    exponents = exponents_near_one(block)
    sizes = np.linalg.norm(times_powers(block, exponents), axis=0)
    return times_powers(sizes, -exponents)


def products_near_one(operator: LinOp, *vectors: Numbers) -> list[Numbers]:
    """Return products on the host in double precision; an operator of extreme size is scaled.

    Without scaling, products of such an operator leave the range of its dtype or lose digits.

    Parameters
    ----------
    operator : LinOp, shape (m, n)
        Any operator that is not distributed over a group.
    *vectors : ndarray, shape (n,), dtype of the operator
        Vectors with numbers near one.
    """
    wide = np.complex128 if is_complex(operator.dtype) else np.float64
    images = [np.asarray(operator @ x).astype(wide, copy=False) for x in vectors]
    low, high = SAFE_SIZES[real_dtype(operator.dtype)]
    if all(low <= np.abs(image).max(initial=0.0) <= high for image in images):
        return images
    scale = scale_for(operator)
    if scale == 1.0:
        return images
    return [np.asarray(times(scale, operator) @ x).astype(wide, copy=False) for x in vectors]


def scaled_back(executor: Executor, block: Array, exponents: Numbers) -> tuple[Array, list[int]]:
    """Return a copy of a block in the units of the user, and the columns that lost digits.

    Parameters
    ----------
    executor : Executor
        The executor of the block.
    block : array, shape (n, k)
        Columns that were multiplied by powers of two; not changed.
    exponents : array of int, shape (k,)
        The exponents of these powers.

    Returns
    -------
    array, shape (n, k)
        The columns, divided by these powers.
    list of int
        The columns that left the range of the dtype, or lost digits below its smallest normal
        number: their residuals must be recomputed.
    """
    solution = executor.copy(block)
    if not np.any(exponents):
        return solution, []
    scale_columns(executor, solution, -exponents)
    again = executor.copy(solution)
    scale_columns(executor, again, exponents)
    executor.run(vector.axpby, block, again, 1.0, -1.0)
    return solution, indices(largest_values(executor, again) != 0)


class RightHandSides:
    """The right-hand sides of a solve, scaled if necessary.

    Parameters
    ----------
    executor : Executor
        The executor of the right-hand sides.
    block : array, shape (n, k)
        The right-hand sides of the caller; not changed.
    spare : real array, shape (k,), optional
        Memory for their norms on the device.
    known : array, shape (k,), optional
        Their norms, if they are already known and need no scaling.
    operator_scale : float
        The power of two by which the operator was multiplied.
    safe : tuple of float, optional
        Columns with norms in this range are not scaled; :data:`SAFE_NORMS` by default.

    Attributes
    ----------
    block : array, shape (n, k)
        The scaled right-hand sides.
    norm, scale : array, shape (k,)
        The norms of the scaled columns, and the power of two of each column.
    scaled : list of int
        The columns that were scaled.
    solution_exponents : array of int, shape (k,)
        The exponents of the powers of two by which the columns of ``x`` were multiplied:
        ``scale / operator_scale``.

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
        operator_scale: float = 1.0,
        safe: tuple[float, float] | None = None,
    ) -> None:
        self.executor, self.block, self.operator_scale = executor, block, operator_scale
        if known is None:
            self.norm = column_values(executor, vector.norm, block, spare)
        else:
            self.norm = known.astype(np.float64)
        self.scale = np.ones(self.norm.size)
        self.scaled: list[int] = []
        low, high = SAFE_NORMS[real_dtype(block.dtype)] if safe is None else safe
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
            scale_columns(executor, self.block, exponents_of(self.scale))
            self.norm = column_values(executor, vector.norm, self.block)
            self.scaled = indices(self.scale != 1.0)

    @property
    def solution_exponents(self) -> Numbers:
        """The exponents of the powers of two by which the columns of x were multiplied."""
        return exponents_of(self.scale) - exponents_of(np.array(self.operator_scale))

    def in_units_of_b(self, norm: Numbers) -> Numbers:
        """Return norms in the units of the arguments."""
        if not self.scaled:
            return norm.copy()
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(norm / self.scale)

    def given_of(self, c: int, norms: Numbers) -> Numbers:
        """Return norms of one column in the units of the arguments."""
        if c not in self.scaled:
            return norms
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(norms / self.scale[c])


class Rescaling:
    """Mixin of a solver that stores the scales of its operators."""

    #: Whether the iterates do not depend on positive factors of ``A`` and of ``M``. Then operators
    #: of extreme size are scaled after a solve has failed.
    RESCALES: ClassVar[bool] = True

    A: LinOp
    _scales: dict[str, Scales]

    def _scales_in(self, dtype: Any) -> Scales:
        """Return the scales of solves in a dtype."""
        return self._scales.get(name_of(np.dtype(dtype)), UNSCALED)

    def rescale(self, work: Workspace) -> bool:
        """Scale operators of extreme sizes, for further solves in the dtype of a workspace.

        Called after a failed solve. One product with a vector measures an operator.

        Returns
        -------
        bool
            Whether the scales have changed, so that the solve is worth repeating.
        """
        version = int(getattr(self.A, "_values_version", 0))
        if not self.RESCALES or not work.A.shape[0] or work.measured == version:
            return False
        work.measured = version
        M = None if work.M is None or work.M.varies else work.M
        more = Scales(scale_for(work.A), 1.0 if M is None else scale_for(M))
        if more == UNSCALED:
            return False
        scales = Scales(more.A * work.scales.A, more.M * work.scales.M)
        self._scales[name_of(work.dtype)] = scales
        return True
