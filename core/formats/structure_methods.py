"""Methods that change or read the structure of matrices: triangles, shapes, positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..capture import CHANGES
from ..errors import UnsupportedOperation
from .arg_extremes import arg_extreme
from .reductions import LARGEST, SMALLEST, written
from .reshaping import (
    nonzero,
    replace_entries,
    requested_shape,
    reshape,
    resized,
    with_diagonal,
)
from .selection import each_row, triangle

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix
    from .csr import Csr
    from .sparse_vector import SparseVector


class StructureMethods:
    """The methods of matrices with SciPy's names that return or change the structure."""

    @property
    def _structure(self) -> Matrix:
        """The object as a matrix; only Matrix inherits from this class."""
        return self  # type: ignore[return-value]

    @property
    def mT(self) -> Any:
        """The transpose, under the name of the array API."""
        return self._structure.T

    @property
    def device(self) -> Any:
        """The device of the arrays, as named by their library: ``"cpu"`` for NumPy's arrays."""
        matrix = self._structure
        return getattr(matrix._native_arrays()[0], "device", matrix.executor.name)

    @property
    def size(self) -> int:
        """The number of stored entries, under SciPy's name."""
        return self._structure.nnz

    def tril(self, k: int = 0) -> Csr:
        """Return the entries on and below the ``k``-th diagonal above the main one, as a Csr.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[1.0, 2.0], [3.0, 4.0]])).tril().to_dense()
        array([[1., 0.],
               [3., 4.]])
        """
        return triangle(self._structure, k, upper=False)

    def triu(self, k: int = 0) -> Csr:
        """Return the entries on and above the ``k``-th diagonal above the main one, as a Csr.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[1.0, 2.0], [3.0, 4.0]])).triu(1).to_dense()
        array([[0., 2.],
               [0., 0.]])
        """
        return triangle(self._structure, k, upper=True)

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """Return the entries in another shape with the same number of positions.

        Parameters
        ----------
        *shape : int, or a tuple of them
            The new shape; one number may be -1. A single number gives a :class:`SparseVector`.
        order : {"C", "F"}
            Whether positions are counted row by row (C) or column by column (F).
        copy : bool
            Whether a matrix that already has the shape is copied.

        Returns
        -------
        Csr or SparseVector
            The reshaped matrix; the matrix itself if it already has the shape.

        Raises
        ------
        ShapeMismatch
            If the number of positions differs.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])).reshape(3, 2).to_dense()
        array([[1., 0.],
               [2., 0.],
               [3., 0.]])
        """
        matrix = self._structure
        made = reshape(matrix, requested_shape(shape), order)
        return made.copy() if copy and made is matrix else made

    def resize(self, *shape: Any) -> None:
        """Truncate this matrix, or pad it with zeros, to another shape, in place.

        The matrix gets new arrays: matrices that share the old ones, such as an earlier ``A.T``,
        keep the old entries.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> A.resize(1, 3)
        >>> A.to_dense()
        array([[1., 2., 0.]])
        """
        self._structure.executor.refuse_capture(CHANGES)
        replace_entries(self._structure, resized(self._structure, requested_shape(shape)))

    def prune(self) -> None:
        """Do nothing: the arrays have no unused capacity; SciPy has the same method."""

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the ``k``-th diagonal above the main diagonal, in place.

        Parameters
        ----------
        values : number or array of one dimension
            A shorter array sets the beginning of the diagonal; a longer array is truncated.
        k : int
            Number of the diagonal.

        Raises
        ------
        InvalidArgument
            If the matrix has no such diagonal.
        InvalidMatrix
            If the values are complex and the matrix is real.

        Notes
        -----
        If the whole diagonal is stored and no entry twice, only values change, as in
        :meth:`Matrix.update_values`: matrices that share the values, such as an earlier ``A.T`` of
        a Csr or Csc, get them too. Otherwise the matrix gets new arrays with the missing entries.
        Its plans are then made again, and matrices that shared its arrays keep the old entries.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> A.setdiag([5.0], k=-1)
        >>> A.to_dense()
        array([[1., 2.],
               [5., 4.]])
        """
        self._structure.executor.refuse_capture(CHANGES)
        replace_entries(self._structure, with_diagonal(self._structure, values, k))

    def nonzero(self) -> tuple[Array, Array]:
        """Return the rows and the columns of the nonzero entries, as native arrays.

        Duplicates are summed first.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[1.0, 0.0], [2.0, 3.0]])).nonzero()
        (array([0, 1, 1], dtype=int32), array([0, 0, 1], dtype=int32))
        """
        return nonzero(self._structure)

    def argmax(self, axis: int | None = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the position of the largest entry of all, of each column or of each row.

        Parameters
        ----------
        axis : {None, 0, 1}
            None: the position among all entries, counted row by row; 0: in each column; 1: in each
            row.
        out : array, shape (n,) or (m,), optional
            An array that is overwritten with the positions and returned.
        explicit : bool
            Whether only stored entries are compared; by default other positions count as zeros.

        Returns
        -------
        int, or native array of int64 of shape (n,) or (m,)
            The first of equal entries; the first NaN if there is one.

        Raises
        ------
        InvalidArgument
            If there are no entries to compare.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[-1.0, 0.0], [2.0, 3.0]]))
        >>> A.argmax(), A.argmax(axis=1)
        (3, array([1, 1]))
        """
        found = arg_extreme(self._structure, axis, LARGEST, explicit=explicit)
        return written(found, out, self._structure.executor)

    def argmin(self, axis: int | None = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the position of the smallest entry; see :meth:`argmax`.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[-1.0, 0.0], [2.0, 3.0]])).argmin(axis=0)
        array([0, 0])
        """
        found = arg_extreme(self._structure, axis, SMALLEST, explicit=explicit)
        return written(found, out, self._structure.executor)

    def __iter__(self) -> Iterator[SparseVector]:
        """Iterate over the rows as sparse vectors."""
        return each_row(self._structure)

    def __len__(self) -> int:
        """Refuse ``len(A)``, as SciPy does."""
        raise TypeError(
            "the length of a matrix could be its rows or its entries: write A.shape[0] or A.nnz"
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        """Refuse ``A[i, j] = value``.

        Raises
        ------
        UnsupportedOperation
            Always; the message names the replacement.
        """
        raise UnsupportedOperation(
            "A[...] = value is refused: each assignment would make a new pattern, and with it all "
            "plans and transposes, so that a loop of them takes quadratic time. Collect (data, "
            "(row, col)) and make the matrix once; A.update_values(data) sets stored values, "
            "A.setdiag(values) a diagonal, and A + wl.Csr(changes) adds entries"
        )
