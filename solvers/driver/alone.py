"""Solvers that work on one executor, and refuse operators that a group shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import UnsupportedOperation
from ...core.executor import Executor

if TYPE_CHECKING:
    from ...core.linop import LinOp


def require_one_executor(solver: str, operator: LinOp) -> None:
    """Raise unless an operator lives on one executor.

    Raises
    ------
    UnsupportedOperation
        If a group shares it.
    """
    where = operator.executor
    if not isinstance(where, Executor) or where.links is not None:
        raise UnsupportedOperation(
            f"{solver} works on one executor, and this {type(operator).__name__} is shared by a "
            "group; make the matrix on one of its members"
        )
