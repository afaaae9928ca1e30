"""NumPy's protocols for operators.

An operator is not an array. wollemi implements Python's operators (``array @ op``, ``2.0 * op``).
NumPy functions, and conversions of an operator to an array, raise an error that names the
alternative. Without these protocols NumPy would continue with an object array of one element.
"""

from __future__ import annotations

import operator
import sys
from types import FrameType
from typing import Any

import numpy as np

from .equivalents import of_function
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperand

#: The NumPy functions that operators support.
_FACTS = (np.shape, np.ndim, np.iscomplexobj, np.isrealobj)

#: The ufuncs behind Python's operators: the method of the first operand, and the reflected method
#: of the second operand for calls with a wollemi operator only there.
_METHODS = {
    np.matmul: ("__matmul__", "__rmatmul__"),
    np.add: ("__add__", "__radd__"),
    np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"),
    np.true_divide: ("__truediv__", "__rtruediv__"),
    np.power: ("__pow__", ""),
    np.negative: ("__neg__", ""),
    np.absolute: ("__abs__", ""),
    np.conjugate: ("conj", ""),
}

#: Operators compare by identity.
_COMPARISONS = {np.equal: operator.is_, np.not_equal: operator.is_not}

#: The functions in which SciPy tests whether the other operand of its sparse matrix is an array. An
#: object array of one element means no; SciPy then leaves the operation to wollemi.
_SCIPY_ASKS = {"_matmul_dispatch", "_rmatmul_dispatch", "_comparison"}

#: The NumPy functions that are methods of matrices.
_OF_MATRICES = {
    **{getattr(np, name): name for name in ("sum", "mean", "max", "min", "nanmax", "nanmin")},
    **{getattr(np, name): name for name in ("argmax", "argmin", "trace", "diagonal", "nonzero")},
    **{getattr(np, name): name for name in ("tril", "triu", "reshape", "count_nonzero", "copy")},
    np.transpose: "transpose",
    np.round: "__round__",
}


class _Ufuncs:
    """Descriptor of ``__array_ufunc__``: None for other libraries, a function for NumPy.

    CuPy, PyTorch and Python array classes leave ``array @ op`` to the operator if its attribute is
    None. With None, NumPy would refuse ``np.sqrt(op)`` without an alternative. NumPy reads the
    attribute from the type, the other libraries from the instance.
    """

    def __get__(self, instance: Any, owner: type) -> Any:
        return _ufunc if instance is None else None


def _ufunc(_: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    if method == "__call__" and not options:
        matrix = next((i for i in inputs if hasattr(i, "_ufunc")), None)
        if matrix is not None:
            answer = matrix._ufunc(ufunc, inputs)
            if answer is not NotImplemented:
                return answer
        elif ufunc in _COMPARISONS:
            return _COMPARISONS[ufunc](*inputs)
        which = 0 if isinstance(inputs[0], ArrayProtocol) else 1
        name = _METHODS.get(ufunc, ("", ""))[which]
        if hasattr(inputs[which], name):
            answer = getattr(inputs[which], name)(*inputs[1 - which :][: len(inputs) - 1])
            if answer is not NotImplemented:
                return answer
    if method == "__call__" and _is_in_place(inputs, options):
        if ufunc in (np.add, np.subtract):
            return _added_in_place(ufunc, *inputs)
        if ufunc in (np.multiply, np.matmul):
            return _multiplied_in_place(ufunc, *inputs)
    ours = next((i for i in inputs if isinstance(i, ArrayProtocol)), None)
    if ours is None:  # ``out`` is an operator
        raise UnsupportedOperand(f"numpy.{ufunc.__name__} cannot write into an operator")
    raise UnsupportedOperand(_instead(ufunc.__name__, ours))


def _is_in_place(inputs: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether a call is an in-place operation such as ``y += A`` of array and matrix."""
    return (
        {"out"} <= set(options) <= {"out", "axes"}  # y @= A names axes
        and options["out"][0] is inputs[0]
        and isinstance(inputs[0], np.ndarray)
        and getattr(inputs[1], "_has_entries", False)
    )


def _added_in_place(ufunc: Any, target: Any, matrix: Any) -> Any:
    np.copyto(target, target + matrix if ufunc is np.add else target - matrix)
    return target


def _multiplied_in_place(ufunc: Any, target: Any, matrix: Any) -> Any:
    """Return the sparse ``y * A``, or ``y @ A``, as SciPy does for ``y *= A`` and ``y @= A``.

    If the product has the shape of the array, the array is overwritten with its entries.
    """
    if ufunc is np.matmul and target.shape[-1] != matrix.shape[0]:
        raise ShapeMismatch(
            f"y @= A: dimension mismatch, the shapes are {target.shape} and {matrix.shape}: the "
            "last length of y must be the number of rows of A"
        )
    product = target * matrix if ufunc is np.multiply else target @ matrix
    if product.shape == target.shape:
        entries = product.to_dense() if ufunc is np.multiply else product
        np.copyto(target, entries, casting="same_kind")
    return product


def _instead(name: str, op: Any) -> str:
    return (
        f"unsupported operand: numpy.{name} does not take a {type(op).__name__}: "
        f"{of_function(name)}A @ x is the product, and A.to_scipy() or A.to_dense() is a matrix "
        "for other functions"
    )


def asked_by_scipy(caller: FrameType) -> bool:
    """Return whether the caller is SciPy's test for an array before a multiplication."""
    module = str(caller.f_globals.get("__name__"))
    return module.startswith("scipy.sparse.") and caller.f_code.co_name in _SCIPY_ASKS


def alone(op: Any) -> np.ndarray[Any, Any]:
    """Return an object array of one element, as NumPy makes of an object that is no array."""
    array = np.empty((), object)
    array[()] = op
    return array


class ArrayProtocol:
    """The base of operators that implements the protocols of NumPy and SciPy."""

    __array_ufunc__ = _Ufuncs()

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function in _FACTS:
            return function(np.broadcast_to(self.dtype.type(), self.shape))
        name = _OF_MATRICES.get(function)
        if name and args and args[0] is self and hasattr(self, name):
            return getattr(self, name)(*args[1:], **kwargs)
        raise UnsupportedOperand(_instead(function.__name__, self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if asked_by_scipy(sys._getframe(1)):
            return alone(self)
        raise UnsupportedOperand(
            f"a {type(self).__name__} is no array: take a matrix as A.to_scipy() for SciPy and as "
            "A.to_dense() for NumPy"
        )

    def __format__(self, spec: str) -> str:
        """Return the text of this operator; in SciPy's messages it includes the remedy."""
        shown = super().__format__(spec)
        if str(sys._getframe(1).f_globals.get("__name__")).startswith("scipy.sparse."):
            return f"{shown}; SciPy's functions take A.to_scipy()"
        return shown

    def __bool__(self) -> bool:
        if self.shape == (1, 1) and hasattr(self, "__getitem__"):
            return bool(self[0, 0])
        raise InvalidArgument(
            f"a {type(self).__name__} is neither true nor false: ask A is not None, or "
            "A.count_nonzero() > 0 of a matrix"
        )
