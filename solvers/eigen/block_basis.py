"""The basis of LOBPCG: blocks of orthonormal vectors, orthogonal to constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import InvalidArgument
from ...core.small_values import as_dtype
from ..driver.scaling import exponents_of, largest_values, power_of_two, scale_columns
from . import tall
from .base import not_positive
from .scale import ROUNDING

if TYPE_CHECKING:
    from ...core.executor import Array
    from .pencil import Pencil

Numbers = np.ndarray[Any, Any]

#: Repeat the orthogonalization if cancellation amplified the rounding errors of new vectors by more
#: than this factor.
LARGEST_AMPLIFICATION = 1e3

#: Upper bound of the passes. Directions that still lose digits in the last pass are rounding
#: errors.
PASSES = 4

#: Range of squared norms that are computed without over- or underflow, including the squares of
#: components.
SAFE_SQUARES = {np.dtype(np.float32): (1e-24, 1e30), np.dtype(np.float64): (1e-200, 1e200)}


class BlockBasis:
    """Orthonormal vectors ``S`` in the inner product of ``B``, and their product with ``B``.

    Parameters
    ----------
    pencil : Pencil
        The operators.
    width : int
        Upper bound of the vectors.

    Attributes
    ----------
    S, BS : array, shape (n, width)
        The vectors; the same array without ``B``.
    overflowed : bool
        Whether the last vectors to be orthonormalized had NaN or Inf.
    """

    def __init__(self, pencil: Pencil, width: int) -> None:
        self.pencil, self.executor = pencil, pencil.executor
        n = self.n = pencil.A.local_rows
        #: The length of vectors on all members of a group together.
        self.dimension = pencil.A.shape[0]
        self.dtype, self.eps = pencil.dtype, pencil.eps
        self.S = self.executor.zeros((n, width), self.dtype)
        self.BS = self.S if pencil.B is None else self.executor.zeros((n, width), self.dtype)
        self.Y: Array | None = None
        self.BY: Array | None = None
        self.overflowed = False

    def constrain(self, constraints: Array) -> None:
        """Orthonormalize constraints, and keep all vectors orthogonal to them."""
        executor = self.executor
        Y = executor.copy(constraints)
        self._rescale(Y)
        for _ in range(2):
            BY = self.pencil.with_B(Y)
            factor = tall.factor_of_basis(wide(tall.gram(executor, Y, BY)), self.eps)
            if factor.shape[1] < Y.shape[1]:
                raise InvalidArgument("Y: the constraints are linearly dependent; leave some out")
            tall.replace(executor, Y, factor)
        self.Y, self.BY = Y, self.pencil.with_B(Y)

    def fill(self, k: int, initial: Array | None, seed: int) -> None:
        """Orthonormalize the first ``k`` vectors; replace dependent ones by random ones.

        Parameters
        ----------
        k : int
            Vectors.
        initial : array, shape (n, k), optional
            Initial vectors; the vectors in ``S`` if it is None and ``seed`` is negative.
        seed : int
            Seed of random vectors.
        """
        filled = 0
        for attempt in range(4):
            if initial is not None and attempt == 0:
                tall.copy(
                    self.executor, as_dtype(self.executor, initial, self.dtype), self.S[:, :k]
                )
            elif seed >= 0 or attempt:
                new = tall.random_block(
                    self.executor, self.n, k - filled, self.dtype, (max(seed, 0), attempt)
                )
                tall.copy(self.executor, new, self.S[:, filled:k])
            filled += self.orthonormalize(filled, k - filled)
            if filled == k:
                return
        raise InvalidArgument(
            f"no {k} independent vectors were found; B has to be positive definite"
        )

    def orthonormalize(self, old: int, new: int) -> int:
        """Orthonormalize ``new`` vectors, also to the ``old`` ones before; return their number."""
        S, BS = self.S, self.BS
        self.overflowed = False
        free = self.dimension - old - (0 if self.Y is None else int(self.Y.shape[1]))
        for turn in range(PASSES):
            T = self._inner_products(old, new, first=turn == 0)
            E, G = T[:old], T[old:]
            if not np.all(np.isfinite(T)):
                self.overflowed = True
                return 0
            if turn == 0 and self.pencil.B is not None:
                self._require_positive(G, S[:, old : old + new])
            factor = tall.factor_of_basis(G - E.conj().T @ E, self.eps)
            before = np.sqrt(np.maximum(np.real(np.diag(G)), 0))
            # ratio of the norms of the subtracted columns to the norms of the new ones
            loss = np.max(np.abs(factor) * before[:, None], axis=0, initial=0.0)
            if turn == PASSES - 1:
                factor = factor[:, loss < LARGEST_AMPLIFICATION]
            factor = factor[:, max(factor.shape[1] - free, 0) :]
            new = factor.shape[1]
            if new == 0:
                return 0
            small = np.vstack([-E @ factor, factor])
            self._move(S, small, old)
            if self.pencil.B is not None:
                self._move(BS, small, old)
            if np.max(loss, initial=0.0) < LARGEST_AMPLIFICATION:
                break
        return new

    def _inner_products(self, old: int, new: int, first: bool) -> Numbers:
        """Return ``S^H B W`` for the new vectors ``W``, rows of old vectors first."""
        executor, W = self.executor, self.S[:, old : old + new]
        low, high = SAFE_SQUARES[real_dtype(self.dtype)]
        while True:
            if self.Y is not None:
                assert self.BY is not None
                tall.times(executor, self.Y, tall.gram(executor, self.BY, W), W, -1.0)
            if self.pencil.B is not None:
                tall.apply(self.pencil.B, W, self.BS[:, old : old + new])
            T = wide(tall.gram(executor, self.BS[:, : old + new], W))
            squares = np.real(np.diag(T[old:]))
            if not first or bool(np.all((squares > low) & (squares < high))):
                return T
            first = False
            self._rescale(W)

    def _rescale(self, W: Array) -> None:
        """Scale vectors by powers of two, so that their largest entries are near one."""
        largest = largest_values(self.executor, W)
        factors = [power_of_two(x) if 0 < x < np.inf else 1.0 for x in largest.tolist()]
        scale_columns(self.executor, W, exponents_of(np.array(factors)))

    def _require_positive(self, G: Numbers, W: Array) -> None:
        """Raise InvalidMatrix if a combination of the vectors has a negative square."""
        size = np.sqrt(np.abs(np.real(np.diag(G))))
        size[size == 0] = 1.0
        values, vectors = np.linalg.eigh(0.5 * (G + G.conj().T) / np.outer(size, size))
        if values[0] >= 0:
            return
        c = vectors[:, 0] / size
        square = np.real(c.conj() @ G @ c)
        # a combination of dependent columns is shorter than its parts, which have the rounding
        parts = np.sqrt(np.real(np.diag(tall.gram(self.executor, W, W))).astype(np.float64))
        length = float(np.abs(c) @ parts) ** 2
        if square < -ROUNDING * self.eps * self.pencil.of_B * length:
            raise not_positive("B")

    def _move(self, S: Array, small: Numbers, old: int) -> None:
        """Set the columns from ``old`` on to ``S small``."""
        xp, made = self.executor.xp, small.shape[1]
        C = self.executor.from_host(np.ascontiguousarray(small, dtype=self.dtype))
        rows = tall.rows_at_once(self.executor, S)
        for begin in range(0, int(S.shape[0]), rows):
            part = slice(begin, begin + rows)
            S[part, old : old + made] = xp.matmul(S[part, : small.shape[0]], C)


def wide(small: Numbers) -> Numbers:
    """Return a small matrix in double precision."""
    return small.astype(np.complex128 if small.dtype.kind == "c" else np.float64)
