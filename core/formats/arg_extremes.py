"""Positions of the largest and smallest entries, and exact extremes of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import TO_HOST
from ..dtypes import is_exact
from ..errors import InvalidArgument
from ..small_values import not_flushed
from .exact import fits_double, from_double, in_double, largest, row_numbers
from .reductions import Extreme, normalized_axis
from .rowwise import canonical_rows, row_bounds

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix
    from .csr import Csr

#: Number of low bits by which integers are split: float64 represents each part exactly.
_LOW_BITS = 31


def arg_extreme(matrix: Matrix, axis: Any, extreme_kind: Extreme, *, explicit: bool) -> Any:
    """Return the position of the largest or smallest entry of all, of each column or of each row.

    Of equal entries the first one counts. NaN counts as the extreme in both cases, as in NumPy.
    """
    matrix.executor.refuse_host(TO_HOST)
    axis = normalized_axis(axis)
    name = f"arg{extreme_kind.name}"
    count = matrix.shape[0] * matrix.shape[1] if axis is None else matrix.shape[axis]
    if count == 0 or (explicit and axis is None and matrix.nnz == 0):
        raise InvalidArgument(
            f"Cannot apply {name}: a matrix of shape {matrix.shape} has nothing to compare"
        )
    if axis is None:
        return _of_all(canonical_rows(matrix), extreme_kind, explicit)
    csr = canonical_rows(matrix if axis == 1 else matrix.asformat("csr").transpose())
    if explicit and bool(csr.executor.xp.any(csr.indptr[1:] == csr.indptr[:-1])):
        raise InvalidArgument(
            f"{name}: a row or column without a stored entry has no explicit one; leave out "
            "explicit=True"
        )
    return _of_rows(csr, extreme_kind, explicit)


def _of_all(csr: Csr, extreme_kind: Extreme, explicit: bool) -> int:
    """Return the position of the first extreme entry, counted row by row."""
    executor, xp = csr.executor, csr.executor.xp
    positions = csr.shape[0] * csr.shape[1]
    if csr.nnz == 0:
        return 0
    at = int(getattr(xp, f"arg{extreme_kind.name}")(csr.data))
    value = executor.to_host(csr.data[at : at + 1])[0]
    begins = executor.to_host(xp.searchsorted(csr.indptr, xp.asarray([at]), side="right"))
    column = int(executor.to_host(csr.indices[at : at + 1])[0])
    found = (int(begins[0]) - 1) * csr.shape[1] + column
    if explicit or csr.nnz == positions:
        return found
    zero = csr.dtype.type(0)
    if value == zero:
        return min(found, _first_missing(csr))
    return _first_missing(csr) if extreme_kind.function(value, zero) == zero else found


def _first_missing(csr: Csr) -> int:
    """Return the first position without an entry, counted row by row.

    Rows before the first one that is not full have a column for each entry.
    """
    executor, xp, n = csr.executor, csr.executor.xp, csr.shape[1]
    row = int(xp.argmax(csr.indptr[1:] - csr.indptr[:-1] < n))  # one row is not full
    begin, end = (int(bound) for bound in executor.to_host(csr.indptr[row : row + 2]))
    gaps = csr.indices[begin:end] != xp.arange(end - begin)
    return row * n + (int(xp.argmax(gaps)) if bool(xp.any(gaps)) else end - begin)


def _of_rows(csr: Csr, extreme_kind: Extreme, explicit: bool) -> Array:
    xp, (m, n) = csr.executor.xp, csr.shape
    row, numbers = row_numbers(csr), xp.arange(m)
    length = (csr.indptr[1:] - csr.indptr[:-1]).astype(np.int64)
    full = (length == n) | explicit
    value = extremes_of_rows(csr, extreme_kind, 0 if explicit else n)
    data, value = (not_flushed(csr.executor, values) for values in (csr.data, value))
    equal = (data == value[row]) | (data != data)
    stored = _first_of_rows(csr, row, equal, numbers, n)
    offset = xp.arange(csr.nnz) - csr.indptr[row]
    gap = _first_of_rows(csr, row, csr.indices != offset, numbers, -1, offset)
    missing = xp.where(gap >= 0, gap, length)
    at_zero = ~full & (value == 0)
    return xp.where(at_zero, xp.minimum(stored, missing), stored)


def _first_of_rows(
    csr: Csr, row: Array, chosen: Array, numbers: Array, none: int, of: Array | None = None
) -> Array:
    """Return the column (or the number in ``of``) of the first selected entry of each row."""
    xp = csr.executor.xp
    which = xp.flatnonzero(chosen)
    if not which.size:
        return xp.full(numbers.size, none, np.int64)
    rows, answers = row[which], (csr.indices if of is None else of)[which].astype(np.int64)
    at = xp.minimum(xp.searchsorted(rows, numbers.astype(rows.dtype)), which.size - 1)
    return xp.where(rows[at] == numbers, answers[at], none)


def extremes_of_rows(csr: Csr, extreme_kind: Extreme, width: int) -> Array:
    """Return the largest or smallest number of each row; integers are compared exactly.

    Rows with fewer than ``width`` entries also contain zeros. The result of an empty row is 0.
    """
    if not is_exact(csr.dtype):
        result = csr.executor.allocate((csr.shape[0],), csr.dtype)
        csr.executor.run(extreme_kind.of_rows, *row_bounds(csr), csr.data, width, result)
        return result
    if fits_double(csr.executor, largest(csr.executor, csr.data)):
        return from_double(extremes_of_rows(in_double(csr), extreme_kind, width), csr.dtype)
    wide = csr.data.astype(np.int64)
    high = extremes_of_rows(csr._with_data((wide >> _LOW_BITS).astype(np.float64)), extreme_kind, 0)
    row = row_numbers(csr)
    low = (wide & ((1 << _LOW_BITS) - 1)).astype(np.float64)
    outside = -1.0 if extreme_kind.name == "max" else float(1 << _LOW_BITS)
    at_high = (wide >> _LOW_BITS) == high[row]
    low = extremes_of_rows(
        csr._with_data(csr.executor.xp.where(at_high, low, outside)), extreme_kind, 0
    )
    value = (high.astype(np.int64) << _LOW_BITS) + low.astype(np.int64)
    length = csr.indptr[1:] - csr.indptr[:-1]
    xp = csr.executor.xp
    function = xp.maximum if extreme_kind.name == "max" else xp.minimum
    value = xp.where(length == 0, 0, xp.where(length < width, function(value, 0), value))
    return value.astype(csr.dtype)
