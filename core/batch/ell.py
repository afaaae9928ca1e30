"""Batches in the ELL format (padded rows)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formats.csr import Csr
from ..formats.ell import Ell
from .csr import BatchCsr
from .matrix import BatchMatrix
from .shapes import BatchOperand

if TYPE_CHECKING:
    from ..executor import Array


class BatchEll(BatchMatrix):
    """Many sparse matrices with a common pattern, in the ELL format (padded rows).

    ``wl.Ell(A)`` creates it from another batch.

    Attributes
    ----------
    data : array, shape (*batch_shape, width, m)
        Entry ``j`` of row ``i`` is ``data[..., j, i]``; padding is 0.
    indices : array, shape (width, m)
        Columns, common to all matrices; padding is -1.

    Notes
    -----
    Products first reorder the values to the order of CSR.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> data = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]])
    >>> A = wl.Ell(wl.Csr((data, [0, 1, 1], [0, 2, 3]), shape=(2, 2)))
    >>> A.data.shape, A @ np.array([1.0, 2.0])
    ((2, 2, 2), array([[ 6.,  6.],
           [ 2., 10.]]))
    """

    format = "ell"

    _one: Ell

    @property
    def indices(self) -> Array:
        """Columns of the entries, common to all matrices, shape (width, m)."""
        return self._one.indices

    @property
    def width(self) -> int:
        """The number of entries to which each row is padded."""
        return self._one.width

    @cached_property
    def _as_rows(self) -> tuple[Csr, Array]:
        """The pattern in the CSR format, and the position of each entry in the padded array."""
        on = self.executor
        columns = np.asarray(on.to_host(self.indices)).T  # row by row, as in CSR
        stored = columns >= 0
        indptr = np.zeros(self.shape[0] + 1, columns.dtype)
        indptr[1:] = np.cumsum(np.count_nonzero(stored, axis=1))
        places = np.arange(columns.size).reshape(columns.T.shape).T[stored]
        indices = np.ascontiguousarray(columns[stored])
        zeros = on.zeros((indices.size,), np.float32)
        arrays = (on.from_host(indices), on.from_host(indptr))
        return Csr._from_arrays(on, self.shape, zeros, *arrays), on.from_host(places)

    def tocsr(self) -> BatchCsr:
        """Return this batch in the CSR format; it shares no values with this batch."""
        pattern, places = self._as_rows
        values = self._values.reshape(self.count, -1 if self.count else self._one.data.size)
        return BatchCsr._from_values(
            pattern, self.batch_shape, values[:, places], follows=self._follows
        )

    def _product(self, operand: BatchOperand, blocks: Array) -> Array:
        return self.tocsr()._product(operand, blocks)

    @property
    def T(self) -> BatchMatrix:
        """The transposes."""
        return self.tocsr().T.asformat("ell")


def padded(batch: BatchCsr) -> BatchEll:
    """Return a CSR batch in the ELL format."""
    on = batch.executor
    # The values are the entry numbers, counted from 1, so that zeros mark the padding.
    numbers = np.arange(1, batch.nnz + 1, dtype=np.float64)
    counted: Any = batch.pattern._with_data(on.from_host(numbers)).asformat("ell")
    places = np.asarray(on.to_host(counted.data)).astype(np.int64)
    order = on.from_host(np.maximum(places - 1, 0))
    values = on.zeros((batch.count, *places.shape), batch.dtype)
    if batch.nnz:
        xp = on.xp
        stored = on.from_host(places > 0)
        values = xp.where(stored, batch._values[:, order], xp.zeros((), batch.dtype))
    zeros = on.zeros(places.shape, batch.dtype)
    one = counted._with_data(zeros)
    return BatchEll._from_values(one, batch.batch_shape, values, follows=batch._follows)
