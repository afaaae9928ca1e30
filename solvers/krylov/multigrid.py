"""Multigrid cycles as a standalone solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.status import Stop
from ...core.step import Steps, norm2, sqrt, where
from ..driver.divergence import MEANS, allow_growth, halt_if_diverged
from ..driver.workspace import Workspace
from .base import KrylovSolver

step = Steps("multigrid", vectors="x r z q", reals="best growth")


@step
def start(w: Workspace) -> None:
    """Set best = |r|."""
    w.best = sqrt(norm2(w.r))


@step
def correct(w: Workspace) -> None:
    """Set x += z, r -= q with q = A z; observes |r|.

    A column halts where |r| diverges.
    """
    w.x += w.z
    w.r -= w.q
    norm = sqrt(norm2(w.r))
    w.best = where(norm < w.best, norm, w.best)
    w.observe(norm)
    halt_if_diverged(w, norm)


class Multigrid(KrylovSolver):
    """Multigrid cycles without a Krylov method around them: ``x += M (b - A x)``.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : str, Settings or LinOp
        The cycle: :class:`wollemi.preconditioners.Amg` by default, or
        :class:`wollemi.preconditioners.Multigrid` with user-defined levels. Any other operator is
        accepted if the iteration converges with it.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`.

    Notes
    -----
    An iteration is a cycle, a product and one pass over vectors; its only reduction is the norm of
    the residual. A Krylov method takes fewer cycles with slightly more work in each: prefer
    ``Cg(A, M="amg")`` if the matrix is Hermitian positive definite. Divergent cycles end as
    *diverged*, after a residual that grew by more than 1/eps.

    References
    ----------
    W. L. Briggs, V. E. Henson, S. F. McCormick, A Multigrid Tutorial, 2nd ed., SIAM 2000.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, wollemi as wl
    >>> line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
    >>> A = wl.Csr(sp.kronsum(line, line, format="csr"))
    >>> wl.solvers.Multigrid(A, rtol=1e-8).solve(np.ones(1600)).converged
    True
    """

    FLEXIBLE: ClassVar[bool] = True
    OWN_M: ClassVar[str] = "amg"
    RESCALES: ClassVar[bool] = False
    MEANS: ClassVar[Mapping[Stop, Stop]] = MEANS

    def __init__(self, A: Any, M: Any = "amg", **options: Any) -> None:
        super().__init__(A, "amg" if M is None else M, **options)

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps."""
        work.make(step)
        allow_growth(work)

    def initialize(self, work: Workspace) -> None:
        """Start from the true residual, ``work.r``."""
        start(work)

    def iterate(self, work: Workspace) -> None:
        """One iteration."""
        w = work
        assert w.M is not None
        w.M._apply(w.r, w.z, 1.0, 0.0)  # z = M r
        w.A._apply(w.z, w.q, 1.0, 0.0)  # q = A z
        correct(w)  # x += z, r -= q
