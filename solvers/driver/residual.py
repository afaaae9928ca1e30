"""The true residual, with sums in double precision for every dtype of the solve.

In single precision the terms of ``b - A x`` are rounded to 7 digits. Where ``|A| |x|`` is much
larger than ``|b|``, the rounding error is larger than the tolerance, and a verdict on it would be
false. So ``x`` and ``b`` are widened, the rows are added up in double precision from the values
that the matrix has, and the result is rounded once. It is made once in a cycle, not in iterations.

An operator that is known as a function alone computes in its own dtype. Its verdicts add a bound
of its rounding, ``eps |A| |x|``.
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

#: Products with random vectors that the norm of an operator is estimated by.
PROBES = 4

#: The seed of these vectors.
SEED = 2011


class ResidualOfWorkspace:
    """Makes ``b - A x`` in the arrays of a workspace.

    Parameters
    ----------
    A : LinOp, shape (m, n)
        In the dtype of the solve.
    rows, length, columns : int
        The local lengths of ``b`` and ``x``, and the number of right-hand sides.

    Attributes
    ----------
    operator : LinOp
        The operator that is applied: ``A`` in double precision where its entries are known, else
        ``A``.
    is_opaque : bool
        Whether the residual has the rounding errors of single precision, because ``A`` is known by
        a function alone.
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
        """Replace ``r``, which is ``b``, by ``b - A x``."""
        if not self.widens:
            self.operator._apply(x, r, -1.0, 1.0)
            return
        run = self.executor.run
        run(precision.raised, x, self._unit, self._x, 1.0, 0.0)
        run(precision.raised, r, self._unit, self._r, 1.0, 0.0)
        self.operator._apply(self._x, self._r, -1.0, 1.0)
        run(precision.lower, self._r, self._unit, r)

    def rounding(self, x: Array) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return a bound of the rounding errors of each column, 0 where sums are double."""
        if not self.is_opaque:
            return np.zeros(int(x.shape[1]))
        epsilon = float(np.finfo(real_dtype(self.operator.dtype)).eps)
        return np.asarray(epsilon * self._norm * norms(self.executor, x))

    @cached_property
    def _norm(self) -> float:
        """An estimate of the Frobenius norm of an opaque operator, which bounds ``|A| |x|``.

        The square of the norm of its product with a vector of normal numbers has the square of the
        Frobenius norm as its mean.
        """
        A, executor = self.operator, self.executor
        rank = 0 if executor.links is None else executor.links.rank
        random = np.random.default_rng((SEED, rank)).standard_normal((A.local_columns, PROBES))
        x = executor.copy(executor.from_host(random.astype(A.dtype)))
        y = executor.allocate((A.local_rows, PROBES), A.dtype)
        A._apply(x, y, 1.0, 0.0)
        return float(np.sqrt(np.mean(column_values(executor, vector.norm, y) ** 2)))


class NormalResidual(ResidualOfWorkspace):
    """Also makes ``A^H r`` of the residual that it made last, in the same precision.

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
