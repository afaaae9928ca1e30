"""Permutations of the axes of sparse matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..formats.sparse_vector import SparseVector
from .given import as_matrix


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:
    """Return a matrix with two axes exchanged: its transpose, or the matrix itself.

    Parameters
    ----------
    A : Matrix, SparseVector, or a sparse matrix of another library
        The matrix.
    axis1, axis2 : int
        The axes; negative ones count from the last.

    Returns
    -------
    Matrix or SparseVector
        The result shares the values of ``A``.

    Raises
    ------
    InvalidArgument
        If an axis does not exist.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 2.0, 3.0]]))
    >>> wl.sparse.swapaxes(A, 0, 1).shape
    (3, 1)
    """
    given = _sparse(A, "swapaxes")
    axes = list(range(len(given.shape)))
    first, second = (_axis("swapaxes", axis, len(axes)) for axis in (axis1, axis2))
    axes[first], axes[second] = axes[second], axes[first]
    return _permuted(given, axes)


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:
    """Return a matrix with permuted axes; by default the transpose.

    Parameters
    ----------
    A : Matrix, SparseVector, or a sparse matrix of another library
        The matrix.
    axes : sequence of int, optional
        Each axis once; by default in reversed order.
    copy : bool
        Whether the result must not share arrays with ``A``.

    Returns
    -------
    Matrix or SparseVector

    Raises
    ------
    InvalidArgument
        If ``axes`` does not contain each axis once.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 2.0, 3.0]]))
    >>> wl.sparse.permute_dims(A, (1, 0)).shape
    (3, 1)
    """
    given = _sparse(A, "permute_dims")
    count = len(given.shape)
    order = range(count)[::-1] if axes is None else np.atleast_1d(axes).tolist()
    order = [_axis("permute_dims", axis, count) for axis in order]
    if sorted(order) != list(range(count)):
        raise InvalidArgument(
            f"permute_dims: expected each of {count} axes once, got axes {axes!r}"
        )
    made = _permuted(given, order)
    return made.copy() if copy else made


def _sparse(value: Any, caller: str) -> Any:
    return value if isinstance(value, SparseVector) else as_matrix(value, caller)


def _axis(caller: str, axis: Any, count: int) -> int:
    """Return a nonnegative axis number, or raise InvalidArgument."""
    if not isinstance(axis, (int, np.integer)) or not -count <= axis < count:
        raise InvalidArgument(
            f"{caller}: expected an axis from {-count} to {count - 1}, got {axis!r}"
        )
    return int(axis) % count


def _permuted(matrix: Any, axes: list[int]) -> Any:
    return matrix if axes == sorted(axes) else matrix.T
