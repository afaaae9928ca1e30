"""NumPy functions of matrices: functions that map 0 to 0, and functions of two operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import held_dtype, is_exact, is_narrow
from ..small_values import unflushed
from .base import Matrix
from .comparisons import compare, extreme, swapped
from .entry_functions import ZERO_PRESERVING
from .rowwise import canonical_rows

if TYPE_CHECKING:
    from .base import Matrix
    from .csr import Csr

#: Alternative NumPy names of functions that are methods.
_SYNONYMS = {"degrees": "rad2deg", "radians": "deg2rad"}

#: Functions that can map tiny arguments to values of another magnitude; they must not flush.
_OF_SMALL = ("ceil", "floor", "sign", "sqrt")

#: Functions that do not change integers and booleans, although CuPy and NumPy before 2.1 return
#: floating-point numbers.
_OF_FRACTIONS = ("ceil", "floor", "trunc")

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_EXTREMES = ("maximum", "minimum")


def unary(matrix: Matrix, name: str) -> Csr:
    """Apply a function that maps 0 to 0 to every entry; duplicates are summed first.

    Integers and booleans become floating-point numbers if they do in NumPy.
    """
    csr = canonical_rows(matrix)
    if name in _OF_FRACTIONS and is_exact(csr.dtype):
        return csr.copy()
    data = csr.data.astype(np.int32) if csr.dtype == np.bool_ else csr.data
    function = getattr(csr.executor.xp, name)
    values = unflushed(csr.executor, function, data) if name in _OF_SMALL else function(data)
    made = csr._with_data(values.astype(held_dtype(values.dtype), copy=False))
    return made.astype(matrix.dtype) if is_narrow(matrix.dtype) else made


def call(ufunc: np.ufunc, *inputs: Any) -> Any:
    """Apply ``ufunc`` to operands, one of which is a matrix, or return NotImplemented."""
    name = _SYNONYMS.get(ufunc.__name__, ufunc.__name__)
    first = inputs[0]
    if len(inputs) == 1:
        return first._function(name) if name in ZERO_PRESERVING else NotImplemented
    ours, other = (first, inputs[1]) if isinstance(first, Matrix) else (inputs[1], first)
    if name in _COMPARISONS:
        return compare(ours, other, name if ours is first else swapped(name))
    if name in _EXTREMES:
        return extreme(ours, other, name)
    return NotImplemented
