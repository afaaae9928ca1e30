"""Operators of SciPy, and of libraries that follow it, as wollemi operators.

SciPy's class checks and reshapes the results of its subclasses, and reports mistakes by errors of
NumPy. Here the same rules hold, and the errors are wollemi's: they name the class and its method.
Here the same rules hold, and the errors are ours: they name the class and its method.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import value_dtype
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperation, WollemiError
from .formats.base import checked_shape
from .operands import to_host
from .operator import LinearOperator
from .registry import executor as executor_by_name
from .registry import get_default_executor

if TYPE_CHECKING:
    from .executor import Array, Executor

#: Modules that reshape the result of a user's method: an error raised there is about its shape.
_WRAPPERS = ("scipy.sparse.linalg._interface", "cupyx.scipy.sparse.linalg._interface")


def operator_from(operator: Any, executor: Executor | str | None = None) -> LinearOperator:
    """Return an object with ``shape`` and ``matvec`` as a :class:`wollemi.LinearOperator`.

    Parameters
    ----------
    operator : object
        A ``scipy.sparse.linalg.LinearOperator``, which gets and gives NumPy arrays, or another
        object with SciPy's names, which gets and gives native arrays of the executor.
    executor : Executor or str, optional
        Where it is applied; the default executor by default.

    Returns
    -------
    LinearOperator
        If the object has no dtype, that of the result of one application to zeros, as SciPy finds
        it. Its ``H`` raises UnsupportedOperation when applied if the object has no adjoint.

    Raises
    ------
    InvalidArgument
        If it has no shape, or a class of SciPy's kind says nowhere how vectors are mapped.
    """
    if not hasattr(operator, "shape"):
        raise InvalidArgument(
            f"a {type(operator).__name__} has matvec but no shape: give it a shape of two integers"
        )
    shape = checked_shape(operator.shape)
    on_host = _is_of_scipy(operator)
    blocks = on_host and _says_how(operator)
    convert: Callable[[Array], Any] = to_host if on_host else lambda x: x
    methods: dict[str, Any] = {
        name: _Method(operator, name, convert)
        for name in ("matvec", "rmatvec", *(("matmat", "rmatmat") if blocks else ()))
        if hasattr(operator, name)
    }
    dtype = getattr(operator, "dtype", None)
    where = get_default_executor() if executor is None else executor_by_name(executor)
    if dtype is None:
        dtype = _found_dtype(methods["matvec"], where, shape[1], on_host)
    return LinearOperator(shape, **methods, dtype=dtype, executor=executor)


def _is_of_scipy(operator: object) -> bool:
    module = sys.modules.get("scipy.sparse.linalg")
    return module is not None and isinstance(operator, module.LinearOperator)


def _says_how(operator: Any) -> bool:
    """Return whether a subclass of SciPy's class maps blocks by itself.

    Raises
    ------
    InvalidArgument
        If it maps neither blocks nor vectors: SciPy's two defaults would call each other.
    """
    from scipy.sparse.linalg import LinearOperator as SciPys

    cls = type(operator)
    of_its_own = {
        name: getattr(cls, name) is not getattr(SciPys, name)
        for name in ("_matvec", "matvec", "_matmat", "matmat")
    }
    if not any(of_its_own.values()):
        raise InvalidArgument(
            f"{cls.__name__} has neither _matvec nor _matmat: define one of them, it says how a "
            "vector is mapped"
        )
    return of_its_own["_matmat"] or of_its_own["matmat"]


def _found_dtype(
    matvec: Callable[[Any], Any], executor: Executor, columns: int, on_host: bool
) -> np.dtype[Any]:
    """Return the dtype of the image of zeros.

    SciPy's operators get the narrowest zeros there are, as from SciPy, so that an operator in
    float32 is one. Other objects get zeros of float64, which they would get from a solver.
    """
    if on_host:
        return value_dtype(np.asarray(matvec(np.zeros(columns, np.int8))).dtype)
    zeros = executor.from_host(np.zeros(columns))
    return value_dtype(getattr(matvec(zeros), "dtype", np.float64))


class _Method:
    """A method of the operator, with errors of wollemi."""

    def __init__(self, operator: Any, name: str, convert: Callable[[Array], Any]) -> None:
        self.operator, self.name, self.convert = operator, name, convert

    def __call__(self, x: Array) -> Any:
        try:
            return getattr(self.operator, self.name)(self.convert(x))
        except WollemiError:
            raise
        except NotImplementedError as error:
            if not self.name.startswith("r"):
                raise
            raise UnsupportedOperation(
                f"{type(self.operator).__name__} has no conjugate transpose: define _rmatvec in a "
                "subclass of SciPy's LinearOperator, pass rmatvec= to the function"
            ) from error
        except ValueError as error:
            if not _raised_by_wrapper(error):
                raise
            rows = self.operator.shape[1 if self.name.startswith("r") else 0]
            raise ShapeMismatch(
                f"{type(self.operator).__name__}: _{self.name} returned another shape than "
                f"({rows},) or ({rows}, 1): {error}"
            ) from error


def _raised_by_wrapper(error: Exception) -> bool:
    """Return whether SciPy's own wrapper raised the error, and not the user's method."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") in _WRAPPERS
