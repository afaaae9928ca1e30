"""Batches in the CSR format."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..formats.csr import Csr
from ..products.spmm import spmm
from .matrix import BatchMatrix
from .shapes import BatchOperand

if TYPE_CHECKING:
    from ..executor import Array


class BatchCsr(BatchMatrix):
    """Many sparse matrices with a common pattern, in the CSR format.

    ``wl.Csr((data, indices, indptr), shape=(m, n))`` creates it if ``data`` has leading axes.

    Attributes
    ----------
    data : array, shape (*batch_shape, nnz)
        Values, row by row.
    indices, indptr : arrays of int32 or int64
        The common pattern of all matrices.

    Notes
    -----
    A product reads the pattern once for all matrices.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> data = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]])
    >>> A = wl.Csr((data, [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    >>> A.batch_shape, A.shape
    ((2,), (2, 2))
    >>> A @ np.array([1.0, 2.0])
    array([[ 6.,  6.],
           [ 2., 10.]])
    """

    format = "csr"

    _one: Csr

    @property
    def indices(self) -> Array:
        """Columns of the entries, common to all matrices."""
        return self._one.indices

    @property
    def indptr(self) -> Array:
        """Start of each row, common to all matrices."""
        return self._one.indptr

    @property
    def pattern(self) -> Csr:
        """A matrix with the common pattern; its values have no meaning."""
        return self._one

    def tocsr(self) -> BatchCsr:
        """Return this batch."""
        return self

    def _prepare_product(self, operand: BatchOperand, dtype: np.dtype[Any]) -> None:
        self._one.plan_for("spmm", prod(operand.columns), dtype=dtype)

    def _product(self, operand: BatchOperand, blocks: Array) -> Array:
        values = operand.values(self._values)
        if not operand.count:
            return self.executor.zeros((0, self.shape[0], blocks.shape[2]), blocks.dtype)
        return spmm(self._one, blocks, values=values)

    @property
    def T(self) -> BatchCsr:
        """The transposes in the CSR format; they share no values with this batch."""
        self.executor.refuse_capture(MAKES)
        pattern, order = self._one.transposed_pattern()
        return BatchCsr._from_values(
            pattern, self.batch_shape, self._values[:, order], follows=self._follows
        )

    @cached_property
    def _on_diagonal(self) -> tuple[Csr, Array]:
        """The diagonal entries as the single column of a matrix, and their positions."""
        xp = self.executor.xp
        rows = xp.repeat(xp.arange(self.shape[0]), xp.diff(self.indptr).astype(xp.int64))
        places = xp.nonzero(self.indices == rows)[0]
        counts = xp.bincount(rows[places], minlength=self.shape[0])[: min(self.shape)]
        indptr = xp.zeros(min(self.shape) + 1, self.indptr.dtype)
        indptr[1:] = xp.cumsum(counts)
        zeros = self.executor.zeros((int(places.size),), self.dtype)
        columns = self.executor.zeros((int(places.size),), self.indptr.dtype)
        shape = (min(self.shape), 1)
        return Csr._from_arrays(self.executor, shape, zeros, columns, indptr), places

    def diagonal(self) -> Any:
        """Return the main diagonals as a native array, shape (*batch_shape, min(m, n)).

        Duplicate entries are summed.
        """
        self.executor.refuse_capture(MAKES)
        ones, places = self._on_diagonal
        made = BatchCsr._from_values(ones, self.batch_shape, self._values[:, places])
        return made @ self.executor.from_host(np.ones(1, self.dtype))
