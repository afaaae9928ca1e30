"""Convert the solver's argument ``M`` to an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ...core.executor import same_executor
from ...core.linop import LinOp
from ...core.operator import LinearOperator
from ...core.operator_conversions import as_linop

if TYPE_CHECKING:
    from ...core.executor import Array


def _of_factors(factors: Any, A: LinOp) -> LinOp:
    """Return factors of another library, such as ``scipy.sparse.linalg.splu(S)``, as an operator.

    They solve on the host.
    """

    def solve(x: Array) -> Array:
        host = np.asarray(A.executor.to_host(x))
        return A.executor.from_host(np.asarray(factors.solve(host.copy()), A.dtype))

    return LinearOperator(factors.shape, solve, matmat=solve, dtype=A.dtype, executor=A.executor)


def as_preconditioner(M: Any, A: LinOp) -> LinOp:
    """Return ``M`` as an operator that matches ``A``; a callable is wrapped."""
    if callable(M) and not hasattr(M, "shape"):
        M = LinearOperator(A.shape, M, dtype=A.dtype, executor=A.executor)
        M.__dict__["_like"] = A
    if hasattr(M, "solve") and hasattr(M, "shape") and not hasattr(M, "matvec"):
        M = _of_factors(M, A)
    if hasattr(M, "aspreconditioner"):  # a hierarchy of PyAMG
        M = M.aspreconditioner()
    try:
        operator = as_linop(M, A.executor)
    except (InvalidArgument, InvalidMatrix) as error:
        raise type(error)(
            f"M: {error}; M is an operator, a function or a name, and a diagonal is wl.Diagonal(d)"
        ) from None
    if operator.shape != A.shape:
        raise ShapeMismatch(
            f"M is {operator.shape[0]}x{operator.shape[1]} and A is {A.shape[0]}x{A.shape[1]}"
        )
    if operator._follows:
        operator = operator.to(A.executor)
    same_executor("the solver", A, operator)
    return operator
