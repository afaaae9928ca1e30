"""The quasi-minimal residual method."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.step import (
    BREAKDOWN,
    NOT_FINITE,
    Steps,
    absolute,
    conj,
    finite,
    norm2,
    real,
    sqrt,
    total,
    where,
)
from ..driver.workspace import Workspace
from .base import KrylovSolver
from .bicgstab import divide_or_halt

#: The suffix ``_s`` marks the complex conjugated shadow system, as in :mod:`.bicg`. ``v`` and
#: ``v_s`` are the Lanczos vectors before normalization, ``t = M v``, ``y_s = M^T v_s``.
step = Steps(
    "qmr",
    vectors="x r v v_s t y_s p p_s q q_s d s",
    scalars="delta epsilon_ beta eta",
    reals="rho2 rho xi2 gamma theta",
)


@step
def start(w: Workspace) -> None:
    """Set v = r, v_s = conj(r), p = p_s = d = s = 0, and the scalars of the recurrences."""
    w.v = w.r
    w.v_s = conj(w.r)
    w.p = 0
    w.p_s = 0
    w.d = 0
    w.s = 0
    w.rho2, w.xi2 = norm2(w.r), norm2(w.r)
    w.delta = norm2(w.r)
    w.epsilon_, w.beta, w.eta = 0, 0, -1
    w.gamma, w.theta, w.rho = 1, 0, 0


@step
def weigh(w: Workspace) -> None:
    """Set xi2 = |y_s|^2, delta = sum y_s v."""
    w.xi2, w.delta = norm2(w.y_s), total(w.y_s * w.v)


def halt_without_vectors(w: Workspace, delta: Any) -> None:
    """Halt where the Lanczos process cannot continue: delta, the product of its vectors, is 0."""
    w.halt(NOT_FINITE, when=~finite(delta))
    w.halt(BREAKDOWN, when=delta == 0)


@step
def begin(w: Workspace) -> None:
    """Normalize v and v_s, and set p = t / rho, p_s = y_s / xi; halts where delta is 0."""
    rho, xi = sqrt(w.rho2), sqrt(w.xi2)
    w.p = w.t / rho
    w.p_s = w.y_s / xi
    w.v = w.v / rho
    w.v_s = w.v_s / xi
    delta = w.delta / (rho * xi)
    w.rho, w.delta = rho, delta
    halt_without_vectors(w, delta)


@step
def length(w: Workspace) -> None:
    """Set epsilon = sum p_s q, beta = epsilon / delta; where one is 0 the column breaks down."""
    found = total(w.p_s * w.q)
    w.epsilon_ = found
    w.beta = divide_or_halt(w, found, w.delta)
    w.halt(BREAKDOWN, when=found == 0)


@step
def extend(w: Workspace) -> None:
    """Set v = q - beta v, v_s = q_s - beta v_s; rho2 = |v|^2, xi2 = |v_s|^2, delta = sum v_s v."""
    w.v = w.q - w.beta * w.v
    w.v_s = w.q_s - w.beta * w.v_s
    w.rho2, w.xi2 = norm2(w.v), norm2(w.v_s)
    w.delta = total(w.v_s * w.v)


@step
def update(w: Workspace) -> None:
    """Set d, s, then x += d, r -= s, and p, p_s, v, v_s of the next iteration; observes |r|.

    theta' = rho' / (gamma |beta|), gamma' = 1 / sqrt(1 + theta'^2), eta' = -eta rho gamma'^2 /
    (beta gamma^2), d = eta' p + (theta gamma')^2 d, s = eta' q + (theta gamma')^2 s. With the new
    delta / (rho' xi) of vectors of length 1, p = t / rho' - (xi delta / epsilon) p and
    p_s = y_s / xi - (rho' delta / epsilon) p_s.
    """
    rho, xi = sqrt(w.rho2), sqrt(w.xi2)
    theta = rho / (w.gamma * absolute(w.beta))
    gamma = 1 / sqrt(1 + theta * theta)
    turned = gamma / w.gamma
    eta = -w.eta * w.rho / w.beta * (turned * turned)
    kept = w.theta * gamma * (w.theta * gamma)
    w.d = eta * w.p + kept * w.d
    w.s = eta * w.q + kept * w.s
    w.x += w.d
    w.r -= w.s
    alive = (rho > 0) & (xi > 0)
    delta = where(alive, w.delta / (rho * xi), 0)
    over = where(alive, delta / w.epsilon_, 0)
    w.p = where(alive, w.t / rho, 0) - (xi * over) * w.p
    w.p_s = where(alive, w.y_s / xi, 0) - (rho * over) * w.p_s
    w.v = where(alive, w.v / rho, 0)
    w.v_s = where(alive, w.v_s / xi, 0)
    w.theta, w.gamma, w.eta, w.rho, w.delta = theta, gamma, eta, rho, delta
    w.observe(sqrt(norm2(w.r)))
    w.halt(NOT_FINITE, when=~(finite(delta) & finite(real(eta))))
    w.halt(BREAKDOWN, when=delta == 0)


class Qmr(KrylovSolver):
    """The quasi-minimal residual method, for any square operator that has a transpose.

    It needs the products of :class:`Bicg` and smooths its residuals. :class:`Tfqmr` and
    :class:`Bicgstab` need no transpose and are usually the better choice.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator; ``A.T`` is also applied.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``, applied from the right. ``M.T`` is also applied, so that a
        callable is not sufficient: use ``wl.LinearOperator(shape, matvec, rmatvec)``.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`. An iteration applies ``A``, ``A.T``, ``M`` and ``M.T`` once each.

    Raises
    ------
    UnsupportedOperation
        If ``A`` or ``M`` has no transpose, when the first system is solved.

    Notes
    -----
    The Lanczos process has no look-ahead. If it cannot continue, a column restarts from its
    iterate, as long as this reduces the true residual; otherwise it ends as a *breakdown*.

    One iteration without ``M`` reads the matrix and its transpose once each, and moves 30 vectors.

    References
    ----------
    R. W. Freund and N. M. Nachtigal, An implementation of the QMR method based on coupled two-term
    recurrences, SIAM J. Sci. Comput. 15 (1994), algorithm 7.1; R. Barrett et al., Templates, SIAM
    1994, figure 2.8, with M_1 the identity.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Qmr(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    SPARE: ClassVar[str] = "q"

    def update(self, A: Any = None) -> None:
        """Update to new values of the matrix; see :meth:`KrylovSolver.update`."""
        super().update(A)
        if self.M is not None:
            self._workspaces.clear()  # its transpose may be a copy of the old values

    def allocate(self, work: Workspace) -> None:
        """Allocate the vectors, and the transposes in the workspace's precision."""
        work.transpose(self.M)
        if work.M is None:
            work.vectors("v", "v_s")
            work.t, work.y_s = work.v, work.v_s
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Set v = r, v_s = conj(r), and the first directions."""
        start(work)
        self._precondition(work)
        begin(work)

    def iterate(self, work: Workspace) -> None:
        """One step of the coupled recurrences."""
        w = work
        w.A._apply(w.p, w.q, 1.0, 0.0)  # q = A p
        w.A_T._apply(w.p_s, w.q_s, 1.0, 0.0)  # q_s = A^T p_s
        length(w)  # epsilon, beta
        extend(w)  # v, v_s
        self._precondition(w)  # t, y_s
        update(w)  # d, s, x, r; p, p_s

    def _precondition(self, work: Workspace) -> None:
        w = work
        if w.M is not None:
            assert w.M_T is not None
            w.M._apply(w.v, w.t, 1.0, 0.0)
            w.M_T._apply(w.v_s, w.y_s, 1.0, 0.0)
            weigh(w)
