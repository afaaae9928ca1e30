"""Iterative refinement: the Richardson iteration with a preconditioner or another solver."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core.errors import InvalidArgument
from ...core.status import Stop
from ...core.step import BREAKDOWN, Steps, norm2, sqrt, where
from ..driver.divergence import MEANS, allow_growth, halt_if_diverged
from ..driver.workspace import Workspace
from .base import KrylovSolver

if TYPE_CHECKING:
    from ...core.linop import LinOp

step = Steps("ir", vectors="x r z q", reals="relaxation best growth idle")

#: A solve ends after this many corrections without a smaller residual.
IDLE = 30

#: A residual counts as smaller if it is below this multiple of the smallest one before.
SMALLER = 1 - 2.0**-12

#: A residual that grew by more than this factor is no plateau: it may fall later.
PLATEAU = 16.0


@step
def start(w: Workspace) -> None:
    """Set best = |r|, idle = 0."""
    w.best = sqrt(norm2(w.r))
    w.idle = 0


@step
def advance(w: Workspace) -> None:
    """Set x += relaxation z, r -= relaxation q; observes |r|.

    A column halts after 30 corrections that left |r| on a plateau, and where |r| diverges.
    """
    w.x += w.relaxation * w.z
    w.r -= w.relaxation * w.q
    norm = sqrt(norm2(w.r))
    smaller = norm < SMALLER * w.best
    idle = where(smaller | (norm > PLATEAU * w.best), 0, w.idle + 1)
    w.best = where(smaller, norm, w.best)
    w.idle = idle
    w.observe(norm)
    w.halt(BREAKDOWN, when=idle >= IDLE)
    halt_if_diverged(w, norm)


class Ir(KrylovSolver):
    """Iterative refinement, or the Richardson iteration: ``x += relaxation M (b - A x)``.

    With an inner solver in a lower precision, this is mixed-precision refinement: almost all work
    is done in float32, while residuals and the solution are in float64. ``inner`` accepts the same
    values as ``M``.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    inner : LinOp, matrix, settings, name or callable, optional
        An approximate inverse of ``A``: a preconditioner, or another solver such as
        ``wl.solvers.Cg(rtol=1e-4, dtype="float32")``. It is an alias of ``M``.
    relaxation : float
        The factor of a correction.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`; ``maxiter`` counts corrections.

    Raises
    ------
    InvalidArgument
        If both ``M`` and ``inner`` are given, or ``relaxation`` is not a positive number.

    Notes
    -----
    It converges if the spectral radius of ``I - relaxation M A`` is below 1; this is the asymptotic
    reduction per correction. An inner solver with ``rtol`` reduces the residual by about ``rtol``,
    as long as ``A`` rounded to the inner precision is close to ``A``. If it does not converge, the
    solve ends as *stagnated* after 30 corrections without a smaller residual, as *diverged* after a
    residual that grew by more than 1/eps, or at its limit. :class:`Fgmres` or :class:`Fcg` with the
    same inner solver may then converge.

    One iteration reads the matrix once and moves 8 vectors, plus the traffic of ``M``. The device
    runs the loop if ``M`` consists of executor operations; the host runs it around an inner solver.

    References
    ----------
    C. B. Moler, Iterative refinement in floating point, J. ACM 14 (1967); E. Carson and N. J.
    Higham, Accelerating the solution of linear systems by iterative refinement in three precisions,
    SIAM J. Sci. Comput. 40 (2018), algorithm 1.1; Y. Saad, Iterative Methods for Sparse Linear
    Systems, 2nd ed., SIAM 2003, section 4.2.1.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> inner = wl.solvers.Cg(rtol=1e-4, dtype="float32")
    >>> x, info = wl.solvers.Ir(A, inner=inner, rtol=1e-12).solve(np.array([1.0, 2.0]))
    >>> np.round(11 * x, 10), info
    (array([1., 7.]), 0)
    """

    FLEXIBLE: ClassVar[bool] = True
    RESCALES: ClassVar[bool] = False
    MEANS: ClassVar[Mapping[Stop, Stop]] = MappingProxyType(
        {Stop.BREAKDOWN: Stop.STAGNATED, **MEANS}
    )

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        inner: Any = None,
        relaxation: float = 1.0,
        **settings: Any,
    ) -> None:
        if M is not None and inner is not None:
            raise InvalidArgument("inner is another name of M: give one of the two")
        if not isinstance(relaxation, (int, float, np.number)) or not 0 < relaxation < np.inf:
            raise InvalidArgument(f"relaxation: expected a positive number, got {relaxation!r}")
        super().__init__(A, inner if M is None else M, **settings)
        self.relaxation = float(relaxation)

    def _remade(self, A: LinOp, M: LinOp | None, **changed: Any) -> Self:
        return super()._remade(A, M, inner=None, **changed)

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps; without a preconditioner z is r."""
        if work.M is None:
            work.z = work.r
        work.make(step)
        given = np.full(work.k, self.relaxation)
        work.executor.copy_into(work.relaxation, given.astype(work.relaxation.dtype))
        allow_growth(work)

    def initialize(self, work: Workspace) -> None:
        """Use the norm of the residual as the smallest one."""
        start(work)

    def iterate(self, work: Workspace) -> None:
        """One correction."""
        w = work
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)  # z = M r
        w.A._apply(w.z, w.q, 1.0, 0.0)  # q = A z
        advance(w)  # x, r
