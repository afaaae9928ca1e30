"""The stabilized bi-conjugate gradient method."""

from __future__ import annotations

import numpy as np

from ..core.operations import bicgstab
from .krylov import KrylovSolver
from .workspace import Workspace


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
        work.vectors("shadow", "p", "v", "t")
        work.scalars("rho", "rho_old", "alpha", "omega")
        work.reals("scale")
        work.array("halfway", (work.k,), np.uint8)
        if work.M is None:
            work.y, work.z = work.p, work.r
        else:
            work.vectors("y", "z")

    def initialize(self, work: Workspace) -> None:
        """Shadow = r, p = v = 0."""
        w = work
        w.executor.run(
            bicgstab.start,
            w.r, w.shadow, w.p, w.v, w.rho, w.rho_old, w.alpha, w.omega, w.scale, w.status,
        )  # fmt: skip

    def iterate(self, work: Workspace) -> None:
        """p, alpha, s, omega, x, r, in this order."""
        w, run = work, work.executor.run
        # p = r + beta (p - omega v), beta = (rho / rho_old) (alpha / omega)
        run(bicgstab.direction, w.p, w.r, w.v, w.rho, w.rho_old, w.alpha, w.omega, w.status)
        if w.M is not None:
            w.M._apply(w.p, w.y, 1.0, 0.0)  # y = M p
        w.A._apply(w.y, w.v, 1.0, 0.0)  # v = A y
        run(bicgstab.length, w.shadow, w.v, w.rho, w.alpha, w.status)  # alpha = rho / <shadow, v>
        run(bicgstab.half, w.r, w.v, w.alpha, w.halfway, w.status)  # s = r - alpha v, in r
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)  # z = M s
        w.A._apply(w.z, w.t, 1.0, 0.0)  # t = A z
        run(bicgstab.stabilize, w.t, w.r, w.omega, w.halfway, w.status)  # omega = <t, s> / <t, t>
        # x += alpha y + omega z, r = s - omega t, rho = <shadow, r>
        run(
            bicgstab.update,
            w.x, w.r, w.y, w.z, w.t, w.shadow, w.alpha, w.omega, w.rho, w.rho_old, w.scale,
            w.status,
        )  # fmt: skip
