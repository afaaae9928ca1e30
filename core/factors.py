"""Scalar factors of operands, and integers such as numbers of iterations and vectors."""

from __future__ import annotations

from math import inf
from numbers import Number
from typing import Any

import numpy as np

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
    result: float | complex = number(value, label)
    if isinstance(result, complex):
        raise UnsupportedDtype(f"{label}: {operation} takes real factors, got {result}")
    return result


def whole_number(value: Any, label: str, least: int = 0, most: int | None = None) -> int:
    """Return a caller's integer; floats without a fraction are accepted, booleans are not.

    Parameters
    ----------
    value : int, float or number of NumPy
        The argument.
    label : str
        Name of the argument in messages.
    least, most : int
        The smallest and the largest allowed number; None: no upper bound.

    Raises
    ------
    InvalidArgument
        If the argument is not such a number.

    Examples
    --------
    >>> whole_number(3.0, "maxiter")
    3
    >>> whole_number(True, "maxiter")
    Traceback (most recent call last):
        ...
    wollemi.core.errors.InvalidArgument: maxiter: expected an integer of at least 0, got True
    """
    number = isinstance(value, (int, float, np.integer)) and not isinstance(value, bool)
    if not number or not least <= value < inf or value % 1 or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidArgument(f"{label}: expected an integer {bounds}, got {value!r}")
    return int(value)
