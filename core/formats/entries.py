"""Methods that read the entries of matrices, with SciPy's names.

Their implementations are in :mod:`.elementwise`, :mod:`.reductions` and :mod:`.indexing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..capture import MAKES
from ..dtypes import is_exact
from ..errors import InvalidArgument, UnsupportedOperation
from .base import Matrix
from .elementwise import count_nonzeros, diagonal, imaginary, magnitudes, multiply, power, real
from .exact import diagonal as exact_diagonal
from .hypersparse import rows_or_columns
from .indexing import item
from .reductions import (
    LARGEST,
    SMALLEST,
    extreme,
    mean,
    normalized_axis,
    number_extreme,
    total,
    trace,
    written,
)
from .selection import vector_of

if TYPE_CHECKING:
    from ..executor import Array
    from ..linop import LinOp
    from .base import Matrix
    from .csr import Csr


def with_entries(A: LinOp, caller: str) -> Matrix:
    """Return ``A`` as a matrix for ``caller``, which needs its entries.

    Raises
    ------
    InvalidArgument
        If ``A`` has no entries.
    """
    if not isinstance(A, Matrix):
        raise InvalidArgument(
            f"{caller} needs a matrix with entries; got {type(A).__name__}{A._no_entries}"
        )
    return A


class EntryMethods:
    """The methods of matrices that read entries: sums, extremes, parts, products, rows."""

    @property
    def _entries(self) -> Matrix:
        """The object as a matrix; only Matrix inherits from this class."""
        return self  # type: ignore[return-value]

    def plan_only(self) -> Any:
        """Return this matrix with its plan and without its arrays; only a Csr supports it."""
        raise UnsupportedOperation(
            f"plan_only: products with a {type(self).__name__} read its arrays, so that they "
            "cannot be given up; A.tocsr().with_kernel(name).plan_only() has a plan that holds the "
            "entries, where there is an algorithm for that"
        )

    def diagonal(self, k: int = 0) -> Any:
        """Return the main diagonal, or the ``k``-th one above it, as a native array.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[1.0, 2.0], [3.0, 4.0]])).diagonal(-1)
        array([3.])
        """
        if not isinstance(k, (int, np.integer)):
            raise InvalidArgument(f"diagonal: expected which one as an integer, got {k!r}")
        self._entries.executor.refuse_capture(MAKES)
        if is_exact(self._entries.dtype):
            return exact_diagonal(self._entries, int(k))
        return self._main_diagonal() if k == 0 else diagonal(self._entries, int(k))

    def _main_diagonal(self) -> Array:
        return rows_or_columns(self._entries)[0]._main_diagonal()

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of the main diagonal, or of the ``offset``-th one above it.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> print(wl.Csr(np.array([[1.0, 2.0], [3.0, 4.0]])).trace())
        5.0
        """
        return trace(self._entries, offset)

    def count_nonzero(self, axis: int | None = None) -> Any:
        """Return the number of nonzero entries after summing duplicates.

        Parameters
        ----------
        axis : {None, 0, 1}
            None: all entries; 0: each column; 1: each row.

        Returns
        -------
        int, or native array of int64 of shape (n,) or (m,)

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> A.count_nonzero(), A.count_nonzero(axis=1)
        (3, array([2, 1]))
        """
        if normalized_axis(axis) is None:
            return count_nonzeros(self._entries)
        return (self._entries != 0).sum(axis=axis)

    def sum(self, axis: Any = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
        """Return the sum of all entries, of each column (``axis=0``) or of each row (``axis=1``).

        Parameters
        ----------
        axis : {None, 0, 1} or tuple of int
            None or ``(0, 1)``: all entries; 0: each column; 1: each row.
        dtype : dtype, optional
            The dtype of the sums; by default, the dtype of the matrix.
        out : array, optional
            An array that is overwritten with the result and returned.

        Returns
        -------
        number, or native array of shape (n,) or (m,)
            For 16-bit values the sums are computed in float32 and then rounded.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> print(A.sum(), A.sum(axis=0))
        7.0 [1. 6.]
        """
        return written(total(self._entries, axis, dtype), out, self._entries.executor)

    def mean(self, axis: Any = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
        """Return the mean of all entries, of each column or of each row, including zeros.

        The parameters and results are those of :meth:`sum`.

        Raises
        ------
        NothingToAverage
            If there are no entries to average.
        """
        return written(mean(self._entries, axis, dtype), out, self._entries.executor)

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the largest entry of all, of each column (``axis=0``) or of each row.

        Positions without an entry count as zeros, duplicates are summed first, and NaN is larger
        than all numbers. Complex numbers are compared by their real parts, then by their imaginary
        parts.

        Parameters
        ----------
        axis : {None, 0, 1} or tuple of int
            None: all entries; 0: each column; 1: each row.
        out : array, optional
            An array that is overwritten with the result and returned.
        explicit : bool
            Whether only stored entries are compared; the result is then 0 for a row without
            entries.

        Returns
        -------
        number, or SparseVector of shape (n,) or (m,)
            Sparse like SciPy's result; with ``out``, that dense array.

        Raises
        ------
        InvalidArgument
            If there are no entries to compare.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[-1.0, 0.0], [-2.0, -4.0]]))
        >>> print(A.max(), A.max(axis=1).toarray())
        0.0 [ 0. -2.]
        """
        return self._extreme(extreme(self._entries, axis, LARGEST, explicit=explicit), out)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the smallest entry of all, of each column or of each row; see :meth:`max`."""
        return self._extreme(extreme(self._entries, axis, SMALLEST, explicit=explicit), out)

    def nanmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the largest entry that is not NaN, as :meth:`max` does; NaN if all are NaN.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[np.nan, 2.0], [np.nan, np.nan]]))
        >>> print(A.nanmax(), A.nanmax(axis=1).toarray())
        2.0 [ 2. nan]
        """
        return self._extreme(number_extreme(self._entries, axis, LARGEST, explicit=explicit), out)

    def nanmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the smallest entry that is not NaN; see :meth:`min`."""
        return self._extreme(number_extreme(self._entries, axis, SMALLEST, explicit=explicit), out)

    def _extreme(self, result: Any, out: Any) -> Any:
        """Return extremes of rows or columns as a sparse vector, or written to ``out``."""
        if out is not None or getattr(result, "ndim", 0) == 0:
            return written(result, out, self._entries.executor)
        return vector_of(self._entries, result)

    def __abs__(self) -> Csr:
        """Return the absolute values as a Csr with sorted rows; duplicates are summed first."""
        return magnitudes(self._entries)

    @property
    def real(self) -> Any:
        """The real part; the matrix itself if it is real."""
        return real(self._entries)

    @property
    def imag(self) -> Any:
        """The imaginary part, with the same pattern."""
        return imaginary(self._entries)

    def power(self, n: float, dtype: DTypeLike | None = None) -> Csr:
        """Return every entry to the power ``n`` as a Csr; duplicates are summed first.

        Parameters
        ----------
        n : number
            The exponent; not 0. Positions without an entry stay zero for every ``n``.
        dtype : dtype, optional
            The dtype of the computation; by default, the dtype of the matrix.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]])).power(2).to_dense()
        array([[ 1.,  4.],
               [ 0., 16.]])
        """
        return power(self._entries, n, dtype)

    def multiply(self, other: Any) -> Any:
        """Return the entry-wise product with a matrix, an array or a number, as a Csr.

        Parameters
        ----------
        other : matrix, array or number
            A matrix in any format, including SciPy's sparse ones, or an array. An array has the
            shape of this matrix, or ``(n,)`` or ``(1, n)`` to scale columns, or ``(m, 1)`` to scale
            rows. A matrix may also have one row or one column.

        Returns
        -------
        Csr
            With an array, the pattern is the one of this matrix: positions without an entry stay
            zero for every value of the array. With a matrix, the result contains the nonzero
            products.

        Raises
        ------
        ShapeMismatch, ExecutorMismatch
            If the operands do not fit together.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> A.multiply(np.array([10.0, 100.0])).to_dense()
        array([[ 10., 200.],
               [  0., 400.]])
        """
        return multiply(self._entries, other)

    def solve_triangular(
        self, b: Any, *, lower: bool = True, unit: bool = False, trans: str = "N"
    ) -> Any:
        """Solve with a triangle of this matrix; see :meth:`wollemi.Csr.solve_triangular`.

        The conversion to rows, and the analysis of the triangle, are repeated at each call. For
        repeated solves, keep ``A.tocsr()``.
        """
        rows = self._entries.asformat("csr")
        return rows.solve_triangular(b, lower=lower, unit=unit, trans=trans)

    def __getitem__(self, key: Any) -> Any:
        """Return the entries that a key selects by NumPy's rules.

        Parameters
        ----------
        key : int, slice, array of integers or booleans, or a pair of them
            ``A[i, j]`` is an entry, ``A[i]`` and ``A[:, j]`` are sparse vectors. ``A[2:5]``,
            ``A[:, [4, 0]]``, ``A[rows][:, columns]`` and ``A[np.ix_(rows, columns)]`` are matrices.
            ``A[rows, columns]`` with two one-dimensional arrays is a dense array of single entries,
            and so is ``A[mask]`` with a boolean mask of this shape.

        Returns
        -------
        number, SparseVector, Csr or native array

        Raises
        ------
        IndexOutOfRange
            If a row or column does not exist.
        InvalidArgument
            If the key is none of these, or if the result would have three dimensions.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[1.0, 2.0], [0.0, 4.0]]))
        >>> A[[1, 0]].to_dense()
        array([[0., 4.],
               [1., 2.]])
        >>> A[:, 1].toarray()
        array([2., 4.])
        >>> print(A[1, -1])
        4.0
        """
        matrix = self._entries
        matrix.executor.refuse_capture(MAKES)
        with matrix.executor.uncaptured():
            return item(matrix, key)
