"""The true residual, with sums in double precision for every dtype of the solve.

In single precision, the terms of ``b - A x`` are rounded to 7 digits. If ``|A| |x|`` is much larger
than ``|b|``, the rounding error exceeds the tolerance, and a verdict based on this residual would
be wrong. Hence ``x`` and ``b`` are widened, each row is summed in double precision from the stored
values of the matrix, and the result is rounded once. This is done once per cycle, not in
iterations.

An operator that is known only as a function computes in its own dtype. Verdicts on it add a bound
of the rounding errors, ``eps |A| |x|``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import double_dtype, real_dtype
from ...core.operations import precision, vector
from ...core.precision import in_double
from .scaling import column_values, norms

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.linop import LinOp

#: Number of products with random vectors for the estimate of an operator's norm.
PROBES = 4

#: The seed of these random vectors.
SEED = 2011


class ResidualOfWorkspace:
    """Computes ``b - A x`` in the arrays of a workspace.

    Parameters
    ----------
    A : LinOp, shape (m, n)
        The operator, in the dtype of the solve.
    rows, length, columns : int
        The local lengths of ``b`` and ``x``, and the number of right-hand sides.

    Attributes
    ----------
    operator : LinOp
        The operator that is applied: ``A`` in double precision if its entries are known, else
        ``A``.
    is_opaque : bool
        Whether the residual has rounding errors of single precision, because ``A`` is known only as
        a function.
    """

    def __init__(self, A: LinOp, rows: int, length: int, columns: int) -> None:
        self.executor = A.executor
        double = in_double(A)
        self.is_opaque = double is None
        self.operator = A if double is None or double is A else double._private()
        self.widens = self.operator.dtype != A.dtype
        if self.widens:
            wide = double_dtype(A.dtype)
            self.executor.compile_ahead(("precision",), wide)
            self._x = self.executor.zeros((length, columns), wide)
            self._r = self.executor.zeros((rows, columns), wide)
            self._unit = self.executor.zeros((columns,), np.float64)  # 0 stands for 1

    def make(self, x: Array, r: Array) -> None:
        """Replace ``b`` in ``r`` by ``b - A x``."""
        if not self.widens:
            self.operator._apply(x, r, -1.0, 1.0)
            return
        run = self.executor.run
        run(precision.raised, x, self._unit, self._x, 1.0, 0.0)
        run(precision.raised, r, self._unit, self._r, 1.0, 0.0)
        self.operator._apply(self._x, self._r, -1.0, 1.0)
        run(precision.lower, self._r, self._unit, r)

    def rounding(self, x: Array) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return a bound of the rounding errors of each column; 0 for sums in double precision."""
        if not self.is_opaque:
            return np.zeros(int(x.shape[1]))
        epsilon = float(np.finfo(real_dtype(self.operator.dtype)).eps)
        return np.asarray(epsilon * self._norm * norms(self.executor, x))

    @cached_property
    def _norm(self) -> float:
        """An estimate of the Frobenius norm of an opaque operator, which bounds ``|A| |x|``.

        The squared norm of the product with a standard normal vector has the squared Frobenius norm
        as its expected value.
        """
        A, executor = self.operator, self.executor
        rank = 0 if executor.links is None else executor.links.rank
        random = np.random.default_rng((SEED, rank)).standard_normal((A.local_columns, PROBES))
        x = executor.copy(executor.from_host(random.astype(A.dtype)))
        y = executor.allocate((A.local_rows, PROBES), A.dtype)
        A._apply(x, y, 1.0, 0.0)
        return float(np.sqrt(np.mean(column_values(executor, vector.norm, y) ** 2)))


class NormalResidual(ResidualOfWorkspace):
    """Also computes ``A^H r`` from the last residual, in the same precision.

    Parameters
    ----------
    A, AH : LinOp, shape (m, n) and (n, m)
        The operator and its adjoint, in the dtype of the solve.
    rows, length, columns : int
        As for :class:`ResidualOfWorkspace`.
    """

    def __init__(self, A: LinOp, AH: LinOp, rows: int, length: int, columns: int) -> None:
        super().__init__(A, rows, length, columns)
        double = in_double(AH) if self.widens else None
        self.adjoint = AH if double is None else double._private()
        self.widens_adjoint = double is not None

    def make_normal(self, r: Array, t: Array) -> None:
        """Set ``t = A^H r`` with the residual that :meth:`make` left."""
        if not self.widens_adjoint:
            self.adjoint._apply(r, t, 1.0, 0.0)
            return
        self.adjoint._apply(self._r, self._x, 1.0, 0.0)
        self.executor.run(precision.lower, self._x, self._unit, t)
