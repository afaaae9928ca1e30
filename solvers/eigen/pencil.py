"""A Hermitian pencil in units with safe squares, and the verdict on its pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.operations import vector
from ...core.status import Stop
from . import residual, tall
from .scale import ROUNDING, Measure, rescaled

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.linop import LinOp

Numbers = np.ndarray[Any, Any]


class Pencil:
    """``A x = lambda B x`` in units in which the norms of ``A`` and ``B`` are near one.

    The user's operators are ``2**a`` times ``A`` and ``2**b`` times ``B`` of this class, with even
    exponents that are 0 unless a size is extreme. All numbers of this class are in its own units;
    :meth:`values`, :meth:`lengths` and :meth:`vectors` return the user's units.

    Parameters
    ----------
    A : LinOp
        The user's.
    B : LinOp or None
        The user's.
    dtype : dtype
        The dtype of the computation.
    of_A, of_B : Measure
        Measures of the operators.
    rtol, atol : float
        The user's tolerances.
    plain : bool
        Whether vectors have Euclidean norm one, instead of norm one in the inner product of ``B``.
    """

    def __init__(
        self,
        A: LinOp,
        B: LinOp | None,
        dtype: Any,
        of_A: Measure,
        of_B: Measure,
        rtol: float,
        atol: float,
        plain: bool = False,
    ) -> None:
        self.executor, self.dtype = A.executor, np.dtype(dtype)
        self.eps = float(np.finfo(dtype).eps)
        self.of_A, self.of_B = of_A.size, of_B.size
        self.a, self.b = of_A.exponent, of_B.exponent
        self.A = rescaled(A.astype(dtype), -self.a)
        self.B = None if B is None else rescaled(B.astype(dtype), -self.b)
        #: Exponents of the vectors and of residuals.
        self.plain = plain
        self.of_vectors = 0 if plain else -self.b // 2
        self.of_residuals = self.a + self.of_vectors
        self.rtol, self.atol = rtol, float(np.ldexp(atol, -self.of_residuals))

    # ---- units

    def values(self, values: Numbers) -> Numbers:
        """Return eigenvalues in the user's units."""
        return np.ldexp(values, self.a - self.b)

    def lengths(self, norms: Numbers) -> Numbers:
        """Return norms of residuals in the user's units."""
        return np.ldexp(norms, self.of_residuals)

    def vectors(self, X: Array) -> Array:
        """Scale vectors to the user's units in place and return them."""
        if self.of_vectors:
            self.executor.run(vector.axpby, X, X, 2.0**self.of_vectors, 0.0)
        return X

    def shift(self, sigma: float) -> float:
        """Return an eigenvalue, given in the user's units, in the units of this class."""
        return float(np.ldexp(sigma, self.b - self.a))

    # ---- residuals

    def with_B(self, X: Array) -> Array:
        """Return ``B X``, or ``X`` itself without ``B``."""
        if self.B is None:
            return X
        made = self.executor.allocate(tuple(X.shape), self.dtype)
        self.B._multiply(X, made, 1.0, 0.0)
        return made

    def judged(self, X: Array, values: Numbers, seen: float = 0.0) -> tuple[Numbers, Numbers]:
        """Return the norms of the true residuals of pairs, and their upper bounds.

        ``seen`` is a lower bound of the norm of ``A`` from Ritz values.
        """
        AX = self.executor.allocate(tuple(X.shape), self.dtype)
        self.A._multiply(X, AX, 1.0, 0.0)
        return self.residuals(X, AX, self.with_B(X), AX, values, seen)

    def residuals(
        self, X: Array, AX: Array, BX: Array, R: Array, values: Numbers, seen: float = 0.0
    ) -> tuple[Numbers, Numbers]:
        """Set ``R = AX - BX diag(values)``; return the norms of its columns and their limits.

        A residual of rounding size, such as that of a pencil that differs by rounding, meets every
        tolerance.
        """
        norms, sizes = residual.norms(
            self.executor, AX, BX, R, values.astype(real_dtype(self.dtype))
        )
        lengths = np.ones_like(norms) if self.B is None else self._norms(X)
        rounding = max(self.of_A, seen) + np.abs(values) * self.of_B
        limits = np.maximum(self.rtol * np.abs(values) * sizes, self.atol)
        return norms, np.maximum(limits, ROUNDING * self.eps * rounding * lengths)

    def _norms(self, X: Array) -> Numbers:
        found = self.executor.allocate((int(X.shape[1]),), real_dtype(self.dtype))
        self.executor.run(vector.norm, X, found)
        return np.array(self.executor.to_host(found), np.float64)

    def quotients(self, X: Array) -> Numbers:
        """Return the Rayleigh quotients of vectors, ``x^H A x / x^H B x``; NaN if undefined.

        Their errors are the squares of the vectors' errors, and do not depend on a shift.
        """
        executor, parts = self.executor, []
        for operator in (self.A, self.B):
            Y = X
            if operator is not None:
                Y = executor.allocate(tuple(X.shape), X.dtype)
                operator._multiply(X, Y, 1.0, 0.0)
            found = executor.allocate((int(X.shape[1]),), X.dtype)
            executor.run(vector.dot, X, Y, found)
            parts.append(np.real(executor.to_host(found)).astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(parts[0] / parts[1])

    # ---- verdicts

    def stops(
        self, X: Array, values: Numbers, norms: Numbers, limits: Numbers, why: Stop
    ) -> list[Stop]:
        """Return the verdict on each pair; ``why`` is the reason of pairs that did not converge.

        Pairs must also be orthonormal, and eigenvalues representable in the user's units.
        """
        found = verdicts(norms, limits, why)
        for c in np.flatnonzero(~survive(values, self.a - self.b, self.eps)):
            if found[c] != Stop.NOT_FINITE:
                found[c] = Stop.OUT_OF_RANGE
        if all(np.isfinite(norms)):
            for c in np.flatnonzero(~self.orthonormal(X)):
                found[c] = Stop.STAGNATED if found[c] == Stop.CONVERGED else found[c]
        return found

    def orthonormal(self, X: Array) -> Numbers:
        """Return for each vector whether it is orthonormal to the others, to half of the digits.

        With an ill-conditioned ``B``, inner products have rounding errors. Plain vectors only have
        to differ from zero.
        """
        if self.plain:
            return np.asarray(self._norms(X) > 0)
        deviation = np.abs(tall.gram(self.executor, X, self.with_B(X)) - np.eye(int(X.shape[1])))
        lengths = np.ones(int(X.shape[1])) if self.B is None else self._norms(X)
        rounding = ROUNDING * self.eps * self.of_B * np.outer(lengths, lengths)
        return np.asarray((deviation <= np.maximum(self.eps**0.5, rounding)).all(axis=1))


def survive(values: Numbers, exponent: int, eps: float) -> Numbers:
    """Return the values that keep their digits times ``2**exponent`` in double precision."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        back = np.ldexp(np.ldexp(values, exponent), -exponent)
        return np.asarray(np.abs(back - values) <= eps * np.abs(values))


def verdicts(norms: Numbers, limits: Numbers, why: Stop) -> list[Stop]:
    """Return the verdict on each pair; ``why`` is the reason of pairs that did not converge."""
    return [
        Stop.NOT_FINITE if not np.isfinite(norm) else (Stop.CONVERGED if norm <= limit else why)
        for norm, limit in zip(norms, limits, strict=True)
    ]
