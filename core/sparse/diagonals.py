"""Matrices of diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..dtypes import asked_dtype, held_dtype, index_dtype, is_complex
from ..errors import InvalidMatrix
from ..formats.csr import Csr
from ..formats.exact import running
from ..formats.given import checked_shape, place
from ..formats.rowwise import known_canonical
from ..operands import native
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
        Rows and columns; as many columns as rows by default.
    k : int
        Which diagonal above the main one.
    dtype : dtype
        Of the ones: a floating-point or complex dtype, int32, int64 or bool.
    format : str, optional
        The format of the result; ``csr`` by default.
    executor : Executor or str, optional
        Where it is made; the default executor by default.

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
    held = asked_dtype(dtype, held_dtype)
    first = (max(-k, 0), max(k, 0))
    length = max(min(shape[0] - first[0], shape[1] - first[1]), 0)
    xp, index = where.xp, index_dtype(max(shape))
    lengths = xp.zeros(shape[0], np.int8)
    lengths[first[0] : first[0] + length] = 1
    made = Csr._from_arrays(
        where,
        shape,
        xp.ones(length, held),
        xp.arange(first[1], first[1] + length, dtype=index),
        running(where, lengths).astype(index),
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
    """Return a matrix of diagonals.

    Parameters
    ----------
    diagonals : sequence of arrays or numbers, or one array
        The diagonals, each as long as it fits; a number, or an array of one element, stands for a
        whole diagonal.
    offsets : sequence of int, or int
        Which diagonals: 0 is the main one, 1 the one above it.
    shape : tuple of int, optional
        Rows and columns; by default a square matrix into which the first diagonal fits.
    format : str, optional
        The format of the result; ``csr`` by default.
    dtype : dtype, optional
        Of the entries; by default that of the diagonals.
    executor : Executor or str, optional
        Where it is made; where the diagonals are by default.

    Returns
    -------
    Matrix
        With an entry at every position of the diagonals, zeros included.

    Raises
    ------
    InvalidMatrix
        If a diagonal has another length, does not cross the matrix, or is given twice.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(3, 3)).to_dense()
    array([[ 2., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  2.]])
    """
    given, at = _listed(diagonals, offsets)
    where = place(executor, *given)
    where.refuse_capture(MAKES)
    values = [_diagonal(where, one) for one in given]
    size = checked_shape(_square(values, at) if shape is None else shape)
    if dtype is None:
        held = held_dtype(np.result_type(*(one.dtype for one in values)))
    else:
        held = asked_dtype(dtype, held_dtype)
        if not is_complex(held) and any(is_complex(one.dtype) for one in values):
            raise InvalidMatrix(f"diags: complex diagonals do not fit a {held} matrix")
    made = _of_diagonals(where, size, values, at, held)
    follows = executor is None and all(where.xp is np or not where.owns(one) for one in given)
    result = finished(known_canonical(made), format)
    result.__dict__["_follows"] = follows
    return result


def _listed(diagonals: Any, offsets: Any) -> tuple[list[Any], list[int]]:
    """Return diagonals and their offsets as lists of one length.

    Raises
    ------
    InvalidMatrix
        If there are fewer of one of them, none, or two of one offset.
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


def _diagonal(where: Executor, given: Any) -> Array:
    values = native(where, given if hasattr(given, "ndim") else np.asarray(given), "diagonals")
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
    """Return the matrix of diagonals, which are columns of a dense array before."""
    xp, (m, n) = where.xp, shape
    order = sorted(range(len(at)), key=lambda i: at[i])
    grid = xp.zeros((m, len(at)), dtype)
    for column, i in enumerate(order):
        first, length = max(-at[i], 0), min(m + min(at[i], 0), n - max(at[i], 0))
        if length < 0 or (length == 0 and values[i].size > 1):
            raise InvalidMatrix(f"diags: offset {at[i]} does not cross a matrix of shape {shape}")
        if values[i].size not in (1, length):
            raise InvalidMatrix(
                f"diags: the diagonal of offset {at[i]} has {int(values[i].size)} elements, and "
                f"{length} fit a matrix of shape {shape}"
            )
        grid[first : first + length, column] = values[i].astype(dtype)
    offsets = xp.asarray(np.array([at[i] for i in order], np.int64))
    columns = xp.arange(m)[:, None] + offsets[None, :]
    inside = (columns >= 0) & (columns < n)
    index = index_dtype(max(m, n, m * len(at)))
    flat = xp.flatnonzero(inside)
    bounds = running(where, inside.reshape(-1))[xp.arange(m + 1) * len(at)]
    return Csr._from_arrays(
        where,
        shape,
        grid.reshape(-1)[flat],
        columns.reshape(-1)[flat].astype(index),
        bounds.astype(index),
    )
