"""Batches of dense matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..formats.csr import Csr
from ..formats.dense import Dense
from .csr import BatchCsr
from .matrix import BatchMatrix
from .shapes import BatchOperand

if TYPE_CHECKING:
    from ..executor import Array


class BatchDense(BatchMatrix):
    """Many dense matrices of one shape.

    ``wl.Dense(array)`` creates it if the array has leading axes.

    Attributes
    ----------
    data : array, shape (*batch_shape, m, n)
        The entries.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Dense(np.array([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]]))
    >>> A.batch_shape, A @ np.ones(2)
    ((2,), array([[2., 1.],
           [2., 1.]]))
    """

    format = "dense"

    _one: Dense

    def _product(self, operand: BatchOperand, blocks: Array) -> Array:
        return self.executor.xp.matmul(operand.values(self._values), blocks)

    def to_dense(self) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array, shape (*batch_shape, m, n)."""
        return np.array(self.executor.to_host(self.data))

    def tocsr(self) -> BatchCsr:
        """Return this batch in the CSR format; all entries are stored, including zeros."""
        on, (m, n) = self.executor, self.shape
        wide = np.int64 if m * n > np.iinfo(np.int32).max else np.int32
        indices = on.from_host(np.tile(np.arange(n, dtype=wide), m))
        indptr = on.from_host(
            np.arange(0, m * n + 1, max(n, 1), dtype=wide) if n else np.zeros(m + 1, wide)
        )
        pattern = Csr._from_arrays(on, (m, n), on.zeros((m * n,), np.float32), indices, indptr)
        values = on.copy(self._values.reshape(self.count, m * n))
        return BatchCsr._from_values(pattern, self.batch_shape, values, follows=self._follows)

    @property
    def T(self) -> BatchDense:
        """The transposes; they share no values with this batch."""
        turned = self.executor.copy(self._values.transpose(0, 2, 1))
        m, n = self.shape
        one = Dense._from_arrays(self.executor, (n, m), self.executor.zeros((n, m), self.dtype))
        return BatchDense._from_values(one, self.batch_shape, turned, follows=self._follows)
