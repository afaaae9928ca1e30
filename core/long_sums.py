"""The rule that computes long sums of single-precision terms in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from .dtypes import double_dtype
from .small_values import as_dtype

if TYPE_CHECKING:
    from .executor import Array, Executor

#: Sums of more single-precision terms than this are computed in double precision. In sequential
#: summation, a sum of ones stops at 2^24, and the rounding errors of that many equal terms reach
#: 2e-4.
LONG = 4096


def in_double_if_long(executor: Executor, array: Array) -> Array:
    """Return single-precision arrays with more than :data:`LONG` terms in double precision."""
    if array.size <= LONG or not executor.has_double:
        return array
    wide = double_dtype(array.dtype)
    return array if array.dtype == wide else as_dtype(executor, array, wide)


def has_long_row(indptr: Array) -> bool:
    """Return whether a row, delimited by ``indptr``, has more than :data:`LONG` entries."""
    if indptr.size < 2:
        return False
    return int((indptr[1:] - indptr[:-1]).max()) > LONG


def rounded_to(executor: Executor, array: Array, dtype: DTypeLike) -> Array:
    """Return sums in the dtype of their terms; sums out of its range become infinite."""
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):
        return as_dtype(executor, array, dtype)
