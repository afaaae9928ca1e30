"""A dense matrix as an operator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array_protocol import alone, asked_by_scipy
from ..dtypes import held_dtype
from ..errors import InvalidMatrix
from ..operands import native
from ..operations import matrix as operations
from ..small_values import as_dtype
from . import validate
from .batchable import Batchable
from .constructed import Constructed
from .given import (
    converted,
    homeless,
    is_coordinates,
    is_new,
    is_sparse,
    place,
    refuse_narrow_in_scipy,
    require_shape,
)

if TYPE_CHECKING:
    from ..executor import Array, Executor


class Dense(Constructed, metaclass=Batchable):
    """A dense matrix.

    Parameters
    ----------
    arg : array, shape (m, n), or any matrix
        The entries; or ``(data, (row, col))``, with duplicates summed.
    shape : tuple of int, optional
        Rows and columns; required with coordinates, unless the largest index determines them.
    dtype, executor
        As for :class:`Csr`.
    copy : bool
        Whether the matrix must copy an array. With ``copy=False`` the array is used in place if its
        dtype, order and device allow it; updates of the matrix's values then overwrite it.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.Dense(np.array([[1.0, 2.0], [3.0, 4.0]])) @ np.array([1.0, 1.0])
    array([3., 7.])
    """

    format = "dense"
    arrays = ("data",)

    def _construct(
        self, arg: Any, shape: Any, dtype: Any, executor: Any, copy: bool | None, **options: Any
    ) -> None:
        if is_sparse(arg) or is_coordinates(arg):
            arg = validate.as_numbers(arg, dtype)
            made = converted(arg, "dense", shape, executor, copy=copy)
        else:
            made = dense_of(arg, executor)
            made = made if is_new(made.data, arg) or copy is False else made.copy()
            require_shape(made, shape)
        made = made if dtype is None else made.astype(dtype)
        self._become(made, homeless(executor, arg))

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.dense_spmv, self, x, y, alpha, beta)

    @property
    def T(self) -> Dense:
        """The transpose, a copy that later values of this matrix do not change."""
        transposed = self.executor.copy(self.data.T)
        return Dense._from_arrays(self.executor, self.shape[::-1], transposed)

    @property
    def H(self) -> Dense:
        """The conjugate transpose."""
        return self.T.conj()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the entries as a NumPy array; on a CPU it shares the memory, unless copied."""
        if asked_by_scipy(sys._getframe(1)):
            return alone(self)
        return np.array(self.executor.to_host(self.data), dtype, copy=copy)

    def to_dense(self) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array."""
        return np.array(self.executor.to_host(self.data))

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` with the nonzero entries."""
        from scipy.sparse import csr_array

        refuse_narrow_in_scipy(self.dtype)
        return csr_array(self.executor.to_host(self.data))

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<Dense {rows}x{columns} {self.dtype} on {self.executor.name}>"


def dense_of(arg: Any, executor: Executor | str | None = None) -> Dense:
    """Return an array as a matrix that may share its memory, for a conversion.

    Raises
    ------
    InvalidMatrix
        If the array does not have two dimensions.
    """
    where = place(executor, arg)
    entries = native(where, arg, "the matrix")
    if entries.ndim != 2:
        batch = "; wl.Csr(numpy.array(matrices)) is a batch of them" if entries.ndim > 2 else ""
        raise InvalidMatrix(f"expected a matrix, got an array of shape {entries.shape}{batch}")
    entries = as_dtype(where, entries, held_dtype(entries.dtype))
    if not entries.flags.c_contiguous:
        entries = where.copy(entries)
    return Dense._from_arrays(where, (int(entries.shape[0]), int(entries.shape[1])), entries)
