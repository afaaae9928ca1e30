"""The LSQR method for least squares."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgument
from ...core.step import INDEFINITE, Steps, absolute, dot, finite, norm2, real, sqrt, where
from .base import LeastSquaresSolver, LeastSquaresWorkspace
from .bidiagonal import larger, left, next_right, right, rotation, stop_by_rules

step = Steps(
    "lsqr",
    vectors="x p t v z w variance",
    reals="scale nu nv alpha beta rho rhobar phibar square_w step_x step_w dd z_ cs2 sn2 xx "
    "true_r2 true_normal2 norm_a2 norm_a norm_r norm_normal norm_y norm_b condition istop longest2 "
    "atol btol ctol",
    flags="preconditioned",
)


@step
def start(w: Any) -> None:
    """Set p = t, v = z, w = v / |v|, and the scalars of the first iteration."""
    nu, nv = sqrt(w.true_r2), sqrt(w.true_normal2)
    w.p, w.v, w.w = w.t, w.z, w.z / nv
    alpha = nv / nu
    w.nu, w.nv, w.alpha, w.beta, w.scale = nu, nv, alpha, nu, 1 / alpha
    w.rhobar, w.phibar, w.square_w, w.norm_a2 = alpha, nu, 1, 0
    w.dd, w.z_, w.xx, w.cs2, w.sn2, w.longest2 = 0, 0, 0, -1, 0, 0


def rotate(w: Any, squared: Any) -> None:
    """Do step 4 and the norms of section 5, given the square of the new alpha.

    Damping is part of the operator.
    """
    nv = sqrt(squared)
    alpha = nv / w.scale
    # |A v| for vectors v of length one is a lower bound of the norm of A
    w.longest2 = larger(w.longest2, w.alpha * w.alpha + w.beta * w.beta)
    w.norm_a2 += w.alpha * w.alpha + w.beta * w.beta
    c, s, rho = rotation(w.rhobar, w.beta)
    theta, phi, phibar = s * alpha, c * w.phibar, s * w.phibar
    w.step_x, w.step_w = phi / rho, theta / rho
    # section 5.2: the norm of x, by a rotation from the right
    gambar = -(w.cs2 * rho)
    rest = phi - w.sn2 * rho * w.z_
    zbar = rest / gambar
    w.norm_y = sqrt(w.xx + zbar * zbar)
    cs2, sn2, gamma = rotation(gambar, theta)
    z = rest / gamma
    w.cs2, w.sn2, w.z_, w.xx = cs2, sn2, z, w.xx + z * z
    w.norm_a = sqrt(w.norm_a2)
    w.norm_r, w.norm_normal = phibar, alpha * absolute(s * phi)
    w.nv, w.alpha, w.rho, w.rhobar, w.phibar = nv, alpha, rho, -(c * alpha), phibar


@step
def right_and_rotate(w: Any) -> None:
    """Set p = A^H u / beta - (beta / alpha) p, alpha = |p|, and the rotation of an iteration."""
    next_right(w)
    rotate(w, norm2(w.p))


@step
def weigh_and_rotate(w: Any) -> None:
    """Set alpha = sqrt(<p, v>) with v = M p, and the rotation; halts if M is indefinite."""
    squared = real(dot(w.p, w.v))
    w.halt(INDEFINITE, when=finite(squared) & (squared < 0))
    rotate(w, squared)


@step
def vary(w: Any) -> None:
    """Set variance += |w|^2 / rho^2 for each element."""
    size = absolute(w.w) / w.rho
    w.variance += size * size


@step
def update(w: Any) -> None:
    """Set x += (phi / rho) w, w = v / |v| - (theta / rho) w; observe |A^H r|, test the rules.

    Without M, the norm of w is known; with M, it follows from the orthonormal vectors v.
    """
    square = where(w.preconditioned, w.square_w, norm2(w.w))
    w.dd += square / (w.rho * w.rho)
    w.square_w = 1 + w.step_w * w.step_w * w.square_w
    w.x += w.step_x * w.w
    w.w = where(w.nv > 0, 1 / w.nv, 0) * w.v - w.step_w * w.w
    w.condition = w.norm_a * sqrt(w.dd)
    test2 = w.norm_normal / (w.norm_a * w.norm_r + w.epsilon)
    stop_by_rules(w, test2, 1 / (w.condition + w.epsilon), w.norm_y)


class Lsqr(LeastSquaresSolver):
    """Least squares for matrices of any shape and rank: LSQR.

    It minimizes ``|A x - b|``, and finds the shortest of all solutions from a zero guess.

    Parameters
    ----------
    A : LinOp or matrix, shape (m, n)
        An operator with a conjugate transpose ``A.H``.
    M, damp, atol, btol, conlim, maxiter, executor
        As for :class:`Lsmr`.
    calc_var : bool
        Whether the result has ``variance``, estimates of the diagonal of the inverse of
        ``A.H @ A + damp^2``; not supported with ``M``.

    Notes
    -----
    The observed norm, ``|A^H r|``, is not monotone; the residual ``|r|`` falls in every iteration.
    One iteration without ``M`` reads the matrix twice, and moves 5 vectors of m rows and 10 of n:
    the vectors of both products, 3 for u, 3 for v, 5 for the update.

    References
    ----------
    C. C. Paige and M. A. Saunders, LSQR: An algorithm for sparse linear equations and sparse least
    squares, ACM TOMS 8 (1982), pp. 43-71; step numbers follow section 4.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> result = wl.solvers.Lsqr(A, atol=1e-12, btol=1e-12).solve(np.array([1.0, 0.0, -1.0]))
    >>> np.round(result.x, 6), result.converged
    (array([ 1., -1.]), True)
    """

    def __init__(self, A: Any, M: Any = None, *, calc_var: bool = False, **settings: Any) -> None:
        super().__init__(A, M, **settings)
        self.calc_var = bool(calc_var)
        self._require_no_preconditioner_for_variances()

    def _require_no_preconditioner_for_variances(self) -> None:
        if self.calc_var and self.M is not None:
            raise InvalidArgument(
                "calc_var: variances belong to the process without M; leave M out"
            )

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
            right_and_rotate(w)  # v, alpha; 4
        else:
            right(w)
            w.M._apply(w.p, w.v, 1.0, 0.0)  # v = M p
            weigh_and_rotate(w)
        if self.calc_var:
            vary(w)
        update(w)  # 5, 6: x, w
