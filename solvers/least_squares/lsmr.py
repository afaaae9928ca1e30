"""The LSMR method for least squares."""

from __future__ import annotations

from typing import Any

from ...core.step import INDEFINITE, Steps, absolute, dot, finite, norm2, real, sqrt, where
from .base import LeastSquaresSolver, LeastSquaresWorkspace
from .bidiagonal import larger, left, next_right, right, rotation, smaller, stop_by_rules

step = Steps(
    "lsmr",
    vectors="x p t v z h hbar",
    reals="scale nu nv alpha beta zeta zetabar alphabar rho rhobar cbar sbar betad betadd "
    "rhodold tautildeold thetatilde norm_a2 max_rbar min_rbar count step_hbar step_x step_h "
    "true_r2 true_normal2 norm_a norm_r norm_normal norm_b condition istop longest2 atol btol ctol",
    flags="preconditioned",
)

#: The ratio of norms if one is zero: it exceeds every tolerance.
HUGE = 1e30


@step
def start(w: Any) -> None:
    """Set p = t, v = z, h = v / |v|, hbar = 0, and the scalars of the first iteration."""
    nu, nv = sqrt(w.true_r2), sqrt(w.true_normal2)
    w.p, w.v = w.t, w.z
    w.h, w.hbar = w.z / nv, 0
    alpha = nv / nu
    w.nu, w.nv, w.alpha, w.beta, w.scale = nu, nv, alpha, nu, 1 / alpha
    w.zeta, w.zetabar, w.alphabar = 0, nv, alpha
    w.rho, w.rhobar, w.cbar, w.sbar = 1, 1, 1, 0
    w.betad, w.betadd, w.rhodold = 0, nu, 1
    w.tautildeold, w.thetatilde, w.longest2 = 0, 0, 0
    w.norm_a2, w.max_rbar, w.min_rbar, w.count = alpha * alpha, 0, 0, 0


def rotate(w: Any, squared: Any) -> None:
    """Do steps 4 to 6 and the norms of section 5, given the square of the new alpha.

    Damping is in the operator, so that the first rotation of the paper is the identity.
    """
    nv = sqrt(squared)
    alpha = nv / w.scale
    # 4: the rotation of the bidiagonal matrix, 5: that of its square
    c, s, rho = rotation(w.alphabar, w.beta)
    theta = s * alpha
    thetabar, rhotemp = w.sbar * rho, w.cbar * rho
    cbar, sbar, rhobar = rotation(rhotemp, theta)
    zeta, zetabar = cbar * w.zetabar, -(sbar * w.zetabar)
    # 6: the steps of hbar, x and h
    w.step_hbar = thetabar * rho / (w.rho * w.rhobar)
    w.step_x = where(rho * rhobar > 0, zeta / (rho * rhobar), 0)
    w.step_h = where(rho > 0, theta / rho, 0)
    # section 5.1: the norm of r
    betahat, betadd = c * w.betadd, -(s * w.betadd)
    ctilde, stilde, rhotilde = rotation(w.rhodold, thetabar)
    thetatilde, rhodold = stilde * rhobar, ctilde * rhobar
    betad = ctilde * betahat - stilde * w.betad
    tautilde = (w.zeta - w.thetatilde * w.tautildeold) / rhotilde
    taud = where(rhodold > 0, (zeta - thetatilde * tautilde) / rhodold, 0)
    w.norm_r = sqrt((betad - taud) * (betad - taud) + betadd * betadd)
    # section 5.2 to 5.5: the norms of A^H r and A, the condition number
    w.norm_normal = absolute(zetabar)
    # |A v| for vectors v of length one is a lower bound of the norm of A
    w.longest2 = larger(w.longest2, w.alpha * w.alpha + w.beta * w.beta)
    with_beta = w.norm_a2 + w.beta * w.beta
    w.norm_a, w.norm_a2 = sqrt(with_beta), with_beta + alpha * alpha
    # maximum of rhobar over the earlier iterations: none in the first one
    max_rbar = where(w.count > 0, larger(w.max_rbar, w.rhobar), 0)
    min_rbar = where(w.count > 1, smaller(w.min_rbar, w.rhobar), w.rhobar)
    least = where(w.count > 0, smaller(min_rbar, rhotemp), rhotemp)
    w.condition = larger(max_rbar, rhotemp) / least
    w.max_rbar, w.min_rbar, w.count = max_rbar, min_rbar, w.count + 1
    w.nv, w.alpha, w.alphabar, w.rho, w.rhobar = nv, alpha, c * alpha, rho, rhobar
    w.cbar, w.sbar, w.zeta, w.zetabar = cbar, sbar, zeta, zetabar
    w.betad, w.betadd, w.rhodold = betad, betadd, rhodold
    w.tautildeold, w.thetatilde = tautilde, thetatilde


