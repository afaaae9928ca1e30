"""The conjugate gradient method."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.step import INDEFINITE, NOT_FINITE, Step, Steps, dot, finite, norm2, real, sqrt
from ..driver.workspace import Workspace
from .base import KrylovSolver

step = Steps("cg", vectors="x r z p q", rows="factors", scalars="rho rho_old pq")


def require_positive(w: Workspace, value: Any) -> None:
    """Halt where ``<r, M r>`` or ``<p, A p>`` says that the operator is not positive definite."""
    w.halt(NOT_FINITE, when=~finite(value))
    w.halt(INDEFINITE, when=~(real(value) > 0))


@step
def start(w: Workspace) -> None:
    """Set p = z, rho = <r, z>; a column with rho <= 0 halts as indefinite."""
    w.p = w.z
    w.rho = dot(w.r, w.z)
    require_positive(w, w.rho)


@step
def curvature(w: Workspace) -> None:
    """Set pq = <p, q>; a column with pq <= 0 halts as indefinite."""
    w.pq = dot(w.p, w.q)
    require_positive(w, w.pq)


@step
def update(w: Workspace) -> None:
    """Set x += alpha p, r -= alpha q; rho_old = rho, rho = |r|^2; observes |r|.

    The step length is alpha = rho / pq.
    """
    alpha = w.rho / w.pq
    w.x += alpha * w.p
    w.r -= alpha * w.q
    w.rho_old, w.rho = w.rho, norm2(w.r)
    w.observe(sqrt(norm2(w.r)))


@step
def weigh(w: Workspace) -> None:
    """Set rho = <r, z>; a column with rho <= 0 halts as indefinite."""
    w.rho = dot(w.r, w.z)
    require_positive(w, w.rho)


@step
def update_scaled(w: Workspace) -> None:
    """Do ``update`` and ``weigh`` in one pass, with z = factors r for M r; observes |r|."""
    alpha = w.rho / w.pq
    w.x += alpha * w.p
    w.r -= alpha * w.q
    w.z = w.factors * w.r
    w.rho_old, w.rho = w.rho, dot(w.r, w.z)
    w.observe(sqrt(norm2(w.r)))
    require_positive(w, w.rho)


@step
def direction(w: Workspace) -> None:
    """Set p = z + beta p with beta = rho / rho_old."""
    beta = w.rho / w.rho_old
    w.p = w.z + beta * w.p


class Cg(KrylovSolver):
    """Preconditioned conjugate gradients, for Hermitian positive definite operators.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        A Hermitian positive definite operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``; also Hermitian positive definite.
    rtol, atol : float
        Stop at ``norm(b - A x) <= max(rtol * norm(b), atol)``, per column.
    maxiter : int, optional
        Iterations at most; ``10 n`` by default.
    stop : Criterion, optional
        Replaces the three above; see :mod:`wollemi.stop`.
    dtype : dtype, optional
        The dtype of the computation; by default, from ``A``, ``M`` and ``b``.
    executor : Executor or str, optional
        The executor to which ``A`` is moved if it has none.

    Notes
    -----
    A direction of zero or negative curvature ends a column as *indefinite*.

    One iteration without ``M`` reads the matrix once and moves 13 vectors: 2 for the product, 2 for
    the curvature, 6 for the update, 3 for the direction. A diagonal ``M``, such as Jacobi, moves 2
    more: it is fused with the update.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, algorithm 9.1; step
    numbers are its lines.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> x, info = wl.solvers.Cg(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(11 * x, 6), info
    (array([1., 7.]), 0)
    """

    SPARE: ClassVar[str] = "q"
    FLEXIBLE_KIN: ClassVar[str] = "Fcg"
    HERMITIAN: ClassVar[tuple[str, ...]] = ("A", "M")
    #: The steps that subclasses extend with their own scalars.
    START: ClassVar[Step] = start
    CURVATURE: ClassVar[Step] = curvature

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps; without a preconditioner z is r."""
        if work.M is None:
            work.z = work.r
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Set z = M r, p = z, rho = <r, z> (line 1)."""
        if work.M is not None:
            work.M._apply(work.r, work.z, 1.0, 0.0)
        self.START(work)

    def iterate(self, work: Workspace) -> None:
        """Lines 3 to 8."""
        w = work
        w.A._apply(w.p, w.q, 1.0, 0.0)  # q = A p
        self.CURVATURE(w)  # 3: <p, A p>
        factors = w.row_factors()
        if factors is not None:
            w.factors = factors
            update_scaled(w)  # 3 to 7: a diagonal M needs no separate pass
        else:
            update(w)  # 3 to 5: alpha, x, r; rho = |r|^2 unless M says otherwise
            if w.M is not None:
                w.M._apply(w.r, w.z, 1.0, 0.0)  # 6: z = M r
                weigh(w)  # 7: rho = <r, z>
        direction(w)  # 7, 8: p = z + beta p
