"""The conjugate gradient method."""

from __future__ import annotations

from ..core.operations import cg
from .krylov import KrylovSolver
from .workspace import Workspace


class Cg(KrylovSolver):
    """Preconditioned conjugate gradients, for Hermitian positive definite operators.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        Hermitian positive definite.
    M : LinOp, matrix or callable, optional
        Approximates the inverse of ``A``; Hermitian positive definite too.
    rtol, atol : float
        Stop at ``norm(b - A x) <= max(rtol * norm(b), atol)``, per column.
    maxiter : int, optional
        Iterations at most; ``10 n`` by default.
    stop : Criterion, optional
        Replaces the three above; see :mod:`wollemi.stop`.
    executor : Executor or str, optional
        Where ``A`` goes if it has no home.

    Notes
    -----
    A direction of no or negative curvature ends a column as *indefinite*.

    One iteration without ``M`` moves the matrix once and 13 vectors: 2 for the product, 2 for the
    curvature, 6 for the update, 3 for the direction.

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

    def allocate(self, work: Workspace) -> None:
        """Make p, q and, with a preconditioner, z; without one it is r."""
        work.vectors("p", "q")
        work.scalars("rho", "rho_old", "pq")
        if work.M is None:
            work.z = work.r
        else:
            work.vectors("z")

    def initialize(self, work: Workspace) -> None:
        """Z = M r, p = z, rho = <r, z> (line 1)."""
        if work.M is not None:
            work.M._apply(work.r, work.z, 1.0, 0.0)
        work.executor.run(cg.start, work.r, work.z, work.p, work.rho, work.status)

    def iterate(self, work: Workspace) -> None:
        """Lines 3 to 8."""
        w, run = work, work.executor.run
        w.A._apply(w.p, w.q, 1.0, 0.0)  # q = A p
        run(cg.curvature, w.p, w.q, w.pq, w.status)  # 3: <p, A p>
        # 3 to 5: alpha = rho / pq, x += alpha p, r -= alpha q; rho = |r|^2 unless M says otherwise
        run(cg.update, w.x, w.r, w.p, w.q, w.rho, w.rho_old, w.pq, w.status)
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)  # 6: z = M r
            run(cg.weigh, w.r, w.z, w.rho, w.status)  # 7: rho = <r, z>
        run(cg.direction, w.p, w.z, w.rho, w.rho_old, w.status)  # 7, 8: p = z + beta p
