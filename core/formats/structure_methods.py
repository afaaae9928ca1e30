"""Methods of matrices that change or read off the structure: triangles, shapes, positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..capture import CHANGES
from ..errors import UnsupportedOperation
from .arg_extremes import arg_extreme
from .reductions import LARGEST, SMALLEST, written
from .reshaping import asked_shape, nonzero, reshape, resized, with_diagonal
from .selection import triangle

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix
    from .csr import Csr
    from .sparse_vector import SparseVector


class StructureMethods:
    """The methods of matrices that have SciPy's names and return or change structure."""

    @property
    def _structure(self) -> Matrix:
        """The matrix itself: the class is a part of Matrix and of nothing else."""
        return self  # type: ignore[return-value]

    @property
    def mT(self) -> Any:
        """The transpose, by the name that the array API has for it."""
        return self._structure.T

    @property
    def device(self) -> Any:
        """The device of the arrays, as their library names it: ``"cpu"`` for NumPy's arrays."""
        matrix = self._structure
        return getattr(matrix._native_arrays()[0], "device", matrix.executor.name)

    @property
    def size(self) -> int:
        """How many entries are stored, by SciPy's name."""
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
            One of them may be -1. One dimension alone gives a :class:`SparseVector`.
        order : {"C", "F"}
            Whether positions are counted row by row or column by column.
        copy : bool
            Whether a matrix of this shape already is copied.

        Returns
        -------
        Csr or SparseVector
            The matrix itself if it has the shape.

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
        made = reshape(matrix, asked_shape(shape), order)
        return made.copy() if copy and made is matrix else made

    def resize(self, *shape: Any) -> None:
        """Cut this matrix off, or continue it by zeros, to another shape, in place.

        The arrays become new ones: matrices that share them keep the old ones.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> A.resize(1, 3)
        >>> A.to_dense()
        array([[1., 2., 0.]])
        """
        self._structure.executor.refuse_capture(CHANGES)
        self._structure._replace_entries(resized(self._structure, asked_shape(shape)))

    def prune(self) -> None:
        """Do nothing, by SciPy's name: arrays have no room beyond their entries."""

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the ``k``-th diagonal above the main one, in place.

        Parameters
        ----------
        values : number or array of one dimension
            A shorter array sets the beginning of the diagonal, a longer one is cut off.
        k : int
            Which diagonal.

        Raises
        ------
        InvalidArgument
            If the matrix has no such diagonal.
        InvalidMatrix
            If the values are complex and the matrix is not.

        Notes
        -----
        Entries are added where there are none, so that plans and transposes are made anew.

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
        self._structure._replace_entries(with_diagonal(self._structure, values, k))

    def nonzero(self) -> tuple[Array, Array]:
        """Return the rows and the columns of the entries that are not zero, as native arrays.

        Entries of one position are added up before.

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
            None: of all entries, counted row by row; 0: of each column; 1: of each row.
        out : array, shape (n,) or (m,), optional
            Where the positions are written; it is returned then.
        explicit : bool
            Whether stored entries alone are compared; by default positions without one are zeros.

        Returns
        -------
        int, or native array of int64 of shape (n,) or (m,)
            The first one of equal entries, and the first NaN if there is any.

        Raises
        ------
        InvalidArgument
            If there is nothing to compare.

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
        """Return the position of the smallest entry, as :meth:`argmax` does for the largest.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[-1.0, 0.0], [2.0, 3.0]])).argmin(axis=0)
        array([0, 0])
        """
        found = arg_extreme(self._structure, axis, SMALLEST, explicit=explicit)
        return written(found, out, self._structure.executor)

    def __iter__(self) -> Iterator[SparseVector]:
        """Return the rows one after the other, as sparse vectors."""
        matrix = self._structure
        return (matrix[i] for i in range(matrix.shape[0]))

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
