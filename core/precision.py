"""An operator in a precision of its own within a computation in a higher one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import common_dtype, double_dtype, is_complex
from .executor import Array, Executor
from .linop import LinOp
from .operations import vector
from .small_values import as_dtype


class InPrecision(LinOp):
    """An operator that computes in its own dtype, for blocks of another one.

    Parameters
    ----------
    inner : LinOp
        Computes in its own dtype.
    dtype : dtype
        Of the blocks that it is applied to: as real or complex as the operator's, and wider.

    Notes
    -----
    Inputs are rounded and outputs are widened by array functions that the host calls, so that it is
    for operators that the host drives anyway, such as a solver within a solver.
    """

    def __init__(self, inner: LinOp, dtype: Any) -> None:
        self.inner, self.dtype = inner, np.dtype(dtype)
        self.shape, self.executor = inner.shape, inner.executor

    @property
    def resident(self) -> bool:
        """False: the host converts."""
        return False

    @property
    def varies(self) -> bool:
        """Whether applying is not one fixed linear map."""
        return self.inner.varies

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        found = self.executor.allocate(y.shape, self.inner.dtype)
        self.inner._apply(as_dtype(self.executor, x, self.inner.dtype), found, 1.0, 0.0)
        self.executor.run(vector.axpby, as_dtype(self.executor, found, self.dtype), y, alpha, beta)

    def _private(self) -> LinOp:
        return InPrecision(self.inner._private(), self.dtype)

    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor."""
        return InPrecision(self.inner.to(executor), self.dtype)

    def astype(self, dtype: Any) -> LinOp:
        """Return the operator for blocks of another dtype, in its own precision still."""
        return in_precision(self.inner, dtype)


def in_precision(operator: LinOp, dtype: Any) -> LinOp:
    """Return an operator for blocks of ``dtype``.

    One that the host drives keeps its precision, since its caller chose it: an inner solver in
    float32 is cheaper than one in float64. Others, such as a diagonal, compute in ``dtype``.
    """
    dtype = np.dtype(dtype)
    if operator.dtype == dtype or operator.resident:
        return operator.astype(dtype)
    if is_complex(dtype) and not is_complex(operator.dtype):
        operator = operator.astype(common_dtype(operator.dtype, np.dtype(np.complex64)))
    return operator if operator.dtype == dtype else InPrecision(operator, dtype)


def in_double(operator: LinOp) -> LinOp | None:
    """Return an operator that computes in double precision with the values of another one.

    Residuals of single precision are made with it: the sum of each row is then rounded once.

    Parameters
    ----------
    operator : LinOp
        A matrix or an expression of matrices.

    Returns
    -------
    LinOp or None
        ``operator`` itself if it computes in double precision. A matrix by rows shares its values;
        other formats keep a copy of them, which follows new values. None for an operator that is
        known by a function alone, and on a device without double precision.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> from wollemi.core.precision import in_double
    >>> A = wl.Csr(np.eye(2, dtype=np.float32))
    >>> in_double(A).dtype, in_double(A).data is A.data
    (dtype('float64'), True)
    """
    if operator.dtype == double_dtype(operator.dtype):
        return operator
    if not operator.executor.has_double or not hasattr(operator, "_in_double"):
        return None
    made: LinOp | None = operator._in_double()
    return made
