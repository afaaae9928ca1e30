"""The coordinate format, in which users usually write matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES, TO_HOST
from ..dtypes import is_complex
from ..operands import to_host
from ..operations import matrix as operations
from ..small_values import for_zero_tests
from ..store import PatternStore
from . import device_arrays, validate
from .constructed import Constructed
from .given import (
    checked_shape,
    coordinates_in_any_order,
    is_coordinates,
    owned_array,
    place,
)

if TYPE_CHECKING:
    from ..executor import Array, Executor


class Coo(Constructed):
    """A sparse matrix in the coordinate format, sorted by row.

    Parameters
    ----------
    arg : matrix or tuple
        Any matrix, or ``(data, (row, col))``.
    shape, dtype, executor
        As for :class:`Csr`.
    copy : bool, optional
        As for :class:`Csr`: host coordinates are used in place if their rows are ascending.

    Attributes
    ----------
    data : array, shape (nnz,)
        Values. Duplicates are stored separately and add up in products; conversions to other
        formats sum them. Boolean matrices store each position once, because the sum of booleans is
        "or".
    row, col : arrays of int32 or int64, shape (nnz,)
        Positions of the entries. Rows are ascending; within a row, the given order is kept.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Coo(([1.0, 2.0, 3.0], ([1, 0, 0], [0, 1, 1])), shape=(2, 2))
    >>> A @ np.array([1.0, 1.0])
    array([5., 1.])
    """

    format = "coo"
    arrays = ("data", "row", "col")

    row: Array
    col: Array

    @staticmethod
    def _of_arrays(arg: Any, shape: Any, executor: Any, copy: bool) -> Coo | None:
        if not is_coordinates(arg):
            return None
        data, (row, col) = arg
        return _from_coordinates(data, row, col, shape, place(executor, data, row, col), copy)

    #: Data derived from the pattern: the row pointers.
    _pattern: PatternStore

    def _reset(self) -> None:
        self._pattern = PatternStore()

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.coo_spmv, self, x, y, alpha, beta)

    @property
    def T(self) -> Coo:
        """The transpose, sorted by its rows: a copy that later values do not change."""
        from .hypersparse import transposed

        return transposed(self)

    @property
    def H(self) -> Coo:
        """The conjugate transpose."""
        return self.T.conj() if is_complex(self.dtype) else self.T

    @property
    def coords(self) -> tuple[Array, Array]:
        """The rows and the columns of the entries, under SciPy's name."""
        return (self.row, self.col)

    @property
    def has_canonical_format(self) -> bool:
        """Whether the entries are sorted by row and column without duplicates."""
        self.executor.refuse_capture(TO_HOST)
        row, col = self.row, self.col
        rises = (row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (col[1:] > col[:-1]))
        return bool(self.executor.xp.all(rises))

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        validate.check_statement("has_canonical_format", value, self.has_canonical_format)

    def sum_duplicates(self) -> None:
        """Sort the columns of each row and sum duplicates, in place.

        See :meth:`Csr.sum_duplicates`.
        """
        from .hypersparse import without_duplicates

        made = without_duplicates(self)
        if made is not self:
            self._replace(self._with_arrays(self.executor, *made._native_arrays()))

    def eliminate_zeros(self) -> None:
        """Remove stored zeros in place; see :meth:`Csr.eliminate_zeros`."""
        self.executor.refuse_capture(MAKES)
        kept = for_zero_tests(self.executor, self.data) != 0
        if not bool(self.executor.xp.all(kept)):
            arrays = (self.data[kept], self.row[kept], self.col[kept])
            self._replace(self._with_arrays(self.executor, *arrays))

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.coo_array`` that shares no memory with this matrix."""
        from scipy.sparse import coo_array

        data, row, col = self._host_copies()
        return coo_array((data, (row, col)), shape=self.shape)


def _from_coordinates(
    data: Any, row: Any, col: Any, shape: Any, executor: Executor, copy: bool = True
) -> Coo:
    there = device_arrays.coordinates(executor, data, row, col, shape)
    if there is not None:
        from .convert import rows_of

        return rows_of(Coo._from_arrays(executor, *there)).asformat("coo")
    shape, (values, rows, columns) = _checked(data, row, col, shape)
    if np.any(rows[1:] < rows[:-1]):
        order = np.argsort(rows, kind="stable")
        values, rows, columns = values[order], rows[order], columns[order]
    given = (data, row, col)
    arrays = zip((values, rows, columns), given, strict=True)
    return Coo._from_arrays(
        executor, shape, *(owned_array(executor, a, g, copy=copy) for a, g in arrays)
    )


def in_any_order(arg: Any, shape: Any, executor: Executor | str | None) -> Coo | None:
    """Return coordinates for a conversion, which sorts and copies the entries itself.

    Rows need not be ascending, and the arrays may be the caller's: the matrix is not meant for
    products. Arguments other than ``(data, (row, col))`` or a COO matrix of SciPy give None.
    """
    if is_coordinates(arg):
        data, (row, col) = arg
    elif (
        getattr(arg, "format", "") == "coo"
        and not isinstance(arg, Coo)
        and isinstance(arg.data, np.ndarray)
        and len(arg.shape) == 2
    ):
        data, row, col, shape = arg.data, arg.row, arg.col, arg.shape
    else:
        return None
    where = place(executor, data, row, col)
    there = device_arrays.coordinates(where, data, row, col, shape)
    if there is not None:
        return Coo._from_arrays(where, *there)
    shape, arrays = _checked(data, row, col, shape)
    return Coo._from_arrays(where, shape, *(where.from_host(array) for array in arrays))


def _checked(data: Any, row: Any, col: Any, shape: Any) -> tuple[tuple[int, int], Any]:
    """Return the shape, and host values, rows and columns; boolean duplicates are merged."""
    values = validate.values(to_host(data))
    if shape is None:
        rows, columns = (
            validate.integers(to_host(row), "row"),
            validate.integers(to_host(col), "col"),
        )
        shape = tuple(int(a.max()) + 1 if a.size else 0 for a in (rows, columns))
    m, n = checked_shape(shape)
    rows = validate.indices(to_host(row), m, "row")
    columns = validate.indices(to_host(col), n, "col")
    validate.equal_lengths(data=values, row=rows, col=columns)
    rows, columns = validate.of_one_dtype(max(m, n, values.size), rows, columns)
    if validate.is_logical(data):
        values, rows, columns = validate.either(values, rows, columns)
    return (m, n), (values, rows, columns)


coordinates_in_any_order.provide(in_any_order)
