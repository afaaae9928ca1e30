"""ELLPACK: all rows are padded to the length of the longest row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..operations import matrix as operations
from .batchable import Batchable
from .constructed import Constructed

if TYPE_CHECKING:
    from ..executor import Array, Executor


class Ell(Constructed, metaclass=Batchable):
    """A sparse matrix whose rows are padded to a common width.

    Parameters
    ----------
    arg : matrix or tuple
        Any matrix, or ``(data, (row, col))`` with duplicates summed.
    shape : tuple of int, optional
        Rows and columns; required with coordinates, unless the largest index determines them.
    width : int, optional
        Number of entries to which rows are padded; by default the length of the longest row.
    dtype, executor
        As for :class:`Csr`.
    copy : bool
        Whether the entries of another library's matrix must be copied before the conversion. The
        packed arrays always belong to this matrix.

    Attributes
    ----------
    data : array, shape (width, m)
        Entry ``j`` of row ``i`` is ``data[j, i]``; padding is 0.
    indices : array of int32 or int64, shape (width, m)
        Columns; padding is -1.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Ell(np.array([[2.0, 1.0], [0.0, 3.0]]))
    >>> A.width, A @ np.array([1.0, 1.0])
    (2, array([3., 3.]))
    """

    format = "ell"
    arrays = ("data", "indices")

    indices: Array
    _nnz: int

    def __init__(
        self,
        arg: Any,
        shape: tuple[int, int] | None = None,
        *,
        width: int | None = None,
        dtype: Any = None,
        executor: Executor | str | None = None,
        copy: bool | None = None,
    ) -> None:
        self._construct(arg, shape, dtype, executor, copy, width=width)

    def _extra(self) -> dict[str, Any]:
        return {"_nnz": self._nnz}

    @property
    def nnz(self) -> int:
        """The number of stored entries, without padding."""
        return self._nnz

    @property
    def width(self) -> int:
        """The number of entries to which rows are padded."""
        return int(self.data.shape[0])

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.ell_spmv, self, x, y, alpha, beta)

    @property
    def T(self) -> Ell:
        """The transpose, a copy that later values of this matrix do not change."""
        return self.asformat("csr").T.asformat("ell")

    @property
    def H(self) -> Ell:
        """The conjugate transpose."""
        return self.T.conj()
