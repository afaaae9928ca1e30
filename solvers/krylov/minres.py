"""The minimal residual method for Hermitian operators that may be indefinite or singular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...core.operations import vector
from ...core.status import Stop
from ...core.step import (
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
from ..driver.scaling import norms
from ..driver.workspace import Workspace
from .base import KrylovSolver

if TYPE_CHECKING:
    from ...core.executor import Array

#: A residual has fallen if it is below this fraction of an earlier norm.
FALLEN = 0.99

#: Number of iterations for which the residual may not fall.
PATIENCE = 20

#: ``|A r|`` is rounding error below this multiple of sqrt(eps) times its factors. On singular
#: matrices of 14 to 3,600 rows, in float32 and float64, it reached 0.04 to 0.7 before it rose
#: again.
ROUNDING = 2

#: A cosine below this multiple of sqrt(eps) does not change the norm of the residual, to rounding.
#: The previous cosine may be larger, because some iterations gain a digit or more.
QUIET, QUIET_BEFORE = 4, 30

#: ``|A r|`` may fall below DEEP times sqrt(eps) of its factors in one iteration and rise in the
#: next. The cosine is larger then, but their product is below DEEP_PRODUCT times eps.
DEEP, DEEP_PRODUCT = 1 / 32, 1 / 4

#: A true residual belongs to a least squares solution if ``|A r|`` is below this multiple of
#: sqrt(eps) times its factors. It is larger than in the recurrence, because of the rounding error
#: of x.
LEAST_SQUARES = 10

#: A residual below this multiple of eps times ``|A| |x|`` is itself rounding error, and not
#: conclusive.
NOISE = 250

#: ``u`` is a Lanczos vector times ``sigma``, ``d`` a direction times ``gamma``; the suffix ``_old``
#: marks the previous iteration.
step = Steps(
    "minres",
    vectors="x r u u_old z q d d_old",
    reals="alpha beta sigma2 sigma sigma_old scale size cosine sine delta gamma gamma_old gbar "
    "dbar epsln phi mark since",
)


@step
def measure(w: Workspace) -> None:
    """Set phi = sqrt(<r, z>), the residual norm that M defines; halt where it is undefined."""
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
    w.beta, w.sigma, w.sigma_old = 0, 1, 1
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


class Rotation(NamedTuple):
    """The rotation that ends a column of the tridiagonal matrix.

    Attributes
    ----------
    gamma : value
        The diagonal entry of the triangular factor.
    normal_ratio : value
        ``|A r| / |r|`` before the iteration.
    last_phi, last_cosine : value
        ``phi`` and the cosine before the iteration.
    """

    gamma: Any
    normal_ratio: Any
    last_phi: Any
    last_cosine: Any


def rotate(w: Workspace) -> Rotation:
    """Compute the rotation that ends a column, and store it in ``w``."""
    sigma = sqrt(w.sigma2)
    beta = w.scale * sigma
    gamma = w.scale * sqrt((w.gbar / w.scale) * (w.gbar / w.scale) + w.sigma2)
    cosine = where(gamma > 0, w.gbar / gamma, 0)
    sine = where(gamma > 0, beta / gamma, 1)
    normal_ratio = w.scale * sqrt(
        (w.gbar / w.scale) * (w.gbar / w.scale) + w.cosine * w.cosine * w.sigma2
    )
    last_phi, last_cosine = w.phi, w.cosine
    w.epsln, w.dbar = w.sine * beta, -w.cosine * beta
    w.beta, w.sigma, w.gamma = beta, sigma, gamma
    w.cosine, w.sine, w.phi = cosine, sine, sine * last_phi
    return Rotation(gamma, normal_ratio, last_phi, last_cosine)


def length(w: Workspace, rotation: Rotation) -> Any:
    """Return the step length along d; halt where the residual is that of least squares.

    ``normal_ratio`` is compared with the largest entry of the tridiagonal matrix. A column halts if
    ``A r`` consists of rounding errors only, by one of three tests: it is below eps^(3/4), or far
    below eps^(1/2) in an iteration that changes nothing; it is about eps^(1/2), and two successive
    iterations have not changed the residual norm; it is below eps^(1/2), and the residual norm has
    not fallen by 1 % for 20 iterations. In further iterations, ``A r`` would grow, the directions
    would approach the null space, and x would grow without bound. Hence x is not changed in the
    iteration that halts.
    """
    gamma, left = rotation.gamma, rotation.normal_ratio
    fell = w.phi < FALLEN * w.mark
    w.since = where(fell, 0, w.since + 1)
    w.mark = where(fell, w.phi, w.mark)
    root = sqrt(w.epsilon)
    tiny = left <= root * sqrt(root) * w.size
    quiet = (absolute(w.cosine) <= QUIET * root) & (
        absolute(rotation.last_cosine) <= QUIET_BEFORE * root
    )
    deep = absolute(w.cosine) * left <= DEEP_PRODUCT * w.epsilon * w.size
    deep = deep & (left <= DEEP * root * w.size)
    still = quiet & (left <= ROUNDING * root * w.size)
    stuck = (left <= root * w.size) & (w.since > PATIENCE)
    over = tiny | deep | still | stuck | ~(gamma > 0)
    w.halt(BREAKDOWN, when=over)
    return where(over, 0, w.cosine * rotation.last_phi / gamma)


@step
def advance(w: Workspace) -> None:
    """Set x += (cosine phi / gamma) d, phi *= sine; observes phi."""
    step_length = length(w, rotate(w))
    w.x += step_length * w.d
    w.observe(w.phi)


@step
def advance_with_residual(w: Workspace) -> None:
    """Set x += (cosine phi / gamma) d, r = sine^2 r - (cosine phi' / sigma) u; observes |r|.

    phi' = sine phi is the phi of the next iteration.
    """
    step_length = length(w, rotate(w))
    w.x += step_length * w.d
    # the normalized new Lanczos vector is u / sigma; where sigma is 0 the residual is
    along = where(w.sigma > 0, w.cosine * w.phi / w.sigma, 0)
    w.r = w.sine * w.sine * w.r - along * w.u
    w.observe(sqrt(norm2(w.r)))


class Minres(KrylovSolver):
    """The minimal residual method, for Hermitian operators that may be indefinite or singular.

    Like :class:`Gmres`, it minimizes the norm of the residual over the Krylov space, but with a
    three-term recurrence and without storing a basis. Use it for saddle point problems, shifted
    matrices, Helmholtz problems and other symmetric indefinite matrices, for which :class:`Cg` ends
    as indefinite; for positive definite matrices, :class:`Cg` is cheaper.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        A Hermitian operator. If it is singular and ``b`` is not in its range, the solve ends as
        *least squares*: not converged, with an ``x`` that minimizes the residual (with ``M``, in
        the norm that ``M`` defines). This ``x`` is not the shortest one; :class:`Lsmr` finds that.
        Small eigenvalues next to zero ones may make the stopping point undetectable: then the solve
        ends as *stagnated* or at the iteration limit, with the best verified iterate.
    M : LinOp, matrix or callable, optional
        An approximate inverse of the absolute value of ``A``, Hermitian positive definite even if
        ``A`` is not. If ``M`` is not, the column ends as *indefinite*.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`.

    Notes
    -----
    Without ``M``, observed norms come from the recurrence. With ``M``, its norms are the ones that
    ``M`` defines, so that the residual itself is updated as well.

    One iteration without ``M`` reads the matrix once and moves 16 vectors: 2 for the product, 2 for
    the projection, 9 for the Lanczos vector and the direction, 3 for ``x``. With ``M``, it moves 7
    more, plus the traffic of ``M``.

    References
    ----------
    C. C. Paige and M. A. Saunders, Solution of sparse indefinite systems of linear equations, SIAM
    J. Numer. Anal. 12 (1975), section 6; the names follow S.-C. Choi, C. C. Paige and M. A.
    Saunders, MINRES-QLP, SIAM J. Sci. Comput. 33 (2011), table 2.1 and equation 2.8; the test on
    ``|A r|`` follows section 3.2 there, with limits that rounding lets it reach.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[0.0, 1.0], [1.0, 3.0]]))
    >>> x, info = wl.solvers.Minres(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(x, 6), info
    (array([-1.,  1.]), 0)

    A singular system without a solution:

    >>> A = wl.Csr(np.array([[1.0, 0.0], [0.0, 0.0]]))
    >>> result = wl.solvers.Minres(A).solve(np.array([3.0, 1.0]))
    >>> round(result.residual_norm, 6), result.stops[0].name
    (1.0, 'LEAST_SQUARES')
    """

    SPARE: ClassVar[str] = "q"
    HERMITIAN: ClassVar[tuple[str, ...]] = ("A", "M")
    TAKES_SINGULAR: ClassVar[bool] = True

    #: If the residual of a cycle seems minimal, another cycle tests whether it falls at all. Almost
    #: singular matrices gain little in each cycle (float32, a power grid).
    PROGRESS: ClassVar[float] = 0.9

    MEANS: ClassVar[Mapping[Stop, Stop]] = MappingProxyType({Stop.BREAKDOWN: Stop.STAGNATED})

    def begin(self, work: Workspace) -> None:
        """Reset the largest entry of the tridiagonal matrix from an earlier solve."""
        work.executor.run(vector.fill, work.size.reshape(work.k, 1), 0.0)

    def least_squares(self, work: Workspace, b: Array, columns: Sequence[int]) -> list[int]:
        """Return the columns of x that are least squares solutions, tested by products.

        The largest entry of the tridiagonal matrix replaces the norm of ``A``: it is not larger.
        """
        executor = work.executor
        size = np.asarray(executor.to_host(work.size), np.float64)
        residual, product = executor.copy(b), executor.zeros(b.shape, b.dtype)
        work.residual.make(work.x, residual)
        given = residual
        if work.M is not None:
            given = executor.zeros(b.shape, b.dtype)
            work.M._apply(residual, given, 1.0, 0.0)
        work.A._apply(given, product, 1.0, 0.0)
        left, right = norms(executor, product), norms(executor, residual)
        eps = float(np.finfo(b.dtype).eps)
        least = left <= LEAST_SQUARES * np.sqrt(eps) * size * right
        if work.M is None:
            least &= right > NOISE * eps * size * norms(executor, work.x)
        return [c for c in columns if least[c]]

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps; without a preconditioner z is u."""
        if work.M is None:
            work.vectors("u")
            work.z = work.u
        work.make(step)

    def initialize(self, work: Workspace) -> None:
        """Start the Lanczos process with the residual."""
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
            advance(w)  # x; observes the recurrence's norm
        else:
            w.M._apply(w.u, w.z, 1.0, 0.0)  # z = M u
            weigh(w)  # sigma^2 = <u, z>
            advance_with_residual(w)  # x, r
