"""Matrices with given diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..capture import MAKES
from ..dtypes import held_dtype, index_dtype, is_complex, requested_dtype
from ..errors import InvalidMatrix
from ..formats.csr import Csr
from ..formats.exact import running
from ..formats.given import checked_shape, place
from ..formats.rowwise import known_canonical
from ..operands import native
from ..small_values import as_dtype
from .given import finished, without_home

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..executor import Array, Executor


def eye(
    m: int,
    n: int | None = None,
    k: int = 0,
    dtype: DTypeLike = float,
    format: str | None = None,
    *,
    executor: Executor | str | None = None,
) -> Any:
    """Return a matrix with ones on a diagonal.

    Parameters
    ----------
    m, n : int
        Rows and columns; by default the matrix is square.
    k : int
        The diagonal with the ones; 0 is the main diagonal, 1 the one above it.
    dtype : dtype
        Dtype of the ones: a floating-point or complex dtype, int32, int64 or bool.
    format : str, optional
        The format of the result; ``csr`` by default.
    executor : Executor or str, optional
        Executor of the matrix; the default executor by default.

    Returns
    -------
    Matrix, shape (m, n)

    See Also
    --------
    wollemi.Identity : The identity as an operator without entries.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.eye(2, 3, k=1).to_dense()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    shape, where = checked_shape((m, m if n is None else n)), place(executor)
    where.refuse_capture(MAKES)
    held = requested_dtype(dtype, held_dtype)
    first = (min(max(-k, 0), shape[0]), max(k, 0))
    length = max(min(shape[0] - first[0], shape[1] - first[1]), 0)
    xp, index = where.xp, index_dtype(max(shape))
    indptr = xp.arange(-first[0], shape[0] + 1 - first[0], dtype=index)
    indptr[: first[0]] = 0  # rows above and below the diagonal
    indptr[first[0] + length :] = length
    made = Csr._from_arrays(
        where,
        shape,
        xp.ones(length, held),
        xp.arange(first[1], first[1] + length, dtype=index),
        indptr,
    )
    return without_home(finished(known_canonical(made), format), executor)


def diags(
    diagonals: Any,
    offsets: Any = 0,
    shape: tuple[int, int] | None = None,
    format: str | None = None,
    dtype: DTypeLike | None = None,
    *,
    executor: Executor | str | None = None,
) -> Any:
    """Return a matrix with given diagonals.

    Parameters
    ----------
    diagonals : sequence of arrays or numbers, or one array
        The diagonals. An array must have at least the length of the diagonal; excess elements are
        ignored. A number, or an array with one element, fills a whole diagonal.
    offsets : sequence of int, or int
        Positions of the diagonals: 0 is the main diagonal, 1 the one above it.
    shape : tuple of int, optional
        Rows and columns; by default a square matrix with the length of the first diagonal.
    format : str, optional
        The format of the result; ``csr`` by default.
    dtype : dtype, optional
        Dtype of the entries; by default the dtype of the diagonals.
    executor : Executor or str, optional
        Executor of the matrix; by default the executor of the diagonals.

    Returns
    -------
    Matrix
        A matrix with an entry at every position of the diagonals, including zeros.

    Raises
    ------
    InvalidMatrix
        If a diagonal is too short, lies outside of the matrix, or is given twice.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(3, 3)).to_dense()
    array([[ 2., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  2.]])
    """
    operands, at = _listed(diagonals, offsets)
    where = place(executor, *operands)
    where.refuse_capture(MAKES)
    values = [_diagonal(where, one) for one in operands]
    size = checked_shape(_square(values, at) if shape is None else shape)
    if dtype is None:
        held = held_dtype(np.result_type(*(one.dtype for one in values)))
    else:
        held = requested_dtype(dtype, held_dtype)
        if not is_complex(held) and any(is_complex(one.dtype) for one in values):
            raise InvalidMatrix(f"diags: complex diagonals do not fit a {held} matrix")
    made = _of_diagonals(where, size, values, at, held)
    follows = executor is None and all(where.xp is np or not where.owns(one) for one in operands)
    result = finished(known_canonical(made), format)
    result.__dict__["_follows"] = follows
    return result


def _listed(diagonals: Any, offsets: Any) -> tuple[list[Any], list[int]]:
    """Return diagonals and their offsets as lists of equal length.

    Raises
    ------
    InvalidMatrix
        If the numbers of diagonals and offsets differ or are 0, or if an offset occurs twice.
    """
    if np.ndim(offsets) == 0:
        one = getattr(diagonals, "ndim", None)
        nested = len(diagonals) == 1 and np.ndim(diagonals[0]) > 0 if one is None else one == 2
        given, at = (list(diagonals) if nested else [diagonals]), [int(offsets)]
    else:
        given, at = list(diagonals), [int(k) for k in offsets]
    if len(given) != len(at) or not at:
        raise InvalidMatrix(f"diags: {len(given)} diagonals and {len(at)} offsets were given")
    if len(set(at)) < len(at):
        raise InvalidMatrix(f"diags: an offset is given twice in {at}")
    return given, at


