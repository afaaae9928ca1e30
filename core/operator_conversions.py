"""Conversions of other libraries' matrices and operators to operators.

SciPy's operator class checks and reshapes the results of its subclasses, and reports mistakes as
NumPy errors. This module applies the same rules, and its errors name the class and its method.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import value_dtype
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperation, WollemiError
from .formats import Csr, Dense
from .formats.given import checked_shape
from .formats.other_libraries import is_sparse, matrix_beside, refuse_matrices_within
from .linop import LinOp
from .operands import to_host
from .operator import LinearOperator
from .registry import executor as executor_by_name
from .registry import get_default_executor

if TYPE_CHECKING:
    from .executor import Array, Executor


#: Modules that reshape the result of a user's method. An error raised there concerns the shape of
#: the result.
_WRAPPERS = ("scipy.sparse.linalg._interface", "cupyx.scipy.sparse.linalg._interface")


def operator_from(operator: Any, executor: Executor | str | None = None) -> LinearOperator:
    """Return an object with ``shape`` and ``matvec`` as a :class:`wollemi.LinearOperator`.

    Parameters
    ----------
    operator : object
        A ``scipy.sparse.linalg.LinearOperator``: its functions map NumPy arrays, or arrays of its
        ``xp``. Or another object with SciPy's method names: its functions map native arrays of the
        executor.
    executor : Executor or str, optional
        The executor that applies the operator. By default it is the GPU for an operator on CuPy
        arrays, and the default executor for others.

    Returns
    -------
    LinearOperator
        If the object has no dtype, the operator has the dtype of the image of zeros, as in SciPy.
        If the object has no adjoint, applying ``H`` raises UnsupportedOperation.

    Raises
    ------
    InvalidArgument
        If the object has no shape, or has leading axes, because it then represents several
        operators, or if a subclass of SciPy's class defines no map of vectors.
    """
    if not hasattr(operator, "shape"):
        raise InvalidArgument(
            f"a {type(operator).__name__} has matvec but no shape: give it a shape of two integers"
        )
    if isinstance(operator.shape, tuple) and len(operator.shape) > 2:
        raise InvalidArgument(
            f"a {type(operator).__name__}: expected 2-D, got shape {tuple(operator.shape)}, which "
            "is several operators: give one of them, or a batch of matrices (wl.batch)"
        )
    shape = checked_shape(operator.shape)
    of_scipy = _is_of_scipy(operator)
    blocks = of_scipy and _says_how(operator)
    xp = getattr(operator, "_xp", np) if of_scipy else None
    if _is_of_cupy(xp):
        executor, xp = executor or "cuda", None
    on_host = xp is not None
    convert = _converter(xp)
    methods: dict[str, Any] = {
        name: _Method(operator, name, convert)
        for name in ("matvec", "rmatvec", *(("matmat", "rmatmat") if blocks else ()))
        if hasattr(operator, name)
    }
    dtype = getattr(operator, "dtype", None)
    if dtype is not None and on_host:
        dtype = str(dtype).rpartition(".")[2]  # array libraries have their own dtypes
    where = get_default_executor() if executor is None else executor_by_name(executor)
    if dtype is None:
        dtype = _found_dtype(methods["matvec"], where, shape[1], on_host)
    return LinearOperator(shape, **methods, dtype=dtype, executor=executor)


def _is_of_cupy(xp: Any) -> bool:
    """Return whether an array namespace is CuPy's, or SciPy's wrapper of it."""
    return "cupy" in getattr(xp, "__name__", "").split(".")


def _converter(xp: Any) -> Callable[[Array], Any]:
    """Return the function that converts native arrays to a namespace; None: no conversion."""
    if xp is None:
        return lambda x: x
    if "numpy" in getattr(xp, "__name__", "numpy").split(".")[-2:]:
        return to_host
    return lambda x: xp.asarray(to_host(x))


def _is_of_scipy(operator: object) -> bool:
    module = sys.modules.get("scipy.sparse.linalg")
    return module is not None and isinstance(operator, module.LinearOperator)


def _says_how(operator: Any) -> bool:
    """Return whether a subclass of SciPy's class maps blocks by itself.

    Raises
    ------
    InvalidArgument
        If it maps neither blocks nor vectors: SciPy's two defaults would call each other forever.
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

    SciPy's operators get zeros of the narrowest dtype, as in SciPy, so that a float32 operator
    keeps its dtype. Other objects get float64 zeros, the dtype of solvers.
    """
    if on_host:
        return value_dtype(np.asarray(matvec(np.zeros(columns, np.int8))).dtype)
    zeros = executor.from_host(np.zeros(columns))
    return value_dtype(getattr(matvec(zeros), "dtype", np.float64))


class _Method:
    """A method of the user's operator; its mistakes raise wollemi's errors."""

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
    """Return whether SciPy's wrapper, not the user's method, raised the error."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") in _WRAPPERS


def as_linop(operator: Any, executor: Executor | str | None = None) -> LinOp:
    """Return ``operator`` as a LinOp.

    Parameters
    ----------
    operator : LinOp, matrix, ``scipy.sparse.linalg.LinearOperator`` or dense array
        The object to convert. A sparse matrix of SciPy, CuPy or PyTorch becomes a
        :class:`wollemi.Csr`. SciPy's operators map NumPy arrays on every executor. A subclass of
        SciPy's class may define ``_matvec`` alone, without a dtype: its dtype is then the dtype of
        the image of zeros.
    executor : Executor or str, optional
        The executor for a host matrix; the default executor by default.

    Raises
    ------
    UnsupportedDtype
        If the matrix has 16-bit values.
    InvalidArgument
        If the operator has no shape, or defines no map of vectors.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.as_linop(np.eye(2), "reference")
    <Dense 2x2 float64 on reference>
    """
    if isinstance(operator, LinOp):
        value_dtype(operator.dtype)  # only spmm, sddmm and fusedmm support 16-bit matrices
        return computing(operator)
    if getattr(operator, "_is_batch", False):
        raise UnsupportedOperation(
            "a batch of matrices is no single operator: Krylov solvers, such as wl.solvers.Cg(A), "
            "take batches; elsewhere use A[k], one matrix at a time"
        )
    if hasattr(operator, "matvec") and not hasattr(operator, "tocsr"):
        return operator_from(operator, executor)
    refuse_matrices_within(operator)
    if is_sparse(operator) or getattr(operator, "layout", None) is not None:
        return computing(Csr(operator, executor=executor))
    return computing(Dense(operator, executor=executor))


def computing(operator: LinOp) -> LinOp:
    """Return an operator that computes in floating-point numbers.

    A matrix of integers or booleans is converted to float64; the copy is stored with it.
    """
    if operator.dtype.kind not in "bi":
        return operator
    made: LinOp | None = operator._in_double()  # type: ignore[attr-defined]
    return operator.astype(np.float64) if made is None else made


def operator_beside(executor: Executor, other: Any) -> LinOp | None:
    """Return ``other`` of ``A @ other`` as an operator, or None if it is none.

    Host sparse matrices are copied to ``executor``; device matrices stay on their device.
    """
    if hasattr(other, "tocsr") or hasattr(other, "layout"):
        return matrix_beside(executor, other)
    return as_linop(other, executor) if hasattr(other, "matvec") else None
