"""Scalar factors of operands."""

from __future__ import annotations

from numbers import Number
from typing import Any

from .errors import InvalidArgument, UnsupportedDtype

#: The types of most arguments and results: a set lookup is faster than a test of the base class.
PLAIN = frozenset({int, float, complex})


def number(value: Any, label: str) -> Any:
    """Return a number as a Python number; array scalars and fractions are converted.

    Raises
    ------
    InvalidArgument
        If ``value`` is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.core.factors import number
    >>> number(np.complex64(2j), "alpha")
    2j
    """
    if type(value) in PLAIN:
        return value
    if getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, (int, float, complex)):
        return value
    if isinstance(value, Number):  # with fractions NumPy would make object arrays
        return float(value)  # type: ignore[arg-type]
    raise InvalidArgument(f"{label}: expected a number, got {value!r}")


def real_number(value: Any, label: str, operation: str) -> float:
    """Return the result of :func:`number`, for operations that need a real number.

    Raises
    ------
    UnsupportedDtype
        If ``value`` is complex.
    """
    if type(value) is float:  # the most frequent type first
        return value
    found: float | complex = number(value, label)
    if isinstance(found, complex):
        raise UnsupportedDtype(f"{label}: {operation} takes real factors, got {found}")
    return found
