"""The stabilized bi-conjugate gradient method."""

from __future__ import annotations

from typing import Any

from ..core.step import BREAKDOWN, NOT_FINITE, Steps, absolute, dot, finite, norm2, sqrt, where
from .krylov import KrylovSolver
from .workspace import Workspace

step = Steps(
    "bicgstab",
    vectors="x r y z shadow p v t",
    scalars="rho rho_old alpha omega",
    reals="scale",
    flags="halfway",
)


def begin(w: Workspace) -> None:
    """Take the residual as its own shadow; rho_old = 1, scale = |shadow|."""
    w.shadow = w.r
    w.rho, w.rho_old = norm2(w.r), 1
    w.scale = sqrt(norm2(w.r))


def divide_or_halt(w: Workspace, above: Any, below: Any, when: Any = None) -> Any:
    """Return ``above / below``; halt where that is no step, of the columns that are asked for."""
    quotient = above / below
    lost = ~(finite(above) & finite(below))
    broken = (below == 0) | ~finite(quotient)
    w.halt(NOT_FINITE, when=lost if when is None else when & lost)
    w.halt(BREAKDOWN, when=broken if when is None else when & broken)
    return quotient


def close_iteration(w: Workspace) -> None:
    """Observe |r|; halt where <shadow, r> is so small that the next direction is rounding error."""
    rho, norm = dot(w.shadow, w.r), sqrt(norm2(w.r))
    w.rho_old, w.rho = w.rho, rho
    w.observe(norm)
    w.halt(NOT_FINITE, when=~finite(rho))
    w.halt(BREAKDOWN, when=absolute(rho) <= w.epsilon * w.epsilon * w.scale * norm)


@step
def start(w: Workspace) -> None:
    """Set shadow = r, p = v = 0, rho = |r|^2, rho_old = alpha = omega = 1, scale = |r|."""
    begin(w)
    w.p = 0
    w.v = 0
    w.alpha = 1
    w.omega = 1


@step
def direction(w: Workspace) -> None:
    """Set p = r + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)."""
    beta = (w.rho / w.rho_old) * (w.alpha / w.omega)
    w.p = w.r + beta * (w.p - w.omega * w.v)


@step
def length(w: Workspace) -> None:
    """Set alpha = rho / <shadow, v>; a column where that is 0 or not finite breaks down."""
    w.alpha = divide_or_halt(w, w.rho, dot(w.shadow, w.v))


@step
def half(w: Workspace) -> None:
    """Set r -= alpha v; halfway = whether |r| is at its threshold already."""
    w.r -= w.alpha * w.v
    w.halfway = sqrt(norm2(w.r)) <= w.threshold


@step
def stabilize(w: Workspace) -> None:
    """Set omega = <t, r> / <t, t>; where that is 0 or not finite the column breaks down.

    Halfway, x moves by alpha y alone, and the residual is at its threshold.
    """
    omega = divide_or_halt(w, dot(w.t, w.r), norm2(w.t), when=~w.halfway)
    w.halt(BREAKDOWN, when=~w.halfway & (omega == 0))
    w.omega = where(w.halfway, 0, omega)


@step
def update(w: Workspace) -> None:
    """Set x += alpha y + omega z, r -= omega t; rho_old = rho, rho = <shadow, r>; observes |r|.

    Then a running column with |rho| <= eps^2 |shadow| |r| halts as broken down.
    """
    w.x += w.alpha * w.y + w.omega * w.z
    w.r -= w.omega * w.t
    close_iteration(w)


class Bicgstab(KrylovSolver):
    """Stabilized bi-conjugate gradients, for any square operator.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        Approximates the inverse of ``A``; used from the right, so that residuals are those of the
        system itself.
    rtol, atol, maxiter, stop, executor
        As for :class:`Cg`. An iteration applies ``A`` and ``M`` twice.

    Notes
    -----
    A column whose recurrence divides by (almost) zero starts again from its iterate with a new
    shadow residual, as long as that brings the true residual down; otherwise it ends as a
    *breakdown*.

    One iteration without ``M`` moves the matrix twice and 23 vectors.

    References
    ----------
    H. A. van der Vorst, Bi-CGSTAB, SIAM J. Sci. Stat. Comput. 13 (1992); the names are those of
    algorithm 7.7 in Y. Saad, Iterative Methods for Sparse Linear Systems, 2003, with ``s`` kept
    in ``r``.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Bicgstab(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    def allocate(self, work: Workspace) -> None:
        """Make the directions; without a preconditioner y is p and z is s, kept in r."""
        if work.M is None:
            work.vectors("p")
            work.y, work.z = work.p, work.r
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Shadow = r, p = v = 0."""
        start(work)

    def iterate(self, work: Workspace) -> None:
        """p, alpha, s, omega, x, r, in this order."""
        w = work
        direction(w)  # p = r + beta (p - omega v)
        if w.M is not None:
            w.M._apply(w.p, w.y, 1.0, 0.0)  # y = M p
        w.A._apply(w.y, w.v, 1.0, 0.0)  # v = A y
        length(w)  # alpha = rho / <shadow, v>
        half(w)  # s = r - alpha v, in r
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)  # z = M s
        w.A._apply(w.z, w.t, 1.0, 0.0)  # t = A z
        stabilize(w)  # omega = <t, s> / <t, t>
        update(w)  # x += alpha y + omega z, r = s - omega t, rho = <shadow, r>
