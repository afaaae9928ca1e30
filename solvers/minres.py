"""The minimal residual method for Hermitian operators that may be indefinite or singular."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ..core.status import Stop
from ..core.step import (
    BREAKDOWN,
    INDEFINITE,
    NOT_FINITE,
    Steps,
    absolute,
    dot,
    finite,
    norm2,
    real,
    sqrt,
    where,
)
from .krylov import KrylovSolver
from .workspace import Workspace

#: A residual has fallen when it is below this share of what it was.
FALLEN = 0.99

#: Iterations that it may not have fallen for.
PATIENCE = 20

#: ``u`` is a Lanczos vector times ``sigma``, ``d`` a direction times ``gamma``; with the suffix
#: ``_old`` they are those of the iteration before.
step = Steps(
    "minres",
    vectors="x r u u_old z q d d_old",
    reals="alpha beta sigma2 sigma sigma_old scale size cosine sine delta gamma gamma_old gbar "
    "dbar epsln phi mark since",
)


@step
def measure(w: Workspace) -> None:
    """Set phi = sqrt(<r, z>), the norm of the residual that M defines; halts where it is none."""
    square = real(dot(w.r, w.z))
    w.phi = sqrt(square)
    w.halt(NOT_FINITE, when=~finite(square))
    w.halt(INDEFINITE, when=~(square > 0))


@step
def start(w: Workspace) -> None:
    """Set u = r / phi, u_old = d = d_old = 0, and the scalars of the recurrences.

    The other scalars are beta = 0, sigma = sigma_old = gamma = gamma_old = 1, cosine = -1.
    """
    w.u = w.r / w.phi
    w.u_old = 0
    w.d = 0
    w.d_old = 0
    w.beta, w.sigma, w.sigma_old, w.size = 0, 1, 1, 0
    w.cosine, w.sine, w.gamma, w.gamma_old = -1, 0, 1, 1
    w.dbar, w.epsln = 0, 0
    w.mark, w.since = w.phi, 0


def larger(a: Any, b: Any) -> Any:
    """Return the larger of two real values."""
    return where(a > b, a, b)


@step
def project(w: Workspace) -> None:
    """Set alpha = <z, q> / sigma^2, scale = max(|alpha|, beta), and rotate the new column."""
    w.alpha = real(dot(w.z, w.q)) / w.sigma / w.sigma
    w.halt(NOT_FINITE, when=~finite(w.alpha))
    scale = larger(absolute(w.alpha), w.beta)
    w.scale = where(scale > 0, scale, 1)
    w.size = larger(w.size, scale)
    w.delta = w.cosine * w.dbar + w.sine * w.alpha
    w.gbar = w.sine * w.dbar - w.cosine * w.alpha


@step
def extend(w: Workspace) -> None:
    """Set u to the next Lanczos vector over scale, d to the next direction; sigma2 = |u|^2.

    With v = z / sigma the direction is d = v - delta d / gamma - epsln d_old / gamma_old.
    """
    here, before = 1 / w.sigma / w.scale, w.beta / w.sigma_old / w.scale
    new = here * (w.q - w.alpha * w.u) - before * w.u_old
    w.d, w.d_old = (
        (1 / w.sigma) * w.z - (w.delta / w.gamma) * w.d - (w.epsln / w.gamma_old) * w.d_old,
        w.d,
    )
    w.u, w.u_old = new, w.u
    w.gamma_old, w.sigma_old = w.gamma, w.sigma
    w.sigma2 = norm2(new)


@step
def weigh(w: Workspace) -> None:
    """Set sigma2 = <u, z>; a column where it is negative halts as indefinite."""
    w.sigma2 = real(dot(w.u, w.z))
    w.halt(NOT_FINITE, when=~finite(w.sigma2))
    w.halt(INDEFINITE, when=w.sigma2 < 0)


def rotate(w: Workspace) -> tuple[Any, Any, Any]:
    """Make the rotation that ends a column; return its length, and the old and the new phi."""
    sigma = sqrt(w.sigma2)
    beta = w.scale * sigma
    gamma = w.scale * sqrt((w.gbar / w.scale) * (w.gbar / w.scale) + w.sigma2)
    cosine = where(gamma > 0, w.gbar / gamma, 0)
    sine = where(gamma > 0, beta / gamma, 1)
    left = w.scale * sqrt((w.gbar / w.scale) * (w.gbar / w.scale) + w.cosine * w.cosine * w.sigma2)
    before = w.phi
    w.epsln, w.dbar = w.sine * beta, -w.cosine * beta
    w.beta, w.sigma, w.gamma = beta, sigma, gamma
    w.cosine, w.sine, w.phi = cosine, sine, sine * before
    return gamma, left, before


def length(w: Workspace, gamma: Any, before: Any) -> Any:
    """Return how far x goes along d."""
    return where(gamma > 0, w.cosine * before / gamma, 0)


def halt_at_least_squares(w: Workspace, gamma: Any, left: Any) -> None:
    """Halt where the residual is that of least squares, or nothing is left to divide by.

    ``left`` is ``|A r| / |r|`` before the iteration. It is compared with the largest entry of the
    tridiagonal matrix: one that is eps^(3/4) of it is rounding error, one that is eps^(1/2) of it
    is so where the residual has not fallen by 1 % for 20 iterations. Beyond that point x grows in
    the null space.
    """
    fell = w.phi < FALLEN * w.mark
    w.since = where(fell, 0, w.since + 1)
    w.mark = where(fell, w.phi, w.mark)
    root = sqrt(w.epsilon)
    tiny = left <= root * sqrt(root) * w.size
    stuck = (left <= root * w.size) & (w.since > PATIENCE)
    w.halt(BREAKDOWN, when=tiny | stuck | ~(gamma > 0))


@step
def advance(w: Workspace) -> None:
    """Set x += (cosine phi / gamma) d, phi *= sine; observes phi."""
    gamma, left, before = rotate(w)
    w.x += length(w, gamma, before) * w.d
    w.observe(w.phi)
    halt_at_least_squares(w, gamma, left)


@step
def advance_with_residual(w: Workspace) -> None:
    """Set x += (cosine phi / gamma) d, r = sine^2 r - (cosine phi' / sigma) u; observes |r|.

    phi' = sine phi is the phi of the next iteration.
    """
    gamma, left, before = rotate(w)
    w.x += length(w, gamma, before) * w.d
    # the new Lanczos vector of length 1 is u / sigma; where sigma is 0 the residual is
    along = where(w.sigma > 0, w.cosine * w.phi / w.sigma, 0)
    w.r = w.sine * w.sine * w.r - along * w.u
    w.observe(sqrt(norm2(w.r)))
    halt_at_least_squares(w, gamma, left)


class Minres(KrylovSolver):
    """The minimal residual method, for Hermitian operators that may be indefinite or singular.

    It minimizes the norm of the residual over the Krylov space, as :class:`Gmres` does, with three
    terms in its recurrence and no basis to store. Use it for saddle points, shifted matrices,
    Helmholtz problems and other symmetric matrices with eigenvalues of both signs, where
    :class:`Cg` ends as indefinite; for positive definite ones :class:`Cg` is cheaper.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        Hermitian. If it is singular, ``b`` must be in its range; otherwise the solve ends as
        *stagnated* near a least squares solution, or, where rounding hides that, at the limit of
        iterations with the best iterate that was verified; :class:`Lsmr` solves such systems.
    M : LinOp, matrix or callable, optional
        Approximates the inverse of the absolute value of ``A``; Hermitian positive definite even if
        ``A`` is not. A column where it is not ends as *indefinite*.
    rtol, atol, maxiter, stop, executor
        As for :class:`Cg`.

    Notes
    -----
    Without ``M`` the norms that are observed are those of the recurrence; with ``M`` these are
    norms that ``M`` defines, so the residual itself is updated too.

    One iteration without ``M`` moves the matrix once and 16 vectors: 2 for the product, 2 for the
    projection, 9 for the Lanczos vector and the direction, 3 for ``x``. With ``M`` it moves 7 more,
    and what ``M`` does.

    References
    ----------
    C. C. Paige and M. A. Saunders, Solution of sparse indefinite systems of linear equations, SIAM
    J. Numer. Anal. 12 (1975), section 6; the names are those of S.-C. Choi, C. C. Paige and M. A.
    Saunders, MINRES-QLP, SIAM J. Sci. Comput. 33 (2011), table 2.1 and equation 2.8.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[0.0, 1.0], [1.0, 3.0]]))
    >>> x, info = wl.solvers.Minres(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(x, 6), info
    (array([-1.,  1.]), 0)
    """

    MEANS: ClassVar[Mapping[Stop, Stop]] = MappingProxyType({Stop.BREAKDOWN: Stop.STAGNATED})

    def allocate(self, work: Workspace) -> None:
        """Make what the steps name; without a preconditioner z is u."""
        if work.M is None:
            work.vectors("u")
            work.z = work.u
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Begin the Lanczos process with the residual."""
        w = work
        if w.M is None:
            w.executor.run(measure.operation, w.r, w.r, w.phi, w.status)
            start(w)
            return
        w.M._apply(w.r, w.z, 1.0, 0.0)
        measure(w)
        start(w)
        w.M._apply(w.u, w.z, 1.0, 0.0)

    def iterate(self, work: Workspace) -> None:
        """One step of the Lanczos process, a rotation, and the update of x."""
        w = work
        w.A._apply(w.z, w.q, 1.0, 0.0)  # q = A M u
        project(w)  # alpha
        extend(w)  # u, d
        if w.M is None:
            advance(w)  # x; observes what the recurrence says
        else:
            w.M._apply(w.u, w.z, 1.0, 0.0)  # z = M u
            weigh(w)  # sigma^2 = <u, z>
            advance_with_residual(w)  # x, r
