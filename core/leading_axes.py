"""Vectors and blocks with leading axes, as operators of SciPy 1.18 accept them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import ShapeMismatch


def over_vectors(function: Callable[[Any], Any], x: Any, length: int) -> Any:
    """Return the images of the vectors along the last axis.

    Parameters
    ----------
    function : callable
        Maps a vector, or a block of columns.
    x : array, shape (n,), (n, k) or (..., n)
        A two-dimensional array is a block of columns if its last axis has another length than
        ``n``, or if its shape is (n, 1).
    length : int
        n.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.core.leading_axes import over_vectors
    >>> over_vectors(lambda x: 2 * x[:1], np.array([[1.0, 5.0], [3.0, 7.0], [4.0, 8.0]]), 2)
    array([[2.],
           [6.],
           [8.]])
    """
    shape = tuple(getattr(x, "shape", ()))
    if len(shape) < 2 or shape == (length, 1):
        return function(x)
    if shape[-1] != length:
        if len(shape) == 2:
            return function(x)
        raise _mismatch(x, f"(..., {length})")
    made = function(x.reshape(-1, length).T)
    return made.T.reshape(*shape[:-1], made.shape[0])


def over_blocks(function: Callable[[Any], Any], x: Any, length: int) -> Any:
    """Return the images of blocks of columns, shape (..., n, k), computed as one block.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.core.leading_axes import over_blocks
    >>> over_blocks(lambda x: x[:1], np.ones((4, 3, 2)), 3).shape
    (4, 1, 2)
    """
    shape = tuple(getattr(x, "shape", ()))
    if len(shape) < 3:
        return function(x)
    *lead, rows, columns = shape
    if rows != length:
        raise _mismatch(x, f"(..., {length}, k)")
    last = len(shape) - 1
    made = function(_permuted(x, (last - 1, *range(last - 1), last)).reshape(rows, -1))
    stacked = made.reshape(made.shape[0], *lead, columns)
    return _permuted(stacked, (*range(1, last), 0, last))


def _mismatch(x: Any, expected: str) -> ShapeMismatch:
    return ShapeMismatch(f"x: expected shape {expected}, got {tuple(x.shape)}")


def _permuted(x: Any, axes: tuple[int, ...]) -> Any:
    return x.permute(axes) if hasattr(x, "permute") else x.transpose(axes)  # PyTorch's, NumPy's


def wrong_rows(label: str, shape: tuple[int, ...], rows: int) -> ShapeMismatch:
    """Return the error for an operand without ``rows`` rows; it has the remedy for batches.

    Examples
    --------
    >>> print(wrong_rows("b", (4,), 3))
    b: expected shape (3,), (3, k) or (..., 3, k), got (4,)
    """
    told = f"{label}: expected shape ({rows},), ({rows}, k) or (..., {rows}, k), got {tuple(shape)}"
    if len(shape) > 1 and shape[-1] == rows:
        told += (
            f"; a batch of vectors needs an axis of columns: {label}[..., None], and [..., 0] of "
            "the result"
        )
    return ShapeMismatch(told)
