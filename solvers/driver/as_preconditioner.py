"""The solver's argument M, as an operator."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ...core.executor import same_executor
from ...core.linop import LinOp
from ...core.operator import LinearOperator, as_linop


def as_preconditioner(M: Any, A: LinOp) -> LinOp:
    """Return ``M`` as an operator that fits ``A``; a callable becomes one."""
    if callable(M) and not hasattr(M, "shape"):
        M = LinearOperator(A.shape, M, dtype=A.dtype, executor=A.executor)
        M.__dict__["_like"] = A
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