def _diagonal(where: Executor, values_of_diagonal: Any) -> Array:
    values = native(
        where,
        values_of_diagonal
        if hasattr(values_of_diagonal, "ndim")
        else np.asarray(values_of_diagonal),
        "diagonals",
    )
    if values.ndim > 1:
        raise InvalidMatrix(f"diags: expected vectors, got a diagonal of shape {values.shape}")
    return values.reshape(-1)


def _square(values: list[Array], at: list[int]) -> tuple[int, int]:
    size = int(values[0].size) + abs(at[0])
    return size, size


def _of_diagonals(
    where: Executor,
    shape: tuple[int, int],
    values: list[Array],
    at: list[int],
    dtype: np.dtype[Any],
) -> Csr:
    """Return the matrix with given diagonals.

    In the middle rows, which all diagonals cross, the entries form a dense array that is written
    one diagonal at a time. :func:`_rows_of_some` makes the rows above and below.
    """
    xp, (m, n) = where.xp, shape
    order = sorted(range(len(at)), key=lambda i: at[i])
    crossing = []
    for i in order:
        first, length = max(-at[i], 0), min(m + min(at[i], 0), n - max(at[i], 0))
        if length < 0:
            raise InvalidMatrix(f"diags: offset {at[i]} does not cross a matrix of shape {shape}")
        one = values[i] if values[i].size == 1 else values[i][:length]
        if one.size not in (1, length):
            raise InvalidMatrix(
                f"diags: the diagonal of offset {at[i]} has {int(one.size)} elements, and {length} "
                f"are needed for a matrix of shape {shape}"
            )
        crossing.append(_Crossing(as_dtype(where, one, dtype), at[i], first, first + length))
    begin = max(one.begin for one in crossing)
    end = max(min(one.end for one in crossing), begin)
    above = _rows_of_some(where, crossing, 0, begin)
    below = _rows_of_some(where, crossing, end, m)
    top, bottom, width = int(above.data.size), int(below.data.size), len(crossing)
    middle = (end - begin) * width
    index = index_dtype(max(m, n, top + middle + bottom))
    data = where.allocate((top + middle + bottom,), dtype)
    indices = where.allocate((top + middle + bottom,), index)
    indptr = where.allocate((m + 1,), index)
    for part, entry, row in ((above, 0, 0), (below, top + middle, end)):
        size = int(part.data.size)
        data[entry : entry + size] = part.data
        indices[entry : entry + size] = part.columns
        indptr[row : row + int(part.bounds.size)] = part.bounds + entry
    rows_of_data = data[top : top + middle].reshape(end - begin, width)
    rows_of_indices = indices[top : top + middle].reshape(end - begin, width)
    for column, one in enumerate(crossing):
        rows_of_data[:, column] = one.values_of(begin, end)
        rows_of_indices[:, column] = xp.arange(begin + one.offset, end + one.offset, dtype=index)
    indptr[begin:end] = xp.arange(top, top + middle, width, dtype=index)
    return Csr._from_arrays(where, shape, data, indices, indptr)


class _Crossing(NamedTuple):
    """A diagonal, and the rows that it crosses: from ``begin`` to ``end - 1``."""

    values: Array
    offset: int
    begin: int
    end: int

    def values_of(self, begin: int, end: int) -> Array:
        """Return the values in some of the rows that it crosses."""
        return self.values[begin - self.begin : end - self.begin] if self.is_long else self.values

    @property
    def is_long(self) -> bool:
        """Whether each row has its own value."""
        return int(self.values.size) == self.end - self.begin


class _Rows(NamedTuple):
    """Entries of adjacent rows, and the start of each row among them."""

    data: Array
    columns: Array
    bounds: Array


def _rows_of_some(where: Executor, crossing: list[_Crossing], begin: int, end: int) -> _Rows:
    """Return rows that only some diagonals cross; their entries were in a dense array."""
    xp, rows, width = where.xp, end - begin, len(crossing)
    grid = xp.zeros((rows, width), crossing[0].values.dtype)
    inside = xp.zeros((rows, width), np.bool_)
    for column, one in enumerate(crossing):
        first, last = max(one.begin, begin), min(one.end, end)
        if first < last:
            grid[first - begin : last - begin, column] = one.values_of(first, last)
            inside[first - begin : last - begin, column] = True
    offsets = xp.asarray(np.array([one.offset for one in crossing], np.int64))
    columns = xp.arange(begin, end)[:, None] + offsets[None, :]
    flat = xp.flatnonzero(inside)
    bounds = running(where, inside.reshape(-1))[xp.arange(rows + 1) * width]
    return _Rows(grid.reshape(-1)[flat], columns.reshape(-1)[flat], bounds)
