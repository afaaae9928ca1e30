"""Matrices with far more rows or columns than entries, without memory for the empty ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import index_dtype
from .convert import columns_of, rows_of
from .coo import Coo
from .csc import Csc
from .csr import Csr
from .rowwise import canonical, is_hypersparse

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix


class Occupied(NamedTuple):
    """A matrix without its empty rows and columns.

    Attributes
    ----------
    matrix : Matrix
        The entries in a smaller matrix.
    rows, columns : array of int or None
        Original number of each row and column; None if none was left out.
    """

    matrix: Matrix
    rows: Array | None
    columns: Array | None


def occupied(matrix: Matrix) -> Occupied:
    """Leave out empty rows and columns of a Coo, empty columns of a Csr, empty rows of a Csc.

    They are left out if most are empty, in the directions in which the format has no pointers.
    """
    (m, n), nnz = matrix.shape, matrix.nnz
    if isinstance(matrix, Coo) and (is_hypersparse(m, nnz) or is_hypersparse(n, nnz)):
        rows, row = _numbered(matrix, matrix.row)
        columns, col = _numbered(matrix, matrix.col)
        shape = (int(rows.size), int(columns.size))
        return Occupied(
            Coo._from_arrays(matrix.executor, shape, matrix.data, row, col), rows, columns
        )
    if isinstance(matrix, Csr) and is_hypersparse(n, nnz):
        columns, indices = _numbered(matrix, matrix.indices)
        shape = (m, int(columns.size))
        arrays = (matrix.data, indices, matrix.indptr)
        return Occupied(Csr._from_arrays(matrix.executor, shape, *arrays), None, columns)
    if isinstance(matrix, Csc) and is_hypersparse(m, nnz):
        rows, indices = _numbered(matrix, matrix.indices)
        shape = (int(rows.size), n)
        arrays = (matrix.data, indices, matrix.indptr)
        return Occupied(Csc._from_arrays(matrix.executor, shape, *arrays), rows, None)
    return Occupied(matrix, None, None)


def _numbered(matrix: Matrix, numbers: Array) -> tuple[Array, Array]:
    """Return the distinct numbers in ascending order, and the rank of each entry's number."""
    found, which = matrix.executor.xp.unique(numbers, return_inverse=True)
    return found, which.reshape(-1).astype(numbers.dtype)


def canonical_entries(matrix: Matrix) -> Csr:
    """Return all entries as compressed rows or columns; duplicates are summed.

    Empty rows or columns may be left out, as in :func:`occupied`.
    """
    if type(matrix) is Csr and not is_hypersparse(matrix.shape[1], matrix.nnz):
        return canonical(matrix)
    matrix = occupied(matrix).matrix
    return canonical(matrix.T if matrix.format == "csc" else matrix)


def transposed(matrix: Coo) -> Coo:
    """Return the transpose of a Coo, sorted by its rows."""
    (m, n), executor = matrix.shape, matrix.executor
    if not is_hypersparse(n, matrix.nnz):
        made: Coo = columns_of(matrix).T.asformat("coo")
        return made
    order = executor.xp.argsort(matrix.col, kind="stable")
    arrays = (matrix.data[order], matrix.col[order], matrix.row[order])
    return Coo._from_arrays(executor, (n, m), *arrays)


def without_duplicates(matrix: Coo) -> Coo:
    """Return a Coo with sorted entries and summed duplicates."""
    compact, rows, columns = occupied(matrix)
    entries = rows_of(compact)  # type: ignore[arg-type]
    summed = entries.without_duplicates()
    if summed is entries:
        return matrix
    made: Coo = summed.asformat("coo")
    if rows is None or columns is None:
        return made
    dtype = index_dtype(max(matrix.shape), matrix.index_dtype)
    row, col = rows[made.row].astype(dtype), columns[made.col].astype(dtype)
    return Coo._from_arrays(matrix.executor, matrix.shape, made.data, row, col)


def rows_or_columns(matrix: Matrix) -> tuple[Csr, bool]:
    """Return compressed rows, or columns if rows need too much memory; and whether columns."""
    if type(matrix) is Csr:
        return matrix, False
    if isinstance(matrix, Csc):
        return matrix.T, True
    if isinstance(matrix, Coo) and is_hypersparse(matrix.shape[0], matrix.nnz):
        return columns_of(matrix).T, True
    csr: Csr = matrix.asformat("csr")
    return csr, False
