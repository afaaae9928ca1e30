"""The stabilized bi-conjugate gradient method."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.errors import InvalidArgument
from ...core.step import BREAKDOWN, NOT_FINITE, Steps, absolute, dot, finite, norm2, sqrt, where
from ..driver.workspace import Workspace
from .base import SIDES, KrylovSolver

step = Steps(
    "bicgstab",
    vectors="x r y z shadow p v t",
    scalars="rho rho_old alpha omega",
    reals="scale",
    flags="halfway",
)


def begin(w: Workspace) -> None:
    """Take the residual as its own shadow; rho_old = 1, scale = |shadow|."""
    w.shadow = w.r
    w.rho, w.rho_old = norm2(w.r), 1
    w.scale = sqrt(norm2(w.r))


def divide_or_halt(w: Workspace, above: Any, below: Any, when: Any = None) -> Any:
    """Return ``above / below``; halt requested columns where the quotient is not usable."""
    quotient = above / below
    lost = ~(finite(above) & finite(below))
    broken = (below == 0) | ~finite(quotient)
    w.halt(NOT_FINITE, when=lost if when is None else when & lost)
    w.halt(BREAKDOWN, when=broken if when is None else when & broken)
    return quotient


def close_iteration(w: Workspace) -> None:
    """Observe |r|; halt where <shadow, r> is so small that the next direction is rounding error."""
    rho, norm = dot(w.shadow, w.r), sqrt(norm2(w.r))
    w.rho_old, w.rho = w.rho, rho
    w.observe(norm)
    w.halt(NOT_FINITE, when=~finite(rho))
    w.halt(BREAKDOWN, when=absolute(rho) <= w.epsilon * w.epsilon * w.scale * norm)


@step
def start(w: Workspace) -> None:
    """Set shadow = r, p = v = 0, rho = |r|^2, rho_old = alpha = omega = 1, scale = |r|."""
    begin(w)
    w.p = 0
    w.v = 0
    w.alpha = 1
    w.omega = 1


@step
def direction(w: Workspace) -> None:
    """Set p = r + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)."""
    beta = (w.rho / w.rho_old) * (w.alpha / w.omega)
    w.p = w.r + beta * (w.p - w.omega * w.v)


@step
def length(w: Workspace) -> None:
    """Set alpha = rho / <shadow, v>; a column where that is 0 or not finite breaks down."""
    w.alpha = divide_or_halt(w, w.rho, dot(w.shadow, w.v))


@step
def half(w: Workspace) -> None:
    """Set r -= alpha v; halfway = whether |r| is at its threshold already."""
    w.r -= w.alpha * w.v
    w.halfway = sqrt(norm2(w.r)) <= w.threshold


@step
def stabilize(w: Workspace) -> None:
    """Set omega = <t, r> / <t, t>; where that is 0 or not finite the column breaks down.

    Halfway, x moves by alpha y alone, and the residual is at its threshold.
    """
    omega = divide_or_halt(w, dot(w.t, w.r), norm2(w.t), when=~w.halfway)
    w.halt(BREAKDOWN, when=~w.halfway & (omega == 0))
    w.omega = where(w.halfway, 0, omega)


@step
def update(w: Workspace) -> None:
    """Set x += alpha y + omega z, r -= omega t; rho_old = rho, rho = <shadow, r>; observes |r|.

    Then a running column with |rho| <= eps^2 |shadow| |r| halts as broken down.
    """
    w.x += w.alpha * w.y + w.omega * w.z
    w.r -= w.omega * w.t
    close_iteration(w)


#: With left preconditioning, the recurrence solves ``M A x = M b``: ``s`` is its residual, and
#: ``r`` the residual of the original system; ``q = A p`` and ``u = A s`` update it.
left = Steps(
    "bicgstab_left",
    vectors="x r s p v t q u shadow",
    scalars="rho rho_old alpha omega",
    reals="scale",
    flags="halfway",
)


@left
def start_left(w: Workspace) -> None:
    """Set shadow = s, p = v = 0, rho = |s|^2, rho_old = alpha = omega = 1, scale = |s|."""
    w.shadow = w.s
    w.rho, w.rho_old = norm2(w.s), 1
    w.scale = sqrt(norm2(w.s))
    w.p = 0
    w.v = 0
    w.alpha = 1
    w.omega = 1


@left
def direction_left(w: Workspace) -> None:
    """Set p = s + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)."""
    beta = (w.rho / w.rho_old) * (w.alpha / w.omega)
    w.p = w.s + beta * (w.p - w.omega * w.v)


@left
def half_left(w: Workspace) -> None:
    """Set s -= alpha v, r -= alpha q; halfway = whether |r| is at its threshold already."""
    w.s -= w.alpha * w.v
    w.r -= w.alpha * w.q
    w.halfway = sqrt(norm2(w.r)) <= w.threshold


@left
def stabilize_left(w: Workspace) -> None:
    """Set omega = <t, s> / <t, t>; where that is 0 or not finite the column breaks down."""
    omega = divide_or_halt(w, dot(w.t, w.s), norm2(w.t), when=~w.halfway)
    w.halt(BREAKDOWN, when=~w.halfway & (omega == 0))
    w.omega = where(w.halfway, 0, omega)


@left
def update_left(w: Workspace) -> None:
    """Set x += alpha p + omega s, s -= omega t, r -= omega u; observes |r|.

    Then rho_old = rho, rho = <shadow, s>, and a running column with |rho| <= eps^2 |shadow| |s|
    halts as broken down.
    """
    w.x += w.alpha * w.p + w.omega * w.s
    w.s -= w.omega * w.t
    w.r -= w.omega * w.u
    rho, norm = dot(w.shadow, w.s), sqrt(norm2(w.s))
    w.rho_old, w.rho = w.rho, rho
    w.observe(sqrt(norm2(w.r)))
    w.halt(NOT_FINITE, when=~finite(rho))
    w.halt(BREAKDOWN, when=absolute(rho) <= w.epsilon * w.epsilon * w.scale * norm)


class Bicgstab(KrylovSolver):
    """Stabilized bi-conjugate gradients, for any square operator.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``.
    side : {"right", "left"}
        The side from which ``M`` is applied: right, ``A M y = b``, or left, ``M A x = M b``. From
        the left, ``omega`` minimizes the norm of ``M (b - A x)``, which is closer to the error if
        ``M`` is good and ``A`` badly scaled. On both sides, observed norms and the verdict refer to
        ``b - A x``.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`. An iteration applies ``A`` and ``M`` twice.

    Notes
    -----
    After a division by (almost) zero in its recurrence, a column restarts from its iterate with a
    new shadow residual, as long as this reduces the true residual; otherwise it ends as a
    *breakdown*.

    One iteration without ``M`` reads the matrix twice and moves 23 vectors. With ``M`` from the
    left, it moves 7 more, plus the traffic of ``M``.

    Raises
    ------
    InvalidArgument
        If ``side`` is unknown.

    References
    ----------
    H. A. van der Vorst, Bi-CGSTAB, SIAM J. Sci. Stat. Comput. 13 (1992); the names follow algorithm
    7.7 in Y. Saad, Iterative Methods for Sparse Linear Systems, 2003, with ``s`` kept in ``r``.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Bicgstab(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    SPARE: ClassVar[str] = "t"

    def __init__(self, A: Any, M: Any = None, *, side: str = "right", **settings: Any) -> None:
        if side not in SIDES:
            raise InvalidArgument(f"side: expected one of {', '.join(SIDES)}, got {side!r}")
        super().__init__(A, M, **settings)
        #: The side of ``M``; without ``M``, both are equal.
        self.side = side if self.M is not None else SIDES[0]

    def allocate(self, work: Workspace) -> None:
        """Allocate the directions; without a preconditioner, y is p and z is s, stored in r."""
        if self.side == "left":
            work.make(left)
            return
        if work.M is None:
            work.vectors("p")
            work.y, work.z = work.p, work.r
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Shadow = r, or M r, p = v = 0."""
        if self.side == "left":
            assert work.M is not None
            work.M._apply(work.r, work.s, 1.0, 0.0)
            start_left(work)
        else:
            start(work)

    def iterate(self, work: Workspace) -> None:
        """p, alpha, s, omega, x, r, in this order."""
        if self.side == "left":
            self._iterate_left(work)
            return
        w = work
        direction(w)  # p = r + beta (p - omega v)
        if w.M is not None:
            w.M._apply(w.p, w.y, 1.0, 0.0)  # y = M p
        w.A._apply(w.y, w.v, 1.0, 0.0)  # v = A y
        length(w)  # alpha = rho / <shadow, v>
        half(w)  # s = r - alpha v, in r
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)  # z = M s
        w.A._apply(w.z, w.t, 1.0, 0.0)  # t = A z
        stabilize(w)  # omega = <t, s> / <t, t>
        update(w)  # x += alpha y + omega z, r = s - omega t, rho = <shadow, r>

    def _iterate_left(self, work: Workspace) -> None:
        """Do an iteration for M A x = M b, and update the residual of the original system."""
        w = work
        assert w.M is not None
        direction_left(w)  # p = s + beta (p - omega v)
        w.A._apply(w.p, w.q, 1.0, 0.0)  # q = A p
        w.M._apply(w.q, w.v, 1.0, 0.0)  # v = M q
        length(w)  # alpha = rho / <shadow, v>
        half_left(w)  # s -= alpha v, r -= alpha q
        w.A._apply(w.s, w.u, 1.0, 0.0)  # u = A s
        w.M._apply(w.u, w.t, 1.0, 0.0)  # t = M u
        stabilize_left(w)  # omega = <t, s> / <t, t>
        update_left(w)  # x, s, r, rho
