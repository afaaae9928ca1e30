"""Check that a user's class applies the preconditioner that it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...core.errors import InvalidArgument
from .host_writes import is_own

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.linop import LinOp
    from ..krylov.base import KrylovSolver
    from ..least_squares.base import LeastSquaresSolver
    from .workspace import Workspace

#: The names of the methods that apply an operator.
_NAMES = ("apply_block", "_apply")


@contextmanager
def applications_required(
    solver: KrylovSolver | LeastSquaresSolver, work: Workspace
) -> Iterator[None]:
    """Require that the first solve in a workspace applies ``work.M`` or its transpose.

    A preconditioner that no iteration applies has no effect, and the result would not say so.
    Classes with an ``iterate`` of the package are not checked.

    Parameters
    ----------
    solver : KrylovSolver or LeastSquaresSolver
        The solver.
    work : Workspace
        The workspace of the solve.

    Raises
    ------
    InvalidArgument
        If iterations ran but did not apply the preconditioner.
    """
    kind = type(solver)
    operators = [op for op in (work.M, vars(work).get("M_T")) if op is not None]
    if work.applies_M or is_own(kind) or not operators:
        yield
        return
    watched = {id(op): _watch(op, work) for op in operators}
    try:
        yield
    finally:
        # if solves with one M overlap, only the last one watches until its end
        complete = [vars(op).get(_NAMES[0]) is watched[id(op)] for op in operators]
        for op in operators:
            for name in _NAMES:
                vars(op).pop(name, None)
    if all(complete) and not work.applies_M and work.status.read("iterations").any():
        raise InvalidArgument(
            f"{kind.__name__}.iterate never applies work.M, so that M ({type(work.M).__name__}) "
            "has no effect; apply it (work.M.apply_block(work.r, work.z, 1.0, 0.0)), or set "
            "TAKES_M = False in the class, which then refuses M"
        )


def _watch(operator: LinOp, work: Workspace) -> Callable[..., None]:
    """Record applications of an operator in the workspace; return the recording method."""
    apply = operator._apply

    def applied(x: Array, y: Array, alpha: complex, beta: complex) -> None:
        work.applies_M = True
        apply(x, y, alpha, beta)

    for name in _NAMES:
        vars(operator)[name] = applied
    return applied
