"""Mistakes in classes of operators of other packages, where the class or an object is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .dtypes import value_dtype
from .errors import InvalidArgument

#: Attributes that are read as ``A.T``: a method of the name would be a function there.
_READ = ("T", "H", "shape", "dtype", "executor", "resident", "varies")

_SET = {
    "shape": "self.shape = (rows, columns)",
    "dtype": "self.dtype = np.dtype(np.float64)",
    "executor": 'self.executor = wl.executor("omp"), or that of the operator\'s arrays',
}


def check_class(cls: type, *, constructs: bool) -> None:
    """Raise for methods that should be properties, and have constructors look for attributes.

    Parameters
    ----------
    cls : type
        The class.
    constructs : bool
        Whether its constructor alone makes operators.

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
    """Return a constructor that looks for the attributes of the operator at its end."""

    @wraps(initialize)
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        initialize(self, *given, **named)
        if type(self) is cls:
            require_attributes(self)

    return __init__


def require_attributes(operator: Any) -> None:
    """Raise unless an operator has the attributes that solvers and products read.

    Raises
    ------
    InvalidArgument
        If ``shape``, ``dtype`` or ``executor`` is missing, or nothing of its kind.
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
