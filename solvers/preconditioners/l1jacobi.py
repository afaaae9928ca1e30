"""The l1-Jacobi preconditioner: row sums of absolute values instead of the diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import is_complex, real_dtype
from ...core.errors import InvalidMatrix
from ...core.formats import Csr, Diagonal, Matrix
from ...core.formats.rowwise import row_bounds
from ...core.operations import coarsen
from ...core.wording import named_rows
from .base import Preconditioner, require_finite, rows_of

if TYPE_CHECKING:
    from ...core.executor import Array


class L1Jacobi(Preconditioner):
    """The inverse of the row sums of absolute values, with the sign (phase) of the diagonal.

    The absolute value of a complex number is defined as ``|re| + |im|``.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any format.

    Raises
    ------
    InvalidMatrix
        If a row has no nonzero entry, or one that is not finite; the message names the row.

    Notes
    -----
    ``x += M (b - A x)`` converges for every Hermitian positive definite ``A`` without a damping
    factor. Hence it is a smoother of :class:`Multigrid` that cannot fail, at the price of 1.3 to
    2.2 times the iterations of :class:`Chebyshev`. ``|re| + |im|`` needs no root and is not less
    than the modulus: the statement also holds for complex matrices.

    References
    ----------
    A. H. Baker, R. D. Falgout, T. V. Kolev, U. M. Yang, Multigrid smoothers for ultraparallel
    computing, SIAM J. Sci. Comput. 33 (2011), section 5.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, -1.0], [-1.0, 2.0]]))
    >>> wl.preconditioners.L1Jacobi(A) @ np.array([5.0, 3.0])
    array([1., 1.])
    """

    parts = ("inverse",)
    over_groups = "products"

    inverse: Diagonal

    def _setup(self, A: Matrix) -> None:
        self.inverse = self._inverted(A)

    def _refresh(self, A: Matrix) -> None:
        made = self._inverted(A)
        if A.partition is None:
            require_finite(made, "L1Jacobi")
        self.inverse.update_values(made.data)

    def _inverted(self, A: Matrix) -> Diagonal:
        S = rows_of(A)
        executor, n = S.executor, S.shape[0]
        inverse = executor.allocate((n,), S.dtype)
        bad = executor.zeros((1,), "int64")
        executor.run(coarsen.invert_sums, *row_bounds(S), S.indices, S.data, inverse, bad)
        count = int(executor.to_host(bad)[0])
        if count:
            sums = row_sums(S)
            host = executor.to_host(sums)
            with np.errstate(divide="ignore", over="ignore"):
                inverses = 1 / host
            bad = np.flatnonzero(~((inverses > 0) & np.isfinite(inverses)))
            of_parts = ", |re| + |im|," if is_complex(S.dtype) else ""
            raise InvalidMatrix(
                f"L1Jacobi: the absolute values{of_parts} of {named_rows(bad.tolist())} add up to "
                f"{host[bad[0]]}, which has no inverse; use another preconditioner, such as "
                "Jacobi(replacement=1.0)"
            )
        return Diagonal._from_arrays(A.executor, (n, n), inverse)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.inverse._apply(x, y, alpha, beta)

    @property
    def T(self) -> L1Jacobi:
        """The same row sums; they equal the transpose's if the pattern is symmetric."""
        return self

    @property
    def H(self) -> L1Jacobi:
        """The conjugate of the inverse."""
        return self._remade(lambda part: part.H)


def row_sums(S: Csr) -> Array:
    """Return the row sums of the absolute values, of ``|re| + |im|`` if complex."""
    sums = S.executor.allocate((S.shape[0],), real_dtype(S.dtype))
    S.executor.run(coarsen.absolute_sums, *row_bounds(S), S.data, sums)
    return sums
