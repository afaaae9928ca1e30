"""Sliced ELLPACK with rows sorted by length: little padding, equal work in adjacent lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..operations import matrix as operations
from .constructed import Constructed

if TYPE_CHECKING:
    from ..executor import Array, Executor

#: Rows of a slice: the lanes of a warp of NVIDIA GPUs, or of four AVX-512 registers of float64.
SLICE_SIZE = 32
#: Number of slices within which rows are sorted by length; a wider window reduces locality in x.
WINDOW = 32


class Sellp(Constructed):
    """A sparse matrix in slices of rows; each slice is padded to its own width.

    Parameters
    ----------
    arg : matrix or tuple
        Any matrix, or ``(data, (row, col))`` with duplicates summed.
    shape : tuple of int, optional
        Rows and columns; required with coordinates, unless the largest index determines them.
    slice_size : int
        Rows of a slice.
    window : int
        Number of slices within which rows are sorted by descending length.
    dtype, executor
        As for :class:`Csr`.
    copy : bool
        Whether the entries of another library's matrix must be copied before the conversion. The
        packed arrays always belong to this matrix.

    Attributes
    ----------
    data : array, shape (total,)
        Entry ``j`` of lane ``l`` of slice ``s`` is at ``slice_ptr[s] + j * slice_size + l``;
        padding is 0.
    indices : array of int32 or int64, shape (total,)
        Columns; padding is -1.
    slice_ptr : array, shape (slices + 1,)
        Start of each slice.
    permutation : array, shape (m,)
        Lane ``l`` of slice ``s`` is row ``permutation[s * slice_size + l]``.

    References
    ----------
    M. Kreutzer et al., A unified sparse matrix data format for efficient general sparse
    matrix-vector multiplication on modern processors with wide SIMD units, SIAM J. Sci. Comput.
    36 (2014), SELL-C-sigma.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Sellp(np.array([[2.0, 0.0], [1.0, 3.0]]), slice_size=2)
    >>> A @ np.array([1.0, 1.0])
    array([2., 4.])
    """

    format = "sellp"
    arrays = ("data", "indices", "slice_ptr", "permutation")

    _fixed_attributes: ClassVar[dict[str, str]] = Constructed._fixed_attributes | {
        "slice_size": 'A.asformat("sellp", slice_size=size) has slices of another size'
    }

    indices: Array
    slice_ptr: Array
    permutation: Array
    slice_size: int
    _nnz: int

    def __init__(
        self,
        arg: Any,
        shape: tuple[int, int] | None = None,
        *,
        slice_size: int = SLICE_SIZE,
        window: int = WINDOW,
        dtype: Any = None,
        executor: Executor | str | None = None,
        copy: bool | None = None,
    ) -> None:
        options = {"slice_size": slice_size, "window": window}
        self._construct(arg, shape, dtype, executor, copy, **options)

    def _extra(self) -> dict[str, Any]:
        return {"_nnz": self._nnz, "slice_size": self.slice_size}

    @property
    def nnz(self) -> int:
        """The number of stored entries, without padding."""
        return self._nnz

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.sellp_spmv, self, x, y, alpha, beta)

    @property
    def T(self) -> Sellp:
        """The transpose, a copy that later values of this matrix do not change."""
        return self.asformat("csr").T.asformat("sellp", slice_size=self.slice_size)

    @property
    def H(self) -> Sellp:
        """The conjugate transpose."""
        return self.T.conj()
