"""Chebyshev polynomials on the upper part of the spectrum: the smoother of multigrid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.deprecation import OldOptions
from ...core.errors import InvalidArgument, InvalidMatrix
from ...core.factors import whole_number
from ...core.formats import Diagonal, Matrix
from ...core.lazy import Temporary
from ...core.operations import vector
from ..auto.facts import is_hermitian_by_rows
from ..spectrum import POWER_MARGIN, largest_row_sum, power_estimate
from . import smoothing
from .base import Transposable, distinct_rows_of, rows_of
from .jacobi import count_without_inverse, require_inverse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.executor import Array, Executor
    from ...core.formats import Csr

#: Lower end of the interval, as a fraction of its upper end: lower components are left to coarser
#: levels.
LOWER = 0.2

#: The same fraction for non-Hermitian matrices. Their eigenvalues of ``D^-1 A`` may be anywhere in
#: a disc around 1, and a polynomial that is small on a long interval is large next to it: with two
#: steps, it is 1.2 at 1 + i for [0.4, 2], and 0.73 for [0.8, 2].
LOWER_OF_OTHERS = 0.4


ENDS = ("auto", "rows", "power")

#: A row sum of at most this value is close to the largest eigenvalue. Row sums of diffusion are 2
#: to 3, with eigenvalues of 1.4 to 2.1; row sums of elasticity are 4.9, with an eigenvalue of 3.1.
NEAR = 3.2


def _interval(fraction: Any, bounds: Any) -> tuple[float | None, float | str]:
    """Return the lower end as a fraction of the upper one, or None, and the upper end or its name.

    Raises
    ------
    InvalidArgument
        If they do not define an interval of positive numbers.
    """
    numbers = (int, float, np.number)
    if fraction is not None and not (isinstance(fraction, numbers) and 0 < fraction < 1):
        raise InvalidArgument(f"fraction: expected a number between 0 and 1, got {fraction!r}")
    part = None if fraction is None else float(fraction)
    if isinstance(bounds, str):
        if bounds in ENDS:
            return part, bounds
    elif isinstance(bounds, numbers):
        if 0 < float(bounds) < np.inf:
            return part, float(bounds)
    elif isinstance(bounds, (tuple, list)) and len(bounds) == 2:
        smallest, largest = bounds
        if all(isinstance(end, numbers) for end in bounds) and 0 < smallest < largest < np.inf:
            if part is not None:
                raise InvalidArgument("fraction: a pair of bounds has a lower end; give either")
            return float(smallest) / float(largest), float(largest)
    raise InvalidArgument(
        "bounds: expected a pair of positive numbers, the smaller first, a positive number, or one "
        f"of {', '.join(ENDS)}; got {bounds!r}"
    )


class Chebyshev(Transposable):
    """Steps of the Chebyshev iteration on the upper part of the spectrum of ``D^-1 A``.

    It damps the components that coarser levels of :class:`Multigrid` cannot represent. As a
    standalone preconditioner use :class:`Polynomial`: its interval reaches down to the smallest
    eigenvalue.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A matrix with an invertible diagonal ``D``. The eigenvalues of ``D^-1 A`` are real and
        positive, or have positive real parts, as for diffusion and convection by upwind
        differences.
    degree : int
        Number of steps. The first one needs no product if the iterate is 0; each other step takes
        one.
    fraction : float, optional
        The lower end of the interval as a fraction of its upper end, between 0 and 1, if ``bounds``
        has no lower end. The default is 0.2 for a Hermitian matrix, with real eigenvalues, and 0.4
        for others.
    bounds : pair of float, float or {"auto", "rows", "power"}
        Bounds of the eigenvalues of ``D^-1 A``: the smallest and the largest one, or the largest
        modulus alone, or the name of a method to find it. ``"rows"`` is the largest row sum of
        ``|D^-1 A|``, a bound from one pass over the matrix that is close for scalar equations;
        ``"power"`` is 1.1 times the result of fifteen steps of the power method. ``"auto"`` uses
        the first unless it exceeds 3.2, as for elasticity.

    Raises
    ------
    InvalidMatrix
        If the diagonal has a value without an inverse, or the upper end cannot be found.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    A step is a product and one pass over five vectors, which executors may fuse: ``q = A x``, then
    ``d = last d + next D^-1 (b - q)`` and ``x += d``. The residual is never stored.

    References
    ----------
    M. Adams, M. Brezina, J. Hu, R. Tuminaro, Parallel multigrid smoothing: polynomial versus
    Gauss-Seidel, J. Comput. Phys. 188 (2003); Y. Saad, Iterative Methods for Sparse Linear
    Systems, 2nd ed., SIAM 2003, algorithm 12.1.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    >>> M = wl.preconditioners.Chebyshev(A, degree=2, bounds=1.5)
    >>> np.round(M @ np.array([1.0, -1.0]), 2)  # the inverse, at the upper end, makes 1/3 of 1
    array([ 0.24, -0.24])
    """

    parts = ("A", "inverse")
    over_groups = "products"
    updates_in_place = False  # the factors of the steps are constants of recorded loops

    A: Matrix
    inverse: Diagonal
    #: Factors of the last correction and of ``D^-1 (b - q)``, one pair for each step.
    steps: list[tuple[float, float]]

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "degree",
            "fraction",
            "bounds",
        ),
        renamed={"lower": "fraction", "largest": "bounds"},
    )

    def __init__(
        self,
        A: Any,
        *,
        degree: int = 2,
        fraction: float | None = None,
        bounds: Sequence[float] | float | str = "auto",
        executor: Executor | str | None = None,
    ) -> None:
        self.degree = whole_number(degree, "degree", 1)
        self._requested_fraction, self._requested_bounds = _interval(fraction, bounds)
        super().__init__(A, executor=executor)

    def _setup(self, A: Matrix) -> None:
        executor, n = A.executor, A.local_rows
        count = executor.zeros((1,), np.int64)
        d, inverse = count_without_inverse(A, count)
        rows = distinct_rows_of(A) if isinstance(self._requested_bounds, str) else None
        operands = (count,) if rows is None else (count, largest_row_sum(rows))
        without, *sums = executor.transfer(*operands).read()
        require_inverse(A, "Chebyshev", d, int(without[0]))
        self.inverse = Diagonal._from_arrays(executor, (n, n), inverse)
        if not isinstance(self._requested_bounds, str):
            self._bound(A, self._requested_bounds)
        elif rows is not None:
            self._bound(A, self._upper_end(A, rows, float(sums[0][0])))

    _refresh = _setup

    def _bound(self, A: Matrix, largest: float) -> None:
        self.A = A
        if not 0 < largest < np.inf:
            raise InvalidMatrix(
                f"Chebyshev: no bound of the eigenvalues of D^-1 A was found, but {largest}: the "
                "matrix has values that are not finite, or so large that products overflow"
            )
        self.largest, self.lower = largest, self._lower_part(A)
        self.steps = chebyshev_steps(self.degree, self.lower * largest, largest)
        self._temporaries = tuple(Temporary() for _ in range(4))

    def _lower_part(self, A: Matrix) -> float:
        if self._requested_fraction is not None:
            return float(self._requested_fraction)
        return LOWER if has_real_spectrum(A) else LOWER_OF_OTHERS

    def _upper_end(self, A: Matrix, S: Csr, rows: float) -> float:
        """Return a bound of the eigenvalues; ``rows`` is the largest row sum on this executor."""
        links = None if A.partition is None else A.executor.links
        rows = rows if links is None else float(np.max(links.all(rows)))
        if self._requested_bounds == "rows" or (self._requested_bounds == "auto" and rows <= NEAR):
            return rows
        shared: Any = None if links is None else A
        return min(rows, POWER_MARGIN * power_estimate(S, shared))

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        (n, k), temporary = x.shape, self._temporaries[3]
        if alpha == 1 and beta == 0:
            self._smooth(x, y, from_zero=True)
            return
        with temporary.block(self.executor, n, k, self.dtype) as z:
            self._smooth(x, z, from_zero=True)
            self.executor.run(vector.axpby, z, y, alpha, beta)

    def _smooth(self, b: Array, x: Array, from_zero: bool) -> None:
        """Improve ``x``; ``from_zero`` assumes that it is 0, without reading it."""
        (n, k), executor = x.shape, self.executor
        first, second, third, _ = self._temporaries
        with (
            first.block(executor, n, k, self.dtype) as q,
            second.block(executor, n, k, self.dtype) as d,
            third.block(executor, n, k, self.dtype, self.A.room) as spare,
        ):
            named = {"b": b, "q": q, "d": d, "inverse": self.inverse.data}
            # steps alternate between two arrays, and the last one writes x
            odd = len(self.steps) % 2 == 1
            here = spare if from_zero and not odd else x
            for at, (last, following) in enumerate(self.steps):
                numbers = {"last": last, "next": following}
                if at == 0 and from_zero:
                    run(smoothing.begin, executor, {**named, "y": here}, **numbers)
                    continue
                self.A._apply(here, q, 1.0, 0.0)
                if at == 0 and odd:
                    run(smoothing.resume_in_place, executor, {**named, "x": x}, **numbers)
                    continue
                there = spare if here is x else x
                step = smoothing.go_on if at else smoothing.resume
                run(step, executor, {**named, "x": here, "y": there}, **numbers)
                here = there


def has_real_spectrum(A: Matrix) -> bool:
    """Return whether a matrix is Hermitian to rounding.

    If a group shares it, each member tests its diagonal block.
    """
    if A.partition is None:
        return is_hermitian_by_rows(rows_of(A).without_duplicates())
    block = A.own_block.asformat("csr").without_duplicates()  # type: ignore[attr-defined]
    return not A.executor.links.any(not is_hermitian_by_rows(block))  # type: ignore[union-attr]


def run(step: Any, executor: Any, named: dict[str, Any], **numbers: float) -> None:
    """Run a step on named arrays and numbers."""
    given = named | numbers
    step.run(executor, **{name: given[name] for name in step.names})


def chebyshev_steps(degree: int, low: float, high: float) -> list[tuple[float, float]]:
    """Return the factors of the last correction and of the scaled residual for each step."""
    centre, half = (high + low) / 2, (high - low) / 2
    sigma = centre / half
    rho = 1.0 / sigma
    result = [(0.0, 1.0 / centre)]
    for _ in range(degree - 1):
        following = 1.0 / (2.0 * sigma - rho)
        result.append((following * rho, 2.0 * following / half))
        rho = following
    return result
