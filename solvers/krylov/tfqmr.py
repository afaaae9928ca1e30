"""The transpose-free quasi-minimal residual method."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.step import BREAKDOWN, NOT_FINITE, Steps, absolute, dot, finite, norm2, sqrt, where
from ..driver.workspace import Workspace
from .base import KrylovSolver
from .bicgstab import divide_or_halt

step = Steps(
    "tfqmr",
    vectors="x r y q u v d shadow",
    scalars="rho rho_old alpha eta",
    reals="tau theta2 count scale",
)


@step
def start(w: Workspace) -> None:
    """Set u = shadow = r, v = d = 0, tau = |r|, rho = |r|^2, rho_old = 1, theta2 = eta = 0."""
    w.u = w.r
    w.shadow = w.r
    w.v = 0
    w.d = 0
    w.rho, w.rho_old, w.eta = norm2(w.r), 1, 0
    w.tau = sqrt(norm2(w.r))
    w.scale = sqrt(norm2(w.r))
    w.theta2, w.count = 0, 0


@step
def length(w: Workspace) -> None:
    """Set v += q, alpha = rho / <shadow, v>; where that is 0 or not finite it breaks down."""
    w.v += w.q
    w.alpha = divide_or_halt(w, w.rho, dot(w.shadow, w.v))


def shorten(w: Workspace) -> Any:
    """Set r -= alpha q and d to the next direction, and rotate; return |r|^2.

    ``r`` is the residual of CGS in between two of its iterations.
    """
    w.r -= w.alpha * w.q
    w.d = w.y + (w.theta2 / w.alpha * w.eta) * w.d
    size, before = norm2(w.r), w.tau
    theta2 = size / before / before
    cosine2 = 1 / (1 + theta2)
    # if the first half reached a residual of 0, the second half must not change it
    w.theta2 = where(before > 0, theta2, 0)
    w.eta = where(before > 0, cosine2 * w.alpha, 0)
    w.tau = where(before > 0, sqrt(size * cosine2), 0)
    w.count = w.count + 1
    return size


@step
def half(w: Workspace) -> None:
    """Set r -= alpha q, d = y + (theta2 eta / alpha) d, u -= alpha v; rotates tau, theta2, eta.

    With theta2 = |r|^2 / tau^2 and c^2 = 1 / (1 + theta2) the others are tau = c |r| and
    eta = c^2 alpha.
    """
    size = shorten(w)
    w.u -= w.alpha * w.v
    w.halt(NOT_FINITE, when=~finite(size))


@step
def whole(w: Workspace) -> None:
    """Set x += eta d, r -= alpha q, d = y + (theta2 eta / alpha) d, rho = <shadow, r>; rotates.

    rho_old becomes rho; the rotation is that of the first half.
    """
    w.x += w.eta * w.d
    size = shorten(w)
    w.rho_old, w.rho = w.rho, dot(w.shadow, w.r)
    w.halt(NOT_FINITE, when=~finite(size))


@step
def update(w: Workspace) -> None:
    """Set x += eta d, u = r + beta u, v = beta (q + beta v) with beta = rho / rho_old.

    Observe tau sqrt(count + 1), an upper bound of the residual norm.
    """
    beta = w.rho / w.rho_old
    w.x += w.eta * w.d
    w.u = w.r + beta * w.u
    w.v = beta * (w.q + beta * w.v)
    bound = w.tau * sqrt(w.count + 1)
    w.observe(bound)
    w.halt(NOT_FINITE, when=~finite(w.rho))
    w.halt(BREAKDOWN, when=absolute(w.rho) <= w.epsilon * w.epsilon * w.scale * bound)


class Tfqmr(KrylovSolver):
    """The transpose-free quasi-minimal residual method, for any square operator.

    It smooths the residuals of :class:`Cgs` with the same products: norms fall almost
    monotonically, and as fast as with CGS. Use it if :class:`Cgs` converges too erratically, or if
    :class:`Bicgstab` stagnates and :class:`Gmres` would need too long a basis.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``, applied from the right.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`. An iteration applies ``A`` and ``M`` twice; SciPy counts it as two
        iterations.

    Notes
    -----
    The observed norm is an upper bound, ``tau sqrt(m + 1)`` after ``m`` products; the true residual
    may be smaller.

    Breakdowns are handled as in :class:`Bicgstab`. One iteration without ``M`` reads the matrix
    twice and moves 37 vectors.

    References
    ----------
    R. W. Freund, A transpose-free quasi-minimal residual algorithm for non-Hermitian linear
    systems, SIAM J. Sci. Comput. 14 (1993), algorithm 5.1; Y. Saad, Iterative Methods for Sparse
    Linear Systems, 2nd ed., SIAM 2003, algorithm 7.8, where ``r`` is called ``w``.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Tfqmr(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    SPARE: ClassVar[str] = "q"

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps; without a preconditioner y is u."""
        if work.M is None:
            work.vectors("u")
            work.y = work.u
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Shadow = u = r, v = d = 0."""
        start(work)

    def iterate(self, work: Workspace) -> None:
        """Two steps of the algorithm, an even and an odd one."""
        w = work
        self._multiply_u(w)  # y = M u, q = A y
        length(w)  # v = q + beta (q + beta v), alpha
        half(w)  # r, d, u; tau, eta
        self._multiply_u(w)
        whole(w)  # x, r, d; tau, eta; rho
        update(w)  # x, u, and v without q

    def _multiply_u(self, work: Workspace) -> None:
        if work.M is not None:
            work.M._apply(work.u, work.y, 1.0, 0.0)
        work.A._apply(work.y, work.q, 1.0, 0.0)
