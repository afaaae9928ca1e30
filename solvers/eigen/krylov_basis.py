"""The basis of the Lanczos process with thick restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import tall
from .vectors import Numbers, Vectors

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.linop import LinOp


class KrylovBasis(Vectors):
    """Orthonormal vectors, and the matrix ``T`` of an operator in them.

    Parameters
    ----------
    executor, n, size, dtype, inner, seed, name, dimension
        As for :class:`Vectors`.
    apply : callable
        ``apply(x, Bx, y)`` sets ``y`` to the operator times ``x``.
    start : array, shape (n, 1), optional
        The first vector.
    """

    def __init__(
        self,
        executor: Executor,
        n: int,
        size: int,
        dtype: Any,
        apply: Callable[[Array, Array, Array], None],
        inner: LinOp | None,
        seed: int,
        start: Array | None,
        name: str = "B",
        dimension: int | None = None,
    ) -> None:
        super().__init__(executor, n, size, dtype, inner, seed, name, dimension)
        self.operator = apply
        self.T = np.zeros((size, size), self.small)
        self.count = self.products = 0
        #: The norm of the component of the operator's last product outside of the space.
        self.beta = 0.0
        #: Whether the space cannot be extended.
        self.complete = False
        #: The number of vectors in a full basis.
        self.used = size
        self.begin(start)

    def grow(self) -> None:
        """Continue the process until the basis is full."""
        for j in range(self.count, self.size):
            v = self.row(j)
            self.operator(v, self.with_inner(v), self.w)
            self.products += 1
            remainder = self.orthogonalize(j + 1)
            h = remainder.coefficients
            self.T[: j + 1, j] = h
            self.T[j, : j + 1] = h.conj()
            self.T[j, j] = h[j].real
            if not np.isfinite(remainder.length):
                self.T[:] = np.nan
                return
            self.beta = 0.0 if remainder.exhausted else remainder.length
            if remainder.exhausted:
                # the space is invariant: start another one, if the basis has space
                self.complete = not self.random(j + 1)
                if self.complete:
                    self.used = j + 1
                    return
            else:
                self.append(j + 1)
            if j + 1 < self.size:
                self.T[j, j + 1] = self.T[j + 1, j] = self.beta
        self.count = self.size

    def restart(self, values: Numbers, Y: Numbers) -> None:
        """Keep Ritz vectors, followed by the last vector of the process."""
        kept = values.size
        tail = self.beta * Y[-1]
        self.replace(Y, self.size)
        tall.copy(self.executor, self.row(self.size), self.row(kept))
        self.T[:] = 0
        self.T[np.arange(kept), np.arange(kept)] = values
        self.T[kept, :kept], self.T[:kept, kept] = tail, tail.conj()
        self.count = kept

    def restart_apart(self, values: Numbers, Y: Numbers) -> bool:
        """Keep converged Ritz vectors, followed by a random vector orthogonal to them.

        Returns
        -------
        bool
            Whether there is such a vector.
        """
        kept = values.size
        self.replace(Y, self.size)
        self.T[:] = 0
        self.T[np.arange(kept), np.arange(kept)] = values
        self.count = kept
        return self.random(kept)
