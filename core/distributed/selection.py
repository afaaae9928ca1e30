"""Selection of rows and columns from distributed matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, UnsupportedOperation
from .assembly import assembled
from .build import rows_of_places
from .partition import Partition

if TYPE_CHECKING:
    from .matrix import Csr

HostArray = np.ndarray[Any, Any]


def selected(A: Csr, key: Any) -> Any:
    """Return ``A[rows, columns]``; collective.

    Rows and columns stay on their members.

    Parameters
    ----------
    A : Csr, shape (m, n)
        The matrix.
    key : slice, array of int or bool, or a pair of these
        Distinct rows and columns; a pair of integers selects one value.

    Raises
    ------
    InvalidArgument
        If a row or column is selected twice.
    UnsupportedOperation
        If a single row or column is selected: groups do not support sparse vectors.
    """
    asked, other = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
    if isinstance(key, tuple) and len(key) != 2:
        raise InvalidArgument(f"A[...]: expected rows, or rows and columns, got {len(key)} keys")
    if isinstance(asked, (int, np.integer)) and isinstance(other, (int, np.integer)):
        return _value(A, int(asked), int(other))
    if any(isinstance(one, (int, np.integer)) for one in (asked, other)):
        raise UnsupportedOperation(
            "a group shares no single row or column: take A[i:i + 1], a matrix of one row"
        )
    rows = _numbers(asked, A.shape[0], "rows")
    columns = _numbers(other, A.shape[1], "columns")
    partition = _of_selected(A.partition, rows)
    same = A.partition == A.column_partition and np.array_equal(rows, columns)
    beside = partition if same else _of_selected(A.column_partition, columns)
    rank = A.executor.links.rank  # type: ignore[union-attr]
    local = A.partition.places(rows[partition.rows(rank)]) - int(A.partition.offsets[rank])
    indptr, found, data = rows_of_places(local, *A._global_rows())
    position = np.full(A.shape[1], -1)
    position[columns] = np.arange(columns.size)
    numbers = position[found]
    kept = numbers >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    return assembled(A.executor, partition, beside, before[indptr], numbers[kept], data[kept])


def _numbers(index: Any, n: int, lines: str) -> HostArray:
    """Return the numbers of the rows or columns that a key selects."""
    result = np.arange(n)[index if isinstance(index, slice) else np.asarray(index)]
    if result.ndim != 1 or np.any(np.bincount(result, minlength=1) > 1):
        raise InvalidArgument(f"A[...]: expected each of the {lines} once, got {index!r}")
    return result


def _of_selected(partition: Partition, numbers: HostArray) -> Partition:
    """Return the partition in which selected rows stay on their members."""
    owners = partition.owner(partition.places(numbers))
    counts = np.bincount(owners, minlength=partition.size)
    if np.all(np.diff(owners) >= 0):
        return Partition([0, *np.cumsum(counts).tolist()])
    return Partition.of_owners(owners, partition.size)


def _value(A: Csr, i: int, j: int) -> Any:
    """Return one value on every member."""
    m, n = A.shape
    if not (-m <= i < m and -n <= j < n):
        raise InvalidArgument(f"A[{i}, {j}]: the matrix has shape ({m}, {n})")
    links: Any = A.executor.links
    place = int(A.partition.places(np.array([i % m]))[0])
    local = place - int(A.partition.offsets[links.rank])
    mine = None
    if 0 <= local < A.local_rows:
        rows = A._global_rows()
        part = slice(int(rows.indptr[local]), int(rows.indptr[local + 1]))
        mine = rows.values[part][rows.columns[part] == j % n].sum(dtype=A.dtype)
    return next(value for value in links.all(mine) if value is not None)
