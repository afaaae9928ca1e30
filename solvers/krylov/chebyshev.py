"""The Chebyshev iteration: no inner products, given bounds of the spectrum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import InvalidMatrix
from ...core.formats import Identity
from ...core.status import Stop
from ...core.step import NOT_FINITE, Steps, finite, norm2, sqrt, where
from ..driver.divergence import MEANS, allow_growth, halt_if_diverged
from ..driver.workspace import Workspace
from ..spectrum import checked_bounds, estimate
from .base import KrylovSolver

if TYPE_CHECKING:
    from ...core.linop import LinOp

step = Steps("chebyshev", vectors="x r z d q", reals="centre half_width rho best growth")

#: Number of products for the estimate of the spectrum.
STEPS = 20

#: Upper end of the interval, as a multiple of the estimated largest eigenvalue.
MARGIN = 1.05

#: Lower end of the interval, as a multiple of the estimated smallest eigenvalue. Estimates of 20
#: steps are too large, and error components below the interval converge most slowly.
BELOW = 0.5


@step
def start(w: Workspace) -> None:
    """Set d = z / centre, rho = half_width / centre, best = 0."""
    w.d = w.z / w.centre
    w.rho = w.half_width / w.centre
    w.best = 0


@step
def advance(w: Workspace) -> None:
    """Set x += d, r -= q; observes |r|.

    A column halts where |r| diverges.
    """
    w.x += w.d
    w.r -= w.q
    norm = sqrt(norm2(w.r))
    w.best = where((w.best == 0) | (norm < w.best), norm, w.best)
    w.observe(norm)
    halt_if_diverged(w, norm)


@step
def direction(w: Workspace) -> None:
    """Set d = rho' rho d + (2 rho' / half_width) z, rho = rho'.

    rho' = 1 / (2 centre / half_width - rho), written so that half_width may be 0.
    """
    over = 1 / (2 * w.centre - w.half_width * w.rho)
    new = w.half_width * over
    w.d = (new * w.rho) * w.d + (2 * over) * w.z
    w.halt(NOT_FINITE, when=~finite(new))
    w.rho = new


class Chebyshev(KrylovSolver):
    """The Chebyshev iteration, for operators ``M A`` with a spectrum in a known interval.

    Its only reduction is the norm of the residual. With good bounds, it takes somewhat more
    iterations than :class:`Cg`. Use it if reductions take most of the time, as a smoother, or as a
    fixed linear preconditioner (``maxiter`` without a tolerance); to solve a system, :class:`Cg` is
    usually faster.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator. The eigenvalues of ``M A`` must be real and positive, as for Hermitian
        positive definite ``A`` and ``M``.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``.
    bounds : (float, float), optional
        An interval that contains the eigenvalues of ``M A``. The default is half the smallest to
        1.05 times the largest eigenvalue from 20 steps of the Arnoldi process, which runs on the
        executor when the first system is solved, and again after :meth:`update`.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`.

    Attributes
    ----------
    interval : (float, float)
        The bounds in use.

    Raises
    ------
    InvalidArgument
        If the given bounds are not an interval of positive numbers.
    InvalidMatrix
        If the estimate finds no bounds: eigenvalues that are not positive, or values that are not
        finite.

    Notes
    -----
    Eigenvalues above the interval make the iteration diverge, which ends it as *diverged* after a
    residual that grew by more than 1/eps. Components below the interval converge more slowly.

    One iteration without ``M`` reads the matrix once and moves 11 vectors: 2 for the product, 6 for
    the update, 3 for the direction.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, algorithm 12.1; M. H.
    Gutknecht and S. Roellin, The Chebyshev iteration revisited, Parallel Computing 28 (2002).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> chebyshev = wl.solvers.Chebyshev(A, bounds=(2.0, 5.0), rtol=1e-10)
    >>> x, info = chebyshev.solve(np.array([1.0, 2.0]))
    >>> np.round(11 * x, 6), info
    (array([1., 7.]), 0)
    """

    SPARE: ClassVar[str] = "q"
    FLEXIBLE_KIN: ClassVar[str] = "Fcg"
    RESCALES: ClassVar[bool] = False
    MEANS: ClassVar[Mapping[Stop, Stop]] = MEANS

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        bounds: Sequence[float] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(A, M, **settings)
        self.bounds = None if bounds is None else checked_bounds(bounds)
        self._estimated_bounds: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds in use, computed on first use."""
        if self.bounds is not None:
            return self.bounds
        if self._estimated_bounds is None:
            self._estimated_bounds = found_bounds(self.A, self.M)
        return self._estimated_bounds

    @property
    def _has_numbers_of_A(self) -> bool:
        return self.bounds is None or super()._has_numbers_of_A

    def update(self, A: Any = None) -> None:
        """Update to new values of the matrix; recompute the bounds unless they were given."""
        super().update(A)
        if self.bounds is None:
            self._estimated_bounds = None
            self._workspaces.clear()

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the steps, and write the interval into them."""
        if work.M is None:
            work.z = work.r
        work.make(step)
        low, high = self.interval
        real = real_dtype(work.dtype)
        for name, value in (("centre", (high + low) / 2), ("half_width", (high - low) / 2)):
            work.executor.copy_into(getattr(work, name), np.full(work.k, value, real))
        allow_growth(work)

    def initialize(self, work: Workspace) -> None:
        """Set z = M r, d = z / centre."""
        if work.M is not None:
            work.M._apply(work.r, work.z, 1.0, 0.0)
        start(work)

    def iterate(self, work: Workspace) -> None:
        """One iteration."""
        w = work
        w.A._apply(w.d, w.q, 1.0, 0.0)  # q = A d
        advance(w)  # x, r
        if w.M is not None:
            w.M._apply(w.r, w.z, 1.0, 0.0)  # z = M r
        direction(w)  # d


def found_bounds(A: LinOp, M: LinOp | None) -> tuple[float, float]:
    """Return bounds of the eigenvalues of ``M A``, or raise InvalidMatrix."""
    n = A.shape[0]
    if n == 0:
        return 1.0, 1.0
    inverse: LinOp = Identity(n, dtype=A.dtype, executor=A.executor) if M is None else M
    spectrum = estimate(A, inverse, STEPS)
    if not np.isfinite(spectrum.radius) or not 0 < spectrum.real <= spectrum.radius:
        raise InvalidMatrix(
            f"Chebyshev: expected positive eigenvalues, found a smallest real part of "
            f"{spectrum.real:.3g} and a largest modulus of {spectrum.radius:.3g}: pass "
            "bounds=(low, high), or use minres or gmres"
        )
    return BELOW * spectrum.real, MARGIN * spectrum.radius
