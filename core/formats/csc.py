"""Compressed sparse columns, which is also the format of the transpose of a Csr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..dtypes import is_complex
from ..operations import matrix as operations
from .constructed import Constructed
from .csr import Csr, compressed_of, transposed_arrays
from .transposed import columns_to_multiply, has_rows_of_transpose, rows_of_transpose

if TYPE_CHECKING:
    from ..executor import Array
    from ..linop import LinOp
    from .csr import Csr


class Csc(Constructed):
    """A sparse matrix in the compressed sparse column format.

    Parameters
    ----------
    arg : matrix or tuple
        Any matrix; the triple ``(data, indices, indptr)`` with row indices and column pointers; or
        ``(data, (row, col))``, with duplicates summed.
    shape, dtype, executor, copy
        As for :class:`Csr`.

    Notes
    -----
    Products with vectors use :attr:`by_rows`, a CSR copy that is made when it is first needed, and
    kept. On CPUs the first products that users request use the columns instead, until the copy
    pays; they may round differently. To get bitwise equal results from the first product on, access
    :attr:`by_rows` before it.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csc(([4.0, 1.0, 3.0], [0, 0, 1], [0, 1, 3]), shape=(2, 2))
    >>> A @ np.array([1.0, 2.0])
    array([6., 6.])
    """

    format = "csc"
    arrays = ("data", "indices", "indptr")

    indices: Array
    indptr: Array

    @staticmethod
    def _of_arrays(arg: Any, shape: Any, executor: Any, copy: bool) -> Csc | None:
        return compressed_of(Csc, arg, shape, executor, copy, rows_first=False)

    _by_rows: tuple[Csr, Array] | None
    #: The matrix of which this is the transpose, if it was made as ``A.T``; the CSR copy is stored
    #: with that matrix.
    _transpose_of: Csr | None
    #: The transpose that an earlier access returned.
    _transposed: Csr | None

    def _reset(self) -> None:
        self.__dict__.update(_by_rows=None, _transpose_of=None, _transposed=None)

    def _with_data(self, data: Array) -> Self:
        result = super()._with_data(data)
        result._transpose_of = self._transpose_of
        return result

    def _values_changed(self) -> None:
        if self._by_rows is not None:
            rows, order = self._by_rows
            rows.update_values(self.data[order])

    @property
    def by_rows(self) -> Csr:
        """The same matrix as a Csr, made when it is first needed."""
        source = self._transpose_of
        if source is not None and source.indices is self.indices and source.data is self.data:
            return rows_of_transpose(source, self.data)[0]
        return self._rows_and_order()[0]

    def _new_rows(self) -> Csr:
        """Return the same matrix as a Csr that is neither stored nor shares memory."""
        source = self._transpose_of
        if self._by_rows is not None or (
            source is not None
            and source.indices is self.indices
            and has_rows_of_transpose(source, self.data)
        ):
            return self.by_rows.copy()
        return transposed_arrays(self._columns()).matrix(self.executor, self.shape)

    def _rows_and_order(self) -> tuple[Csr, Array]:
        source = self._transpose_of
        if self._by_rows is None and source is not None and source.indices is self.indices:
            self._by_rows = rows_of_transpose(source, self.data)
        if self._by_rows is None:
            arrays = transposed_arrays(self._columns())
            self._by_rows = (arrays.matrix(self.executor, self.shape), arrays.order)
        return self._by_rows

    def _in_double(self) -> LinOp | None:
        return self.by_rows._in_double()

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.csc_spmv, self, x, y, alpha, beta)

    def _multiply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        columns = columns_to_multiply(self, x.shape[1])
        if columns is None:
            self._apply(x, y, alpha, beta)
        else:
            self.executor.run(operations.csr_spmv_transposed, columns, x, y, alpha, beta)

    def _columns(self) -> Csr:
        """Return the transpose as a new object: in-place changes affect no other matrix."""
        source = self._transpose_of
        known = source if source is not None and source.indices is self.indices else None
        result = Csr._from_arrays(
            self.executor, self.shape[::-1], self.data, self.indices, self.indptr,
            _lean=known is not None and known.is_lean,
        )  # fmt: skip
        if known is not None:
            result._pattern = known._pattern
        return result

    @property
    def T(self) -> Csr:
        """The transpose, which shares this matrix's arrays."""
        known = self._transposed
        if known is None or known.data is not self.data or known.indices is not self.indices:
            known = self._transposed = self._share_values(self._columns())  # made once
        return known

    @property
    def H(self) -> Csr:
        """The conjugate transpose; it shares this matrix's arrays if they are real."""
        return self.T.conj() if is_complex(self.dtype) else self.T

    def solve_triangular(
        self, b: Any, *, lower: bool = True, unit: bool = False, trans: str = "N"
    ) -> Any:
        """Solve with a triangle of this matrix; see :meth:`Csr.solve_triangular`.

        It is the transpose of the other triangle of :attr:`T`, which stores the analysis.
        """
        rows = self.T
        if trans == "H" and is_complex(self.dtype):
            rows = rows.conj()
        turned = {"N": "T", "T": "N", "H": "N"}.get(trans, trans)
        return rows.solve_triangular(b, lower=not lower, unit=unit, trans=turned)

    def sum_duplicates(self) -> None:
        """Sort the rows of each column and sum duplicates, in place.

        See :meth:`Csr.sum_duplicates`.
        """
        columns = self._columns()
        summed = columns.without_duplicates()
        if summed is not columns:
            self._replace(self._with_arrays(self.executor, *summed._native_arrays()))

    def sort_indices(self) -> None:
        """Sort the rows of each column, in place; see :meth:`Csr.sort_indices`."""
        columns = self.T
        if not columns.has_sorted_indices:
            self._replace(self._with_arrays(self.executor, *columns.sort()._native_arrays()))

    def eliminate_zeros(self) -> None:
        """Remove stored zeros from the pattern, in place; see :meth:`Csr.eliminate_zeros`."""
        columns = self._columns()
        columns.eliminate_zeros()
        if columns.nnz != self.nnz:
            self._replace(self._with_arrays(self.executor, *columns._native_arrays()))

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the row indices of each column are ascending (equal ones allowed)."""
        return self.T.has_sorted_indices

    @has_sorted_indices.setter
    def has_sorted_indices(self, value: bool) -> None:
        """Accept the caller's statement after checking it, as :class:`wollemi.Csr` does."""
        self.T.has_sorted_indices = value

    @property
    def has_canonical_format(self) -> bool:
        """Whether the row indices of each column are strictly ascending."""
        return self.T.has_canonical_format

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        """Accept the caller's statement after checking it, as :class:`wollemi.Csr` does."""
        self.T.has_canonical_format = value

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csc_array`` that shares no memory with this matrix."""
        from scipy.sparse import csc_array

        data, indices, indptr = self._host_copies()
        return csc_array((data, indices, indptr), shape=self.shape)
