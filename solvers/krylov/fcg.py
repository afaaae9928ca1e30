"""The flexible conjugate gradient method."""

from __future__ import annotations

from typing import ClassVar

from ...core.step import Steps, dot, norm2, sqrt
from ..driver.workspace import Workspace
from .base import KrylovSolver
from .cg import require_positive

step = Steps("fcg", vectors="x r z p q", scalars="rho pq qz")


@step
def start(w: Workspace) -> None:
    """Set p = z."""
    w.p = w.z


@step
def curvature(w: Workspace) -> None:
    """Set pq = <p, q>, rho = <p, r>; a column where one is <= 0 halts as indefinite."""
    w.pq, w.rho = dot(w.p, w.q), dot(w.p, w.r)
    require_positive(w, w.pq)
    require_positive(w, w.rho)


@step
def update(w: Workspace) -> None:
    """Set x += alpha p, r -= alpha q, qz = <q, r> with alpha = rho / pq; observes |r|."""
    alpha = w.rho / w.pq
    w.x += alpha * w.p
    w.r -= alpha * w.q
    w.qz = dot(w.q, w.r)
    w.observe(sqrt(norm2(w.r)))


@step
def project(w: Workspace) -> None:
    """Set qz = <q, z>."""
    w.qz = dot(w.q, w.z)


@step
def direction(w: Workspace) -> None:
    """Set p = z - beta p with beta = qz / pq."""
    beta = w.qz / w.pq
    w.p = w.z - beta * w.p


class Fcg(KrylovSolver):
    """Flexible conjugate gradients, for Hermitian positive definite operators.

    The preconditioner may vary from iteration to iteration: a few iterations of another solver, or
    one with random choices. Each new direction is explicitly orthogonalized against the previous
    one, whereas :class:`Cg` relies on a fixed symmetric preconditioner.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        A Hermitian positive definite operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``; it need not be linear.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`.

    Notes
    -----
    This is FCG(1) of the paper: each direction is orthogonal to the one before it. One iteration
    without ``M`` reads the matrix once and moves 14 vectors: 2 for the product, 3 for the
    curvature, 6 for the update, 3 for the direction.

    References
    ----------
    Y. Notay, Flexible conjugate gradients, SIAM J. Sci. Comput. 22 (2000), pp. 1444-1460,
    algorithm 2.1 with m_i = 1.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> x, info = wl.solvers.Fcg(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(11 * x, 6), info
    (array([1., 7.]), 0)
    """

    SPARE: ClassVar[str] = "q"
    FLEXIBLE: ClassVar[bool] = True
    HERMITIAN: ClassVar[tuple[str, ...]] = ("A",)

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps; without a preconditioner z is r."""
        if work.M is None:
            work.z = work.r
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Set z = M r, p = z."""
        if work.M is not None:
            work.M._apply(work.r, work.z, 1.0, 0.0)
        start(work)

    def iterate(self, work: Workspace) -> None:
        """One iteration."""
        w = work
        w.A._apply(w.p, w.q, 1.0, 0.0)  # q = A p
        curvature(w)  # <p, A p>, <p, r>
        update(w)  # x += alpha p, r -= alpha q
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)  # z = M r
            project(w)  # <A p, z>; without M, the update computes it
        direction(w)  # p = z - beta p
