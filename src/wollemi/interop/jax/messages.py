"""Access to the entries of a pattern, for user-defined score functions."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ShapeMismatch
from .patterns import Sparse
from .products import softmax_p, sum_p
from .sharding import whole

EdgeFunction = Callable[[jax.Array, "Entries"], jax.Array]


class Entries:
    """The entries of a pattern, in the order in which ``A`` stores them.

    Attributes
    ----------
    rows, columns : array of int, shape (nse,)
        Row and column of each entry. Padding of a ``BCOO`` or a ``BCSR`` may have any position.
    """

    def __init__(self, sparse: Sparse) -> None:
        self._sparse = sparse

    def __repr__(self) -> str:
        rows, columns = self._sparse.shape
        return f"<entries of a matrix of {rows}x{columns}>"

    @property
    def rows(self) -> jax.Array:
        """The row of each entry."""
        sparse = self._sparse
        if sparse.held is not None:
            A = sparse.held.matrix
            counts = np.diff(A.executor.to_host(A.indptr))
            return sparse.scatter(jnp.asarray(np.repeat(np.arange(A.shape[0]), counts)))
        indptr, indices = sparse.arrays
        last = jnp.clip(indptr, 0, indices.shape[0])
        every = jnp.arange(indices.shape[0])
        return sparse.scatter(
            jnp.clip(jnp.searchsorted(last, every, side="right") - 1, 0, sparse.shape[0] - 1)
        )

    @property
    def columns(self) -> jax.Array:
        """The column of each entry."""
        sparse = self._sparse
        if sparse.held is None:
            return sparse.scatter(sparse.arrays[1])
        A = sparse.held.matrix
        return sparse.scatter(jnp.asarray(A.executor.to_host(A.indices)))

    def of_rows(self, x: jax.Array) -> jax.Array:
        """Return one number per row, shape (..., m), for each entry, shape (..., nse)."""
        return self._numbers(x, 0, "of_rows")[..., self.rows]

    def of_columns(self, x: jax.Array) -> jax.Array:
        """Return one number per column, shape (..., n), for each entry, shape (..., nse)."""
        return self._numbers(x, 1, "of_columns")[..., self.columns]

    def _numbers(self, x: jax.Array, axis: int, name: str) -> jax.Array:
        """Return an array after checking that it has one number per row or column."""
        x, expected = whole(x), self._sparse.shape[axis]
        if x.ndim == 0 or x.shape[-1] != expected:
            raise ShapeMismatch(
                f"edge: {name} takes an array of {expected} numbers along the last axis, got shape "
                f"{x.shape}"
            )
        return x

    def softmax(self, s: jax.Array) -> jax.Array:
        """Return the softmax over the entries of each row, shape (..., nse)."""
        sparse = self._sparse
        flat = sparse.checked(s, "s")
        made = softmax_p.bind(*sparse.arrays, flat.reshape(-1, flat.shape[-1]), **sparse.params)
        return sparse.scatter(made.reshape(flat.shape))

    def sum(self, x: jax.Array) -> jax.Array:
        """Return the sum over the entries of each row, shape (..., m)."""
        sparse = self._sparse
        flat = sparse.checked(x, "x")
        made = sum_p.bind(*sparse.arrays, flat.reshape(-1, flat.shape[-1]), **sparse.params)
        return made.reshape(*flat.shape[:-1], -1)
