"""ELLPACK: every row padded to the length of the longest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..operations import matrix as operations
from .batchable import Batchable
from .constructed import Constructed

if TYPE_CHECKING:
    from ..executor import Array, Executor


class Ell(Constructed, metaclass=Batchable):
    """A sparse matrix with rows padded to one width.

    Parameters
    ----------
    arg : matrix or tuple
        Any matrix, or ``(data, (row, col))``; duplicates are added up.
    shape : tuple of int, optional
        Rows and columns: needed with coordinates, unless the largest index tells them.
    width : int, optional
        The width of padded rows; the length of the longest by default.
    dtype, executor
        As for :class:`Csr`.
    copy : bool
        Whether the entries of another library's matrix must be copied on the way; the packed
        arrays are this matrix's own in any case.

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
        """How many entries are stored, padding left out."""
        return self._nnz

    @property
    def width(self) -> int:
        """The length that rows are padded to."""
        return int(self.data.shape[0])

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.ell_spmv, self, x, y, alpha, beta)

    @property
    def T(self) -> Ell:
        """The transpose."""
        return self.asformat("csr").T.asformat("ell")

    @property
    def H(self) -> Ell:
        """The conjugate transpose."""
        return self.T.conj()
