"""Rows of a matrix as a matrix, and single entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import is_narrow
from ..errors import IndexOutOfRange, InvalidArgument, UnsupportedOperation
from ..operands import is_host, native
from ..operations import rows as operations
from .csr import Csr
from .rowwise import computed, filled, row_bounds

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix


def item(matrix: Matrix, key: Any) -> Any:
    """Return ``matrix[key]``: rows as a Csr, or the entry of a row and a column.

    Raises
    ------
    IndexOutOfRange
        If there is no such row or column.
    UnsupportedOperation
        For one row as a vector, and for columns.
    """
    row, column = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
    if isinstance(key, tuple) and len(key) != 2:
        raise InvalidArgument(f"a matrix has two dimensions, got {len(key)} indices")
    if _is_integer(row) and _is_integer(column):
        return entry(
            matrix, *(_within(i, n) for i, n in zip((row, column), matrix.shape, strict=True))
        )
    if not (isinstance(column, slice) and column == slice(None)):
        raise UnsupportedOperation(
            f"columns of a {type(matrix).__name__} are not taken by an index: write "
            "A.T[columns].T, which is fast for a Csc, or index A.to_scipy()"
        )
    if _is_integer(row):
        raise UnsupportedOperation(
            f"one row of a {type(matrix).__name__} would be a sparse vector, which there is none "
            f"of: write A[{row}:{row} + 1] for a matrix of one row, A[{row}, j] for an entry"
        )
    return take_rows(matrix, row)


def entry(matrix: Matrix, row: int, column: int) -> Any:
    """Return the entry at a position, duplicates added up, as a number of the matrix's dtype."""
    csr: Csr = computed(matrix)
    begin, end = (bounds[row : row + 1] for bounds in row_bounds(csr))
    found = csr.executor.allocate((1,), csr.dtype)
    csr.executor.run(operations.diagonal, begin, end, csr.indices, csr.data, column, found)
    return csr.executor.to_host(found)[0].astype(matrix.dtype)


def take_rows(matrix: Matrix, which: Any) -> Csr:
    """Return rows of a matrix as a Csr, in the order in which they are named.

    Parameters
    ----------
    matrix : Matrix
        Other formats than Csr are converted.
    which : slice or array
        Integers, negative ones from the end, or a boolean for each row. Rows may come twice.
    """
    csr = computed(matrix)
    rows = _chosen(csr, which).astype(csr.index_dtype)
    if not csr.executor.owns(rows):
        rows = csr.executor.from_host(rows)
    shape = (int(rows.size), matrix.shape[1])
    arguments = (rows, csr.indptr, csr.indices, csr.data)
    made = filled(csr, shape, operations.lengths, operations.take, *arguments)
    return made.astype(matrix.dtype) if is_narrow(matrix.dtype) else made


def _chosen(csr: Csr, which: Any) -> Array:
    """Return the numbers of rows that a slice, integers or booleans choose.

    Arrays of the executor are read through its array namespace.
    """
    count, executor = csr.shape[0], csr.executor
    if isinstance(which, slice):
        try:
            return executor.xp.arange(*which.indices(count))
        except TypeError as error:
            raise InvalidArgument(f"rows: {error}, got {which}") from None
    if not is_host(which):  # a tensor of the same device becomes native
        which = native(executor, which, "rows")
    try:
        xp, rows = (executor.xp, which) if executor.owns(which) else (np, np.asarray(which))
    except ValueError as error:  # sequences of different lengths
        raise InvalidArgument(f"rows: not an array of integers: {error}") from None
    if rows.ndim != 1:
        raise InvalidArgument(
            f"rows: expected a slice or one dimension of integers or booleans, got {which!r}"
        )
    if rows.dtype == bool:
        if rows.size != count:
            raise IndexOutOfRange(f"rows: {rows.size} booleans for {count} rows")
        return xp.flatnonzero(rows)
    if rows.size == 0:
        return np.empty(0, np.int64)
    if rows.dtype.kind not in "iu":
        raise InvalidArgument(f"rows: expected integers or booleans, got dtype {rows.dtype}")
    return _all_within(xp, rows.astype(np.int64), count)


def _all_within(xp: Any, rows: Array, count: int) -> Array:
    outside = (rows < -count) | (rows >= count)
    if bool(xp.any(outside)):
        at = int(xp.flatnonzero(outside)[0])
        raise IndexOutOfRange(
            f"rows[{at}] = {int(rows[at])} is outside of a matrix of {count} rows"
        )
    return xp.where(rows < 0, rows + count, rows)


def _is_integer(index: Any) -> bool:
    return isinstance(index, (int, np.integer)) and not isinstance(index, bool)


def _within(index: Any, extent: int) -> int:
    if not -extent <= index < extent:
        raise IndexOutOfRange(f"index {index} is outside of an extent of {extent}")
    return int(index) % extent
