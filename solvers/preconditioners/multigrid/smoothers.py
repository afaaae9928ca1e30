"""Smoothers: any preconditioner that improves an iterate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ....core.errors import InvalidArgument
from ....core.lazy import Temporary
from ....core.linop import LinOp
from ....core.settings import Settings
from ...spectrum import estimate
from .. import smoothing
from ..base import Preconditioner
from ..block_jacobi import BlockJacobi
from ..chebyshev import LOWER, LOWER_OF_OTHERS, Chebyshev, run
from ..jacobi import Jacobi
from ..l1jacobi import L1Jacobi
from ..names import parsed, preconditioner
from ..sor import Ssor

if TYPE_CHECKING:
    from ....core.executor import Array
    from ....core.formats import Matrix

#: Preconditioners that are Hermitian if the matrix is. They smooth before and after the coarse
#: level. Other preconditioners smooth with their adjoint after it, so that the cycle is Hermitian.
HERMITIAN = (Chebyshev, L1Jacobi, Jacobi, BlockJacobi, Ssor)

#: Preconditioners that need a damping factor to converge: 4/3 divided by the largest eigenvalue of
#: ``M A``.
DAMPED = (Jacobi, BlockJacobi)
DAMPING = 4.0 / 3.0


class Smoother:
    """``x += weight M (b - A x)``, or a preconditioner's own smoothing method.

    Attributes
    ----------
    M : LinOp
        An approximate inverse of the level's matrix.
    weight : float
        The damping factor.
    """

    def __init__(self, A: Matrix, M: LinOp, weight: float = 1.0) -> None:
        self.A, self.M, self.weight = A, M, weight
        self._temporary = Temporary()

    def __repr__(self) -> str:
        return f"<smoother {self.M!r}, weight {self.weight:.3g}>"

    @property
    def resident(self) -> bool:
        """Whether smoothing consists of executor operations alone."""
        return self.M.resident

    def apply(self, b: Array, x: Array, from_zero: bool) -> None:
        """Improve ``x``; ``from_zero`` assumes that it is 0, without reading it."""
        smooth = getattr(self.M, "_smooth", None)
        if smooth is not None:
            smooth(b, x, from_zero)
        elif from_zero:
            self.M._apply(b, x, self.weight, 0.0)
        else:
            executor, (n, k) = self.A.executor, x.shape
            with self._temporary.block(executor, n, k, self.A.dtype) as q:
                self.A._apply(x, q, 1.0, 0.0)
                run(smoothing.residual, executor, {"b": b, "q": q})
                self.M._apply(q, x, self.weight, 1.0)

    def remade(self, A: Matrix, change: Callable[[LinOp], LinOp]) -> Self:
        """Return this smoother with all operators of its preconditioner changed."""
        M = self.M._remade(change) if isinstance(self.M, Preconditioner) else change(self.M)
        return type(self)(A, M, self.weight)

    def turned(self, A: Matrix, turn: Callable[[LinOp], LinOp]) -> Self:
        """Return the transposed or the adjoint smoother."""
        return type(self)(A, turn(self.M), self.weight)


def smoothers_of(
    A: Matrix, choice: Any, is_hermitian: Callable[[], bool]
) -> tuple[Smoother, Smoother]:
    """Return the smoothers before and after the coarse level.

    Parameters
    ----------
    A : Matrix
        The matrix of the level.
    choice : str, Settings, type, callable, or a pair of these
        The value of ``smoother=``; a callable creates a preconditioner for ``A``.
    is_hermitian : callable
        Returns whether the matrix of the finest level is Hermitian; called only if that matters.
    """
    if isinstance(choice, (tuple, list)):
        if len(choice) != 2:
            raise InvalidArgument(
                f"smoother: expected one or a pair (before, after), got {len(choice)} of them"
            )
        first, second = (_smoother_of(one, A) for one in choice)
        return Smoother(A, first, _weight(A, first)), Smoother(A, second, _weight(A, second))
    M = _smoother_of(choice, A)
    before = Smoother(A, M, _weight(A, M))
    if isinstance(M, HERMITIAN) or not is_hermitian():
        return before, before
    adjoint = getattr(M, "H", None)
    return before, before if adjoint is None else Smoother(A, adjoint, before.weight)


def settled(choice: Any, is_hermitian: Callable[[], bool]) -> Any:
    """Return the requested smoother, with a Chebyshev interval if none is given.

    All levels use the interval for the finest matrix: on coarser levels, which are products of
    sums, mirror images differ by more than rounding.
    """
    if isinstance(choice, (tuple, list)):
        return tuple(settled(one, is_hermitian) for one in choice)
    settings = parsed(choice) if isinstance(choice, str) else choice
    if not isinstance(settings, Settings) or settings.kind is not Chebyshev:
        return choice
    options = settings.options
    if options.get("fraction") is not None or isinstance(options.get("bounds"), (tuple, list)):
        return settings
    return settings.replace(fraction=LOWER if is_hermitian() else LOWER_OF_OTHERS)


def _smoother_of(choice: Any, A: Matrix) -> LinOp:
    if isinstance(choice, (str, Settings)):
        smoother = preconditioner(choice, A)
    elif callable(choice) and not isinstance(choice, LinOp):
        smoother = choice(A)
        if isinstance(smoother, Settings):
            smoother = smoother.on(A)
    else:
        smoother = choice
    if not isinstance(smoother, LinOp) or smoother.shape != A.shape:
        raise InvalidArgument(
            'smoother: expected a name such as "chebyshev:degree=2", settings such as '
            f"Chebyshev(degree=2), or a function of a level's matrix that makes one; got {choice!r}"
        )
    return smoother


def _weight(A: Matrix, M: LinOp) -> float:
    if not isinstance(M, DAMPED) or A.shape[0] == 0:
        return 1.0
    radius = estimate(A, M).radius
    return DAMPING / radius if radius > 0 else 1.0
