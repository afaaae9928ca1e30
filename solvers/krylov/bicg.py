"""The bi-conjugate gradient method."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.step import BREAKDOWN, NOT_FINITE, Steps, absolute, conj, finite, norm2, sqrt, total
from ..driver.workspace import Workspace
from .base import KrylovSolver
from .bicgstab import divide_or_halt

#: The suffix ``_s`` marks the complex conjugated shadow system. It uses products with the
#: transpose, which shares the values of the matrix: no conjugate transpose is stored.
step = Steps("bicg", vectors="x r r_s z z_s p p_s q q_s", scalars="rho rho_old alpha")


def halt_without_product(w: Workspace, rho: Any) -> None:
    """Halt where <shadow, z> is 0 or not finite: it gives no direction."""
    w.halt(NOT_FINITE, when=~finite(rho))
    w.halt(BREAKDOWN, when=rho == 0)


@step
def shadow(w: Workspace) -> None:
    """Set r_s = conj(r)."""
    w.r_s = conj(w.r)


@step
def start(w: Workspace) -> None:
    """Set p = z, p_s = z_s, rho = sum r_s z; a column with rho = 0 breaks down."""
    w.p = w.z
    w.p_s = w.z_s
    w.rho = total(w.r_s * w.z)
    halt_without_product(w, w.rho)


@step
def length(w: Workspace) -> None:
    """Set alpha = rho / sum p_s q; a column where that is 0 or not finite breaks down."""
    w.alpha = divide_or_halt(w, w.rho, total(w.p_s * w.q))


@step
def update(w: Workspace) -> None:
    """Set x += alpha p, r -= alpha q, r_s -= alpha q_s; rho = sum r_s r; observes |r|.

    The rho before becomes rho_old. Then a running column with |rho| <= eps^2 |r| |r_s| halts as
    broken down.
    """
    w.x += w.alpha * w.p
    w.r -= w.alpha * w.q
    w.r_s -= w.alpha * w.q_s
    rho, norm = total(w.r_s * w.r), sqrt(norm2(w.r))
    w.rho_old, w.rho = w.rho, rho
    w.observe(norm)
    w.halt(NOT_FINITE, when=~finite(rho))
    w.halt(BREAKDOWN, when=absolute(rho) <= w.epsilon * w.epsilon * norm * sqrt(norm2(w.r_s)))


@step
def weigh(w: Workspace) -> None:
    """Set rho = sum r_s z; a column with rho = 0 breaks down."""
    w.rho = total(w.r_s * w.z)
    halt_without_product(w, w.rho)


@step
def direction(w: Workspace) -> None:
    """Set p = z + beta p, p_s = z_s + beta p_s with beta = rho / rho_old."""
    beta = w.rho / w.rho_old
    w.p = w.z + beta * w.p
    w.p_s = w.z_s + beta * w.p_s


class Bicg(KrylovSolver):
    """Bi-conjugate gradients, for any square operator that has a transpose.

    It converges as irregularly as :class:`Cgs`, with smaller peaks. :class:`Bicgstab` needs the
    same number of products, none of them with the transpose, and is usually the better choice. Use
    this solver for comparisons, and for matrices for which stabilization by one vector fails
    (skew-symmetric ones).

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator; ``A.T`` is also applied.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``. ``M.T`` is also applied, so that a callable is not
        sufficient: use ``wl.LinearOperator(shape, matvec, rmatvec)``.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`. An iteration applies ``A``, ``A.T``, ``M`` and ``M.T`` once each.

    Raises
    ------
    UnsupportedOperation
        If ``A`` or ``M`` has no transpose, when the first system is solved.

    Notes
    -----
    After a division by (almost) zero in its recurrence, a column restarts from its iterate with a
    new shadow residual, as long as this reduces the true residual; otherwise it ends as a
    *breakdown*.

    One iteration without ``M`` reads the matrix and its transpose once each, and moves 21 vectors:
    4 for the products, 2 for the length, 9 for the update, 6 for the directions. For CSR matrices,
    the first solve stores the transpose in CSR, too.

    References
    ----------
    R. Fletcher, Conjugate gradient methods for indefinite systems, Lecture Notes in Mathematics 506
    (1976); Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, algorithm 7.3.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Bicg(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
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
            work.vectors("r_s")
            work.z, work.z_s = work.r, work.r_s
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Set r_s = conj(r) and the first directions."""
        w = work
        shadow(w)
        self._precondition(w)
        start(w)

    def iterate(self, work: Workspace) -> None:
        """Lines 3 to 9 of the algorithm."""
        w = work
        w.A._apply(w.p, w.q, 1.0, 0.0)  # q = A p
        w.A_T._apply(w.p_s, w.q_s, 1.0, 0.0)  # q_s = A^T p_s
        length(w)  # alpha
        update(w)  # x, r, r_s
        if w.M is not None:
            self._precondition(w)
            weigh(w)  # rho
        direction(w)  # p, p_s

    def _precondition(self, work: Workspace) -> None:
        if work.M is not None:
            work.M._apply(work.r, work.z, 1.0, 0.0)
            assert work.M_T is not None
            work.M_T._apply(work.r_s, work.z_s, 1.0, 0.0)
