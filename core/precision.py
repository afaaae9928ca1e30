"""Operators that compute in their own precision inside a computation in a higher precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import common_dtype, double_dtype, is_complex
from .executor import Array, Executor
from .linop import LinOp
from .operations import vector
from .small_values import as_dtype


class InPrecision(LinOp):
    """An operator that computes in its own dtype and is applied to blocks of another dtype.

    Parameters
    ----------
    inner : LinOp
        The operator, which computes in its own dtype.
    dtype : dtype
        Dtype of the blocks: real or complex like the operator's dtype, and wider.

    Notes
    -----
    Array functions that the host calls round inputs and widen outputs. Therefore this class suits
    operators that the host drives anyway, such as a solver within a solver.
    """

    def __init__(self, inner: LinOp, dtype: Any) -> None:
        self.inner, self.dtype = inner, np.dtype(dtype)
        self.shape, self.executor = inner.shape, inner.executor

    @property
    def resident(self) -> bool:
        """False, because the host converts."""
        return False

    @property
    def varies(self) -> bool:
        """Whether applying is not a fixed linear map."""
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
        """Return the operator for blocks of another dtype; it keeps its own precision."""
        return in_precision(self.inner, dtype)


def in_precision(operator: LinOp, dtype: Any) -> LinOp:
    """Return an operator that can be applied to blocks of ``dtype``.

    An operator that the host drives keeps its precision, because its caller chose it: an inner
    solver in float32 is cheaper than one in float64. Other operators, such as a diagonal, compute
    in ``dtype``.
    """
    dtype = np.dtype(dtype)
    if operator.dtype == dtype or operator.resident:
        return operator.astype(dtype)
    if is_complex(dtype) and not is_complex(operator.dtype):
        operator = operator.astype(common_dtype(operator.dtype, np.dtype(np.complex64)))
    return operator if operator.dtype == dtype else InPrecision(operator, dtype)


def in_double(operator: LinOp) -> LinOp | None:
    """Return an operator that computes in double precision with the values of another operator.

    Residuals of single-precision solves use it: the sum of each row is then rounded only once.

    Parameters
    ----------
    operator : LinOp
        A matrix or an expression of matrices.

    Returns
    -------
    LinOp or None
        ``operator`` itself if it computes in double precision. A CSR matrix shares its values with
        the result; other formats store a converted copy, which is updated with their values. None
        for an operator that is known only as a function, and on a device without double precision.

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
    result: LinOp | None = operator._in_double()
    return result
