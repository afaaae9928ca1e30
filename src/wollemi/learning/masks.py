"""The masks of attention that are one interval of columns in each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..core.dtypes import index_dtype
from ..core.errors import InvalidArgument, InvalidMatrix
from ..core.formats.mask import Mask
from ..core.operands import to_host

if TYPE_CHECKING:
    from ..core.executor import Executor


def causal(
    n: int,
    m: int | None = None,
    *,
    offset: int = 0,
    dtype: DTypeLike = np.float32,
    executor: Executor | str | None = None,
) -> Mask:
    """Return the mask in which position ``i`` attends to the positions up to itself.

    Parameters
    ----------
    n : int
        Rows: queries.
    m : int, optional
        Columns: keys; as many as rows by default.
    offset : int
        Row ``i`` has columns up to ``i + offset``. With ``m - n`` the last row has them all, as new
        tokens with the tokens of a cache.
    dtype, executor
        As for :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (n, m)

    Raises
    ------
    InvalidArgument
        If a number is no integer, or negative where there is a count.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.masks.causal(3).to_dense()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    >>> wl.masks.causal(2, 4, offset=2).to_dense()
    array([[1., 1., 1., 0.],
           [1., 1., 1., 1.]], dtype=float32)
    """
    rows = _integer(n, "n", 0)
    columns = rows if m is None else _integer(m, "m", 0)
    row = _rows(rows, columns)
    last = _within(row, _integer(offset, "offset") + 1, columns)
    return Mask(np.zeros_like(row), last, columns, dtype=dtype, executor=executor)


def sliding_window(
    n: int,
    window: int,
    causal: bool = True,
    *,
    dtype: DTypeLike = np.float32,
    executor: Executor | str | None = None,
) -> Mask:
    """Return the mask in which each position attends to its neighbours.

    Parameters
    ----------
    n : int
        Rows and columns.
    window : int
        How many positions a row has: its own one and the ``window - 1`` before it.
    causal : bool
        If not, a row has the ``window - 1`` positions behind its own one, too.
    dtype, executor
        As for :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (n, n)

    Raises
    ------
    InvalidArgument
        If a number is no integer, or negative.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.masks.sliding_window(4, 2).to_dense()
    array([[1., 0., 0., 0.],
           [1., 1., 0., 0.],
           [0., 1., 1., 0.],
           [0., 0., 1., 1.]], dtype=float32)
    >>> wl.masks.sliding_window(4, 2, causal=False).nnz
    10
    """
    count, reach = _integer(n, "n", 0), _integer(window, "window", 0)
    row = _rows(count, count)
    first = _within(row, 1 - reach, count)
    last = _within(row, 1 if causal and reach else reach, count)
    return Mask(first, last, count, dtype=dtype, executor=executor)


def documents(
    lengths: Any,
    causal: bool = False,
    *,
    dtype: DTypeLike = np.float32,
    executor: Executor | str | None = None,
) -> Mask:
    """Return the mask of sequences one after the other, each of which attends to itself alone.

    Parameters
    ----------
    lengths : sequence of int
        Of the documents; one may be empty.
    causal : bool
        Whether a position attends to itself and earlier positions alone.
    dtype, executor
        As for :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (sum(lengths), sum(lengths))

    Raises
    ------
    InvalidArgument
        If a length is negative or no integer.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.masks.documents([2, 1]).to_dense()
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    >>> wl.masks.documents([2, 1], causal=True).nnz
    4
    """
    given = np.asarray(to_host(lengths))
    if given.ndim != 1 or (given.size and (given.dtype.kind not in "iu" or given.min() < 0)):
        raise InvalidArgument(f"lengths: expected integers of at least 0, got {lengths!r}")
    given = given.astype(np.int64)
    ends = np.cumsum(given)
    total = int(ends[-1]) if ends.size else 0
    first, last = np.repeat(ends - given, given), np.repeat(ends, given)
    if causal:
        last = np.arange(1, total + 1)
    index = index_dtype(total)
    begin, end = first.astype(index), last.astype(index)
    return Mask(begin, end, total, dtype=dtype, executor=executor)


def intervals(
    first: Any,
    last: Any,
    columns: int,
    *,
    dtype: DTypeLike = np.float32,
    executor: Executor | str | None = None,
) -> Mask:
    """Return the mask of intervals of your own.

    Parameters
    ----------
    first, last : array of int, shape (m,), or int
        Row ``i`` has the columns ``first[i], ..., last[i] - 1``. One number serves for all rows;
        one of the two is an array. Neither falls from a row to the next one.
    columns : int
    dtype, executor
        As for :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (m, columns)

    Raises
    ------
    InvalidMatrix
        If an end falls, or is no column.

    Examples
    --------
    A prefix of two tokens that all attend to, and causal attention behind it:

    >>> import numpy as np, wollemi as wl
    >>> wl.masks.intervals(0, np.maximum(np.arange(4) + 1, 2), 4).to_dense()
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [1., 1., 1., 0.],
           [1., 1., 1., 1.]], dtype=float32)
    """
    ends = [np.asarray(to_host(end)) for end in (first, last)]
    if all(end.ndim == 0 for end in ends):
        raise InvalidMatrix("first and last: one of them is an array, a number for each row")
    count = max(end.size for end in ends if end.ndim)
    index = index_dtype(max(count, _integer(columns, "columns", 0)))
    begin, end = (np.full(count, end, index) if end.ndim == 0 else end for end in ends)
    return Mask(begin, end, columns, dtype=dtype, executor=executor)


def _integer(value: Any, name: str, least: int | None = None) -> int:
    """Return an integer that a caller gave, or raise InvalidArgument."""
    right = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not right or (least is not None and value < least):
        bound = "" if least is None else f" of at least {least}"
        raise InvalidArgument(f"{name}: expected an integer{bound}, got {value!r}")
    return int(value)


def _rows(rows: int, columns: int) -> np.ndarray[Any, Any]:
    return np.arange(rows, dtype=index_dtype(max(rows, columns)))


def _within(row: np.ndarray[Any, Any], distance: int, columns: int) -> np.ndarray[Any, Any]:
    """Return ``row + distance`` where that is in ``0..columns``, else the nearer end of it."""
    ends = np.clip(row.astype(np.int64) + distance, 0, columns)
    return ends.astype(row.dtype)
