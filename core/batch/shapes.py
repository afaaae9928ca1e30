"""Dense operands of batches: one vector per matrix, or blocks that are broadcast."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeMismatch
from ..small_values import as_dtype

if TYPE_CHECKING:
    from ..executor import Array
    from .matrix import BatchMatrix


class BatchOperand:
    """A dense operand of a batch.

    Parameters
    ----------
    A : BatchMatrix
        A batch of matrices of shape (m, n).
    array : array, shape (*batch_shape, n), (n,) or (..., n, k)
        A native array.

    Attributes
    ----------
    batch_shape : tuple of int
        The leading axes of the result.
    columns : tuple of int
        Empty for vectors, otherwise ``(k,)``.

    Raises
    ------
    ShapeMismatch
        If the shapes are incompatible.
    """

    def __init__(self, A: BatchMatrix, array: Array) -> None:
        n, axes = A.shape[1], tuple(A.batch_shape)
        self.A, self.array = A, array
        shape = tuple(array.shape)
        self.columns: tuple[int, ...] = ()
        if shape in ((*axes, n), (n,)):
            self.batch_shape, self._lead = axes, shape[:-1]
            return
        expected = f"({n},), {(*axes, n)} or (..., {n}, k)"
        if len(shape) < 2 or shape[-2] != n:
            raise ShapeMismatch(f"X: expected shape {expected}, got {shape}")
        self.columns = (shape[-1],)
        self._lead = shape[:-2]
        try:
            self.batch_shape = np.broadcast_shapes(axes, self._lead)
        except ValueError:
            raise ShapeMismatch(
                f"X: expected shape {expected} with leading axes that fit the batch's, "
                f"{axes}; got {shape}"
            ) from None

    @property
    def count(self) -> int:
        """The number of blocks."""
        return prod(self.batch_shape)

    def blocks(self, dtype: np.dtype[Any]) -> Array:
        """Return the operand in ``dtype`` as contiguous blocks, shape (count, n, k)."""
        xp, n = self.A.executor.xp, self.A.shape[1]
        array = as_dtype(self.A.executor, self.array, dtype)
        tail = (n, *(self.columns or (1,)))
        array = array.reshape(*self._lead, *tail)
        whole = xp.broadcast_to(array, (*self.batch_shape, *tail))
        return xp.ascontiguousarray(whole).reshape(self.count, *tail)

    def values(self, values: Array) -> Array:
        """Return the matrix values for each block, one row per block."""
        if self.batch_shape == self.A.batch_shape:
            return values
        xp, shape = self.A.executor.xp, tuple(values.shape[1:])
        whole = values.reshape(*self.A.batch_shape, *shape)
        whole = xp.broadcast_to(whole, (*self.batch_shape, *shape))
        return xp.ascontiguousarray(whole).reshape(self.count, *shape)


def vectors_of(A: BatchMatrix, array: Array, label: str) -> tuple[Array, tuple[int, ...]]:
    """Return right-hand sides or initial guesses of all systems as blocks, and their columns.

    Parameters
    ----------
    A : BatchMatrix
        The matrices.
    array : array, shape (*batch_shape, n), (n,) or (*batch_shape, n, k)
        A native array; one vector of shape (n,) is used for all systems.
    label : str
        Name of the operand in messages.

    Returns
    -------
    blocks : array, shape (count, n, k)
        The blocks, with any strides.
    columns : tuple of int
        Empty for vectors, otherwise ``(k,)``.
    """
    axes, n = tuple(A.batch_shape), A.shape[0]
    shape, xp = tuple(array.shape), A.executor.xp
    if shape == (n,) or shape == (*axes, n):
        whole = xp.broadcast_to(array, (*axes, n))
        return whole.reshape(A.count, n, 1), ()
    if shape[:-1] == (*axes, n):
        return array.reshape(A.count, n, shape[-1]), (shape[-1],)
    rows = ", ".join(map(str, (*axes, n)))
    raise ShapeMismatch(f"{label}: expected shape ({rows}), ({rows}, k) or ({n},), got {shape}")
