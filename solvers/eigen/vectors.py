"""Orthonormal vectors, stored as rows, that are appended one by one and recombined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import real_dtype
from ...core.operations import vector
from ...core.small_values import as_dtype
from ..driver.scaling import exponents_of, largest_values, power_of_two, scale_columns
from . import tall
from .base import not_positive
from .scale import ROUNDING

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.linop import LinOp

Numbers = np.ndarray[Any, Any]

#: A space is exhausted if a new vector, after orthogonalization, is shorter than this multiple of
#: the precision times its length before: it is a rounding error.
EXHAUSTED_ROUNDOFFS = 16.0


class Remainder(NamedTuple):
    """The part of a vector that is orthogonal to the first vectors of a basis.

    Attributes
    ----------
    coefficients : array, shape (count,)
        Coefficients of the subtracted vectors.
    length : float
        The norm of the remainder.
    exhausted : bool
        Whether the remainder is a rounding error.
    """

    coefficients: Numbers
    length: float
    exhausted: bool


class Vectors:
    """Vectors ``v_i`` that are orthonormal in an inner product, and a candidate vector ``w``.

    Parameters
    ----------
    executor : Executor
        The executor of the vectors.
    n, size : int
        Their length on this executor, and their largest number, without the last one.
    dtype : dtype
        The dtype of the vectors.
    inner : LinOp or None
        The matrix of the inner product.
    seed : int
        Seed of random vectors.
    name : str
        The name of the inner product's matrix in errors.
    dimension : int, optional
        Their length on all members of a group together.
    """

    def __init__(
        self,
        executor: Executor,
        n: int,
        size: int,
        dtype: Any,
        inner: LinOp | None,
        seed: int,
        name: str = "B",
        dimension: int | None = None,
    ) -> None:
        self.dimension = n if dimension is None else dimension
        self.executor, self.n, self.size, self.dtype = executor, n, size, np.dtype(dtype)
        self.inner, self.name, self.seed, self.drawn = inner, name, seed, 0
        self.eps = float(np.finfo(dtype).eps)
        self.V = executor.zeros((size + 1, n), dtype)
        self.w = executor.zeros((n, 1), dtype)
        self.Bw = self.w if inner is None else executor.zeros((n, 1), dtype)
        self.small = np.dtype(np.complex128 if self.dtype.kind == "c" else np.float64)

    def row(self, j: int) -> Array:
        """Return a vector as a block."""
        return self.V[j].reshape(self.n, 1)

    def begin(self, start: Array | None) -> None:
        """Store the first vector: the initial vector unless it is zero, or a random one."""
        if start is not None:
            tall.copy(self.executor, as_dtype(self.executor, start, self.dtype), self.w)
            largest = float(largest_values(self.executor, self.w)[0])
            powers = np.array([power_of_two(largest)])
            scale_columns(self.executor, self.w, exponents_of(powers))
            if self.orthogonalize(0).length > 0:
                self.append(0)
                return
        self.random(0)

    def with_inner(self, x: Array) -> Array:
        """Return the matrix of the inner product times ``x``."""
        if self.inner is None:
            return x
        self.inner._apply(x, self.Bw, 1.0, 0.0)
        return self.Bw

    def orthogonalize(self, count: int) -> Remainder:
        """Orthogonalize ``w`` against the first vectors, by classical Gram-Schmidt twice."""
        executor, xp = self.executor, self.executor.xp
        V, w = self.V[:count], self.w.reshape(self.n)
        subtracted = np.zeros(count, self.small)
        before = 0.0
        for turn in range(2):
            Bw = self.with_inner(self.w)
            if turn == 0:
                before = self.length(Bw)
            if count:
                flat = Bw.reshape(self.n)
                h = xp.matmul(V, flat.conj()).conj() if self.dtype.kind == "c" else V @ flat
                h = tall.total(executor, h)
                w -= xp.matmul(h, V)
                subtracted += np.array(executor.to_host(h))
        length = self.length(self.with_inner(self.w))
        exhausted = not length > EXHAUSTED_ROUNDOFFS * self.eps * before
        return Remainder(subtracted, length, exhausted)

    def length(self, Bw: Array) -> float:
        """Return the length of ``w``; 0 if its square is negative by rounding.

        Raises
        ------
        InvalidMatrix
            If the inner product is not positive.
        """
        if self.inner is None:
            return self._norm(self.w)
        value = self.executor.allocate((1,), self.dtype)
        self.executor.run(vector.dot, self.w, Bw, value)
        square = complex(self.executor.to_host(value)[0]).real
        if square < -ROUNDING * self.eps * self._norm(self.w) * self._norm(Bw):
            raise not_positive(self.name)
        return float(np.sqrt(square)) if not square < 0 else 0.0

    def _norm(self, x: Array) -> float:
        value = self.executor.allocate((1,), real_dtype(self.dtype))
        self.executor.run(vector.norm, x, value)
        return float(self.executor.to_host(value)[0])

    def append(self, j: int) -> None:
        """Store ``w`` divided by its length as vector ``j``."""
        length = self.length(self.with_inner(self.w))
        self.executor.run(vector.axpby, self.w, self.row(j), 1.0 / length, 0.0)

    def random(self, j: int) -> bool:
        """Store a random vector that is orthogonal to the earlier ones; False without one."""
        if j >= self.dimension:
            return False
        for _ in range(3):
            seed = (self.seed, self.drawn)
            made = tall.random_block(self.executor, self.n, 1, self.dtype, seed)
            self.drawn += 1
            tall.copy(self.executor, made, self.w)
            remainder = self.orthogonalize(j)
            if not remainder.exhausted and np.isfinite(remainder.length):
                self.append(j)
                return True
        return False

    def replace(self, Y: Numbers, used: int) -> None:
        """Replace the first ``used`` vectors by fewer: ``sum_i v_i Y_i``."""
        executor, kept = self.executor, Y.shape[1]
        small = executor.from_host(np.ascontiguousarray(Y.T, dtype=self.dtype))
        step = tall.rows_at_once(executor, self.V)
        for begin in range(0, self.n, step):
            part = slice(begin, begin + step)
            self.V[:kept, part] = executor.xp.matmul(small, self.V[:used, part])

    def combined(self, Y: Numbers) -> Array:
        """Return ``sum_i v_i Y_i`` of the first vectors as a block of shape (n, k)."""
        executor = self.executor
        small = executor.from_host(np.ascontiguousarray(Y, dtype=self.dtype))
        return executor.copy(executor.xp.matmul(self.V[: Y.shape[0]].T, small))