@step
def right_and_rotate(w: Any) -> None:
    """Set p = A^H u / beta - (beta / alpha) p, alpha = |p|, and the rotations of an iteration."""
    next_right(w)
    rotate(w, norm2(w.p))


@step
def weigh_and_rotate(w: Any) -> None:
    """Set alpha = sqrt(<p, v>) with v = M p, and the rotations; halts if M is indefinite."""
    squared = real(dot(w.p, w.v))
    w.halt(INDEFINITE, when=finite(squared) & (squared < 0))
    rotate(w, squared)


@step
def update(w: Any) -> None:
    """Set hbar = h - c hbar, x += c hbar, h = v / |v| - c h; observe |A^H r|, test the rules."""
    w.hbar = w.h - w.step_hbar * w.hbar
    w.x += w.step_x * w.hbar
    w.h = where(w.nv > 0, 1 / w.nv, 0) * w.v - w.step_h * w.h
    bound = w.norm_a * w.norm_r
    test2 = where(bound > 0, w.norm_normal / bound, HUGE)
    stop_by_rules(w, test2, 1 / w.condition, sqrt(norm2(w.x)))


class Lsmr(LeastSquaresSolver):
    """Least squares for matrices of any shape and rank: LSMR.

    It minimizes ``|A x - b|``, and finds the shortest of all solutions from a zero guess. The
    observed norm, ``|A^H (b - A x)|``, falls in every iteration, so that stopping early is safer
    than with :class:`Lsqr`.

    Parameters
    ----------
    A : LinOp or matrix, shape (m, n)
        An operator with a conjugate transpose ``A.H``.
    M : LinOp, matrix, callable or "columns", optional
        An approximate inverse of the normal equations' matrix ``A.H @ A``, Hermitian positive
        definite. ``"columns"`` scales the columns of a matrix to length one.
    damp : float
        Damping: minimize ``|A x - b|^2 + damp^2 |x - x0|^2``.
    atol, btol : float
        Stop at ``|r| <= btol |b| + atol |A| |x|`` or at ``|A^H r| <= atol |A| |r|``.
    conlim : float
        Stop when the estimated condition number reaches this value; 0 means no limit.
    maxiter : int, optional
        Iteration limit; ``10 n`` by default.
    executor : Executor or str, optional
        The executor to which ``A`` is moved if it has none.

    Notes
    -----
    One iteration without ``M`` reads the matrix twice, and moves 5 vectors of m rows and 12 of n:
    the vectors of both products, 3 for u, 3 for v, 7 for the update. Products with ``A.H`` use a
    transpose that is stored with the solver.

    References
    ----------
    D. C.-L. Fong and M. Saunders, LSMR: An iterative algorithm for sparse least-squares problems,
    SIAM J. Sci. Comput. 33 (2011), pp. 2950-2971; step numbers follow section 2.8.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> result = wl.solvers.Lsmr(A, atol=1e-12, btol=1e-12).solve(np.array([1.0, 0.0, -1.0]))
    >>> np.round(result.x, 6), result.converged
    (array([ 1., -1.]), True)
    """

    def allocate(self, work: LeastSquaresWorkspace) -> None:
        """Allocate the vectors of both lengths and the scalars."""
        work.make(step)

    def initialize(self, work: LeastSquaresWorkspace) -> None:
        """Start from the true residual and its product with A^H (step 1)."""
        start(work)

    def iterate(self, work: LeastSquaresWorkspace) -> None:
        """Do steps 3 to 6."""
        w = work
        w.A._apply(w.v, w.q, 1.0, 0.0)  # 3: q = A v
        left(w)  # u, beta
        w.AH._apply(w.u, w.t, 1.0, 0.0)  # t = A^H u
        if w.M is None:
            right_and_rotate(w)  # v, alpha; 4 and 5
        else:
            right(w)
            w.M._apply(w.p, w.v, 1.0, 0.0)  # v = M p
            weigh_and_rotate(w)
        update(w)  # 6: hbar, x, h
