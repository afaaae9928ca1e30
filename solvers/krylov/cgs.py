"""The conjugate gradient squared method."""

from __future__ import annotations

from typing import ClassVar

from ...core.step import Steps, dot
from ..driver.workspace import Workspace
from .base import KrylovSolver
from .bicgstab import begin, close_iteration, divide_or_halt

step = Steps(
    "cgs",
    vectors="x r y w shadow p q u v",
    scalars="rho rho_old alpha",
    reals="scale",
)


@step
def start(w: Workspace) -> None:
    """Set shadow = r, p = q = 0, rho = |r|^2, rho_old = 1, scale = |r|."""
    begin(w)
    w.p = 0
    w.q = 0


@step
def direction(w: Workspace) -> None:
    """Set u = r + beta q, p = u + beta (q + beta p) with beta = rho / rho_old."""
    beta = w.rho / w.rho_old
    w.u = w.r + beta * w.q
    w.p = w.u + beta * (w.q + beta * w.p)


@step
def length(w: Workspace) -> None:
    """Set alpha = rho / <shadow, v>; a column where that is 0 or not finite breaks down."""
    w.alpha = divide_or_halt(w, w.rho, dot(w.shadow, w.v))


@step
def half(w: Workspace) -> None:
    """Set q = u - alpha v, u += q."""
    w.q = w.u - w.alpha * w.v
    w.u += w.q


@step
def update(w: Workspace) -> None:
    """Set x += alpha w, r -= alpha v; rho_old = rho, rho = <shadow, r>; observes |r|.

    Then a running column with |rho| <= eps^2 |shadow| |r| halts as broken down.
    """
    w.x += w.alpha * w.w
    w.r -= w.alpha * w.v
    close_iteration(w)


class Cgs(KrylovSolver):
    """Conjugate gradients squared, for any square operator.

    If it converges, it needs fewer products than BiCGSTAB, but converges less smoothly.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``, applied from the right.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`. An iteration applies ``A`` and ``M`` twice.

    Notes
    -----
    Breakdowns are handled as in :class:`Bicgstab`. One iteration without ``M`` reads the matrix
    twice and moves 21 vectors.

    References
    ----------
    P. Sonneveld, CGS, a fast Lanczos-type solver for nonsymmetric linear systems, SIAM J. Sci.
    Stat. Comput. 10 (1989); R. Barrett et al., Templates, SIAM 1994, section 2.3.7.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Cgs(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    SPARE: ClassVar[str] = "v"

    def allocate(self, work: Workspace) -> None:
        """Allocate the directions; without a preconditioner, p and u are used directly."""
        if work.M is None:
            work.vectors("p", "u")
            work.y, work.w = work.p, work.u
        else:
            work.vectors("y")
            work.w = work.y
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Shadow = r, p = q = 0."""
        start(work)

    def iterate(self, work: Workspace) -> None:
        """u, p, alpha, q, x, r, in this order."""
        w = work
        direction(w)  # u = r + beta q, p = u + beta (q + beta p)
        if w.M is not None:
            w.M._apply(w.p, w.y, 1.0, 0.0)  # y = M p
        w.A._apply(w.y, w.v, 1.0, 0.0)  # v = A y
        length(w)  # alpha = rho / <shadow, v>
        half(w)  # q = u - alpha v, u += q
        if w.M is not None:
            w.M._apply(w.u, w.w, 1.0, 0.0)  # w = M (u + q)
        w.A._apply(w.w, w.v, 1.0, 0.0)  # v = A w
        update(w)  # x += alpha w, r -= alpha v, rho = <shadow, r>
