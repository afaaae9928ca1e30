"""Checks of user-defined operator classes, at their definition and after each construction."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .dtypes import value_dtype
from .errors import InvalidArgument

#: Attributes that are read without a call, such as ``A.T``. If a class defines one as a method,
#: reading it would return the method.
_READ = ("T", "H", "shape", "dtype", "executor", "resident", "varies")

_SET = {
    "shape": "self.shape = (rows, columns)",
    "dtype": "self.dtype = np.dtype(np.float64)",
    "executor": 'self.executor = wl.executor("omp"), or that of the operator\'s arrays',
}


def check_class(cls: type, *, constructs: bool) -> None:
    """Refuse methods that should be properties, and make the constructor check attributes.

    Parameters
    ----------
    cls : type
        The class.
    constructs : bool
        Whether the constructor alone creates operators.

    Raises
    ------
    InvalidArgument
        If an attribute such as ``T`` is defined as a method.
    """
    for name in _READ:
        if inspect.isfunction(vars(cls).get(name)):
            raise InvalidArgument(
                f"{cls.__name__}.{name} is a method, and is read as an attribute, A.{name}: write "
                "@property above its definition"
            )
    initialize: Any = vars(cls).get("__init__")
    if constructs and inspect.isfunction(initialize):
        cls.__init__ = _checked(cls, initialize)  # type: ignore[misc]


def _checked(cls: type, initialize: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that checks the operator's attributes at its end."""

    @wraps(initialize)
    def __init__(self: Any, *args: Any, **named: Any) -> None:
        initialize(self, *args, **named)
        if type(self) is cls:
            require_attributes(self)

    return __init__


def require_attributes(operator: Any) -> None:
    """Raise an error unless an operator has the attributes that solvers and products read.

    Raises
    ------
    InvalidArgument
        If ``shape``, ``dtype`` or ``executor`` is missing or invalid.
    UnsupportedDtype
        If no kernels compute in the dtype.
    """
    name = type(operator).__name__
    for attribute, remedy in _SET.items():
        if not hasattr(operator, attribute):
            raise InvalidArgument(f"{name}.__init__ sets no {attribute}: {remedy}")
    shape, dtype, executor = operator.shape, operator.dtype, operator.executor
    whole = isinstance(shape, tuple) and all(isinstance(n, (int, np.integer)) for n in shape)
    if not (whole and len(shape) == 2 and min(shape) >= 0):
        raise InvalidArgument(f"{name}.shape: expected (rows, columns), two integers, got {shape}")
    if not isinstance(dtype, np.dtype):
        raise InvalidArgument(f"{name}.dtype: expected a numpy.dtype, got {dtype!r}: np.dtype(...)")
    if isinstance(executor, str) or not callable(getattr(executor, "run", None)):
        raise InvalidArgument(
            f"{name}.executor: expected an executor, got {executor!r}: wl.executor(...)"
        )
    if not operator._is_matrix and value_dtype(dtype) != dtype:
        raise InvalidArgument(
            f"{name}.dtype: operators compute in float32, float64, complex64 or complex128, got "
            f"{dtype}"
        )
