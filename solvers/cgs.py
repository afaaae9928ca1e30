"""The conjugate gradient squared method."""

from __future__ import annotations

from ..core.operations import bicgstab, cgs
from .krylov import KrylovSolver
from .workspace import Workspace


class Cgs(KrylovSolver):
    """Conjugate gradients squared, for any square operator.

    Converges in fewer products than BiCGSTAB where it does, and less smoothly.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        Approximates the inverse of ``A``; used from the right.
    rtol, atol, maxiter, stop, executor
        As for :class:`Cg`. An iteration applies ``A`` and ``M`` twice.

    Notes
    -----
    Breakdowns are treated as in :class:`Bicgstab`. One iteration without ``M`` moves the matrix
    twice and 21 vectors.

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

    def allocate(self, work: Workspace) -> None:
        """Make the directions; without a preconditioner p and u are used as they are."""
        work.vectors("shadow", "p", "q", "u", "v")
        work.scalars("rho", "rho_old", "alpha")
        work.reals("scale")
        if work.M is None:
            work.y, work.w = work.p, work.u
        else:
            work.vectors("y")
            work.w = work.y

    def initialize(self, work: Workspace) -> None:
        """Shadow = r, p = q = 0."""
        w = work
        w.executor.run(cgs.start, w.r, w.shadow, w.p, w.q, w.rho, w.rho_old, w.scale, w.status)

    def iterate(self, work: Workspace) -> None:
        """u, p, alpha, q, x, r, in this order."""
        w, run = work, work.executor.run
        # u = r + beta q, p = u + beta (q + beta p), beta = rho / rho_old
        run(cgs.direction, w.u, w.p, w.q, w.r, w.rho, w.rho_old, w.status)
        if w.M is not None:
            w.M._apply(w.p, w.y, 1.0, 0.0)  # y = M p
        w.A._apply(w.y, w.v, 1.0, 0.0)  # v = A y
        run(bicgstab.length, w.shadow, w.v, w.rho, w.alpha, w.status)  # alpha = rho / <shadow, v>
        run(cgs.half, w.u, w.q, w.v, w.alpha, w.status)  # q = u - alpha v, u += q
        if w.M is not None:
            w.M._apply(w.u, w.w, 1.0, 0.0)  # w = M (u + q)
        w.A._apply(w.w, w.v, 1.0, 0.0)  # v = A w
        # x += alpha w, r -= alpha v, rho = <shadow, r>
        run(
            cgs.update,
            w.x, w.r, w.w, w.v, w.shadow, w.alpha, w.rho, w.rho_old, w.scale, w.status,
        )  # fmt: skip
