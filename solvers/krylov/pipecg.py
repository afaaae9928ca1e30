"""The pipelined conjugate gradient method: one reduction per iteration."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.step import Steps, dot, norm2, real, sqrt, where
from ..driver.workspace import Workspace
from .base import KrylovSolver
from .cg import require_positive

#: ``u = M r``, ``w = A u``, ``m = M w``, ``t = A m``; the directions are ``p``, ``s = A p``,
#: ``q = M s``, ``z = A q``.
step = Steps(
    "pipecg",
    vectors="x r u w m t p s q z",
    scalars="gamma gamma_old delta alpha",
)


@step
def start(w: Workspace) -> None:
    """Set p = s = q = z = 0, gamma = <r, u>, delta = <w, u>, gamma_old = alpha = 0."""
    w.p = 0
    w.s = 0
    w.q = 0
    w.z = 0
    w.gamma, w.delta = dot(w.r, w.u), dot(w.w, w.u)
    w.gamma_old, w.alpha = 0, 0
    require_positive(w, w.gamma)
    require_positive(w, w.delta)


def lengths(w: Workspace) -> tuple[Any, Any]:
    """Return alpha and beta of the iteration; both are known at its start."""
    first = real(w.gamma_old) == 0
    beta = where(first, 0, w.gamma / w.gamma_old)
    alpha = w.gamma / (w.delta - where(first, 0, beta * w.gamma / w.alpha))
    return alpha, beta


def judge(w: Workspace, alpha: Any) -> None:
    """Keep the scalars, observe |r|, and halt where a curvature is not positive."""
    w.gamma_old, w.alpha = w.gamma, alpha
    w.gamma, w.delta = dot(w.r, w.u), dot(w.w, w.u)
    w.observe(sqrt(norm2(w.r)))
    require_positive(w, alpha)
    require_positive(w, w.gamma)


@step
def advance(w: Workspace) -> None:
    """Set p, s, z, then x += alpha p, r -= alpha s, w -= alpha z, gamma, delta; observes |r|.

    The directions are p = r + beta p, s = w + beta s, z = t + beta z, with
    beta = gamma / gamma_old and alpha = gamma / (delta - beta gamma / alpha_old).
    """
    alpha, beta = lengths(w)
    w.p = w.r + beta * w.p
    w.s = w.w + beta * w.s
    w.z = w.t + beta * w.z
    w.x += alpha * w.p
    w.r -= alpha * w.s
    w.w -= alpha * w.z
    w.gamma_old, w.alpha = w.gamma, alpha
    w.gamma, w.delta = norm2(w.r), dot(w.w, w.r)
    w.observe(sqrt(norm2(w.r)))
    require_positive(w, alpha)


@step
def advance_with_preconditioner(w: Workspace) -> None:
    """Do the same with q = m + beta q, u -= alpha q; gamma = <r, u>, delta = <w, u>."""
    alpha, beta = lengths(w)
    w.p = w.u + beta * w.p
    w.s = w.w + beta * w.s
    w.q = w.m + beta * w.q
    w.z = w.t + beta * w.z
    w.x += alpha * w.p
    w.r -= alpha * w.s
    w.u -= alpha * w.q
    w.w -= alpha * w.z
    judge(w, alpha)


class PipeCg(KrylovSolver):
    """Pipelined conjugate gradients, for Hermitian positive definite operators.

    All inner products of an iteration are computed in one reduction, for which no product waits. If
    reductions take most of the time, as in groups of devices and for small systems, it is faster
    than :class:`Cg`. It has the iterates of :class:`Cg` except for rounding errors, which grow
    faster: the smallest residual of a cycle is larger, and another cycle starts with the true
    residual.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        A Hermitian positive definite operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``; also Hermitian positive definite.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`.

    Notes
    -----
    A direction of zero or negative curvature ends a column as *indefinite*.

    One iteration without ``M`` reads the matrix once and moves 15 vectors in two passes: 2 for the
    product and 13 for the rest. With ``M``, it moves 20, plus the traffic of ``M``.

    References
    ----------
    P. Ghysels and W. Vanroose, Hiding global synchronization latency in the preconditioned
    Conjugate Gradient algorithm, Parallel Computing 40 (2014), algorithm 4.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> x, info = wl.solvers.PipeCg(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(11 * x, 6), info
    (array([1., 7.]), 0)
    """

    SPARE: ClassVar[str] = "t"
    FLEXIBLE_KIN: ClassVar[str] = "Fcg"
    HERMITIAN: ClassVar[tuple[str, ...]] = ("A", "M")

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps; without a preconditioner u is r, m is w and q is s."""
        if work.M is None:
            work.vectors("w", "s")
            work.u, work.m, work.q = work.r, work.w, work.s
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Set u = M r, w = A u, and the directions to 0 (lines 1 and 2)."""
        w = work
        if w.M is not None:
            w.M._apply(w.r, w.u, 1.0, 0.0)
        w.A._apply(w.u, w.w, 1.0, 0.0)
        start(w)

    def iterate(self, work: Workspace) -> None:
        """Lines 4 to 20 of the algorithm, with the sums of the next iteration at the end."""
        w = work
        if w.M is not None:
            w.M._apply(w.w, w.m, 1.0, 0.0)  # m = M w
        w.A._apply(w.m, w.t, 1.0, 0.0)  # t = A m
        (advance if w.M is None else advance_with_preconditioner)(w)
