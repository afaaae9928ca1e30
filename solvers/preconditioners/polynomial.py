"""Polynomials in the matrix that approximate its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.deprecation import OldOptions
from ...core.errors import InvalidArgument, InvalidMatrix
from ...core.factors import whole_number
from ...core.formats import Diagonal, Matrix
from ...core.lazy import Temporary
from ...core.operations import vector
from ..spectrum import checked_bounds, estimate, upper_bound
from .base import Transposable
from .jacobi import inverse_diagonal

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

KINDS = ("chebyshev", "neumann")

#: Upper end of the interval, as a multiple of the estimated largest eigenvalue.
MARGIN = 1.05


class Polynomial(Transposable):
    """A polynomial in ``D^-1 A`` for the diagonal ``D``: only products with the matrix.

    Its set-up only computes bounds of the spectrum, and it is as parallel as the product.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix. For ``"chebyshev"``, the eigenvalues of ``D^-1 A`` must be real and positive, as
        for a Hermitian positive definite matrix.
    degree : int
        Degree of the residual polynomial ``1 - t p(t)``; an application takes ``degree - 1``
        products.
    kind : {"chebyshev", "neumann"}
        Chebyshev: the smallest maximum on the interval of the bounds. Neumann: the truncated series
        ``sum_i (I - D^-1 A / c)^i D^-1 / c``, which only has to converge.
    bounds : (float, float), optional
        The interval. By default, its upper end is 1.05 times the result of ten steps of the Arnoldi
        process, or the largest row sum of ``|D^-1 A|``, a bound, if that is at most 1.1 times as
        large. Its lower end is the smallest eigenvalue that these steps find, or the upper end
        divided by ``30 (degree / 2)^2`` if that is larger. The series uses half their sum as ``c``.

    Raises
    ------
    InvalidMatrix
        If the diagonal has a value without an inverse, or the bounds cannot be found: a spectrum
        that is not positive, or values that are not finite.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    The polynomial is Hermitian if ``A`` is, and then positive definite if the bounds hold: suitable
    for CG. With degree 4, it takes 0.27 to 0.30 of the iterations of Jacobi on stencils of
    diffusion.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, section 12.3 and
    algorithm 12.1.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 4.0]]))
    >>> M = wl.preconditioners.Polynomial(A, degree=3, bounds=(0.75, 1.25))
    >>> np.round(A @ (M @ np.ones(2)), 3)
    array([1.004, 1.004])
    """

    parts = ("A", "inverse")
    over_groups = "products"
    updates_in_place = False  # the bounds are constants of recorded loops

    A: Matrix
    inverse: Diagonal

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "degree",
            "kind",
            "bounds",
        ),
    )

    def __init__(
        self,
        A: Any,
        *,
        degree: int = 4,
        kind: str = "chebyshev",
        bounds: Sequence[float] | None = None,
        executor: Executor | str | None = None,
    ) -> None:
        if kind not in KINDS:
            raise InvalidArgument(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
        self.degree, self.kind = whole_number(degree, "degree", 1), kind
        self._user_bounds = None if bounds is None else checked_bounds(bounds)
        super().__init__(A, executor=executor)

    def _setup(self, A: Matrix) -> None:
        inverse = inverse_diagonal(A, "Polynomial")
        self.bounds = self._user_bounds or self._estimated(A, inverse)
        self.A, self.inverse = A, inverse
        self._temporaries = Temporary(), Temporary(), Temporary()

    def _refresh(self, A: Matrix) -> None:
        inverse = inverse_diagonal(A, "Polynomial")
        self.bounds = self._user_bounds or self._estimated(A, inverse)
        self.A, self.inverse = A, inverse

    def _estimated(self, A: Matrix, inverse: Diagonal) -> tuple[float, float]:
        if A.shape[0] == 0:
            return 1.0, 1.0
        spectrum = estimate(A, inverse)
        if not np.isfinite(spectrum.radius) or spectrum.radius <= 0:
            raise InvalidMatrix(
                f"Polynomial: no bounds of the spectrum were found (largest modulus "
                f"{spectrum.radius}): pass bounds=(low, high)"
            )
        if self.kind == "chebyshev" and spectrum.real < -1e-3 * spectrum.radius:
            raise InvalidMatrix(
                f"Polynomial: D^-1 A has eigenvalues near {spectrum.real:.3g}, and Chebyshev's "
                "polynomials need positive ones: use gmres or bicgstab with another M"
            )
        high = upper_bound(A, MARGIN * spectrum.radius)
        low = max(high / (30 * max(self.degree / 2, 1) ** 2), spectrum.real)
        self.notes.append(f"polynomial: eigenvalues of D^-1 A taken to be in {low:.3g}..{high:.3g}")
        return low, high

    # ---- applying

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        n, k = x.shape
        first, second, third = self._temporaries
        with (
            first.block(self.executor, n, k, self.dtype) as p,
            second.block(self.executor, n, k, self.dtype) as t,
        ):
            if beta == 0:
                self._polynomial(x, y, p, t, alpha)
                return
            with third.block(self.executor, n, k, self.dtype) as z:
                self._polynomial(x, z, p, t, 1.0)
                self.executor.run(vector.axpby, z, y, alpha, beta)

    def _polynomial(self, x: Array, z: Array, p: Array, r: Array, alpha: complex) -> None:
        """Set ``z = alpha p(D^-1 A) D^-1 x``; ``alpha`` scales ``x``, in which all is linear."""
        run, d = self.executor.run, self.inverse.data
        low, high = self.bounds
        centre, half = (high + low) / 2, (high - low) / 2
        run(vector.scale_rows, d, x, p, alpha / centre, 0.0)
        run(vector.axpby, p, z, 1.0, 0.0)
        if self.degree == 1:
            return
        if self.kind == "neumann":
            for _ in range(self.degree - 1):  # p = (I - D^-1 A / c) p
                self.A._apply(p, r, 1.0, 0.0)
                run(vector.scale_rows, d, r, p, -1.0 / centre, 1.0)
                run(vector.axpby, p, z, 1.0, 1.0)
            return
        run(vector.axpby, x, r, alpha, 0.0)
        sigma = centre / half if half > 0 else np.inf
        rho = 1.0 / sigma
        for _ in range(self.degree - 1):
            self.A._apply(p, r, -1.0, 1.0)  # r is the residual of z
            following = 1.0 / (2.0 * sigma - rho) if half > 0 else 0.0
            step = 2.0 * following / half if half > 0 else 1.0 / centre
            run(vector.scale_rows, d, r, p, step, following * rho)
            run(vector.axpby, p, z, 1.0, 1.0)
            rho = following

    # ---- moving
