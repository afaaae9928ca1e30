"""Attention masks with one interval of columns per row."""

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
    """Return the mask in which each position attends to itself and to all earlier positions.

    Parameters
    ----------
    n : int
        Number of rows (queries).
    m : int, optional
        Number of columns (keys); by default the number of rows.
    offset : int
        Row ``i`` has the columns up to ``i + offset``. With ``m - n``, the last row has all
        columns: new tokens then attend to the tokens of a cache.
    dtype, executor
        As in :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (n, m)

    Raises
    ------
    InvalidArgument
        If an argument is not an integer, or if a count is negative.

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
    """Return the mask in which each position attends to the nearest positions.

    Parameters
    ----------
    n : int
        Number of rows and of columns.
    window : int
        Number of positions per row: its own position and the ``window - 1`` positions before it.
    causal : bool
        If false, a row also has the ``window - 1`` positions after its own.
    dtype, executor
        As in :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (n, n)

    Raises
    ------
    InvalidArgument
        If an argument is not an integer, or is negative.

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
    """Return the mask of concatenated sequences, each of which attends only to itself.

    Parameters
    ----------
    lengths : sequence of int
        The lengths of the documents, which may be 0.
    causal : bool
        Whether a position attends only to itself and to earlier positions.
    dtype, executor
        As in :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (sum(lengths), sum(lengths))

    Raises
    ------
    InvalidArgument
        If a length is negative or not an integer.

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
    """Return the mask with the given intervals.

    Parameters
    ----------
    first, last : array of int, shape (m,), or int
        Row ``i`` has the columns ``first[i], ..., last[i] - 1``. A number applies to all rows; at
        least one of the two is an array. Both must be nondecreasing.
    columns : int
    dtype, executor
        As in :class:`wollemi.Csr`.

    Returns
    -------
    Mask, shape (m, columns)

    Raises
    ------
    InvalidMatrix
        If a bound decreases from a row to the next, or is out of range.

    Examples
    --------
    A prefix of two tokens to which all tokens attend, followed by causal attention:

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
    """Return an integer argument, or raise InvalidArgument."""
    right = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not right or (least is not None and value < least):
        bound = "" if least is None else f" of at least {least}"
        raise InvalidArgument(f"{name}: expected an integer{bound}, got {value!r}")
    return int(value)


def _rows(rows: int, columns: int) -> np.ndarray[Any, Any]:
    return np.arange(rows, dtype=index_dtype(max(rows, columns)))


def _within(row: np.ndarray[Any, Any], distance: int, columns: int) -> np.ndarray[Any, Any]:
    """Return ``row + distance``, clipped to ``0..columns``."""
    ends = np.clip(row.astype(np.int64) + distance, 0, columns)
    return ends.astype(row.dtype)
