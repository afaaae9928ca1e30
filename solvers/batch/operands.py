"""The right-hand sides, starts, masks and tolerances of a batch, one row for each solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.batch.shapes import vectors_of
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.operands import is_host, native

if TYPE_CHECKING:
    from ...core.batch import BatchMatrix
    from ...core.executor import Array

Numbers = np.ndarray[Any, Any]


@dataclass(eq=False)
class Operands:
    """The user's operands of a solve, arranged in rows.

    Attributes
    ----------
    b : array, shape (s, n)
        Right-hand sides, native and contiguous; ``s`` is systems times columns.
    x : array, shape (s, n)
        Starts; native, contiguous, and not the caller's.
    started : bool
        Whether ``x`` is not zero by default.
    columns : tuple of int
        Empty for vectors, else ``(k,)``.
    matrix : array of int64, shape (s,)
        The matrix of each solve.
    asked : array of bool, shape (s,)
        Which are to be solved.
    """

    A: BatchMatrix
    b: Array
    x: Array
    started: bool
    columns: tuple[int, ...]
    matrix: Numbers
    asked: Numbers
    from_host: bool

    @property
    def each_own(self) -> bool:
        """Whether all solves are asked for, and solve ``s`` has the matrix ``s``."""
        return self.width == 1 and bool(self.asked.all())

    def of_matrices(self, numbers: Numbers, asked: Numbers) -> Numbers:
        """Return the number of the matrix of each solve in ``asked``."""
        whole = self.each_own and asked.size == self.matrix.size
        return numbers if whole else numbers[self.matrix[asked]]

    @property
    def width(self) -> int:
        """Columns of each system."""
        return self.columns[0] if self.columns else 1

    def shaped(self, rows: Array) -> Any:
        """Return solutions, one row for each solve, as the right-hand sides came."""
        axes, n = self.A.batch_shape, self.A.shape[0]
        if not self.columns:
            made = rows.reshape(*axes, n)
        else:
            blocks = rows.reshape(self.A.count, self.width, n).transpose(0, 2, 1)
            made = self.A.executor.xp.ascontiguousarray(blocks).reshape(*axes, n, self.width)
        return self.A.executor.to_host(made) if self.from_host else made

    def by_solve(self, numbers: Numbers) -> Numbers:
        """Return numbers of each solve with the axes of the batch and of columns."""
        return np.asarray(numbers.reshape(*self.A.batch_shape, *self.columns))


def operands(A: BatchMatrix, b: Any, x0: Any, mask: Any, dtype_of: Any) -> Operands:
    """Return the operands of a solve.

    Parameters
    ----------
    A : BatchMatrix
        Of square matrices of n rows.
    b : array, shape (*batch_shape, n), (*batch_shape, n, k) or (n,)
        Right-hand sides.
    x0 : array of the shape of b, or None
        Starts.
    mask : array of bool, shape batch_shape, or None
        Which systems to solve.
    dtype_of : callable
        Returns the dtype to compute in, from the dtypes of operands.

    Raises
    ------
    ShapeMismatch, InvalidArgument
        If they do not fit.
    """
    on = A.executor
    right, columns = vectors_of(A, native(on, b, "b"), "b")
    start = None
    if x0 is not None:
        start, other = vectors_of(A, native(on, x0, "x0"), "x0")
        if other != columns:
            raise ShapeMismatch(f"x0: expected the columns of b, {columns}, got {other}")
    dtype = dtype_of(right.dtype, *([] if start is None else [start.dtype]))
    width = columns[0] if columns else 1
    count = A.count * width
    rows = _rows(A, right, dtype, copy=False)
    x = on.zeros((count, A.shape[0]), dtype)
    if start is not None:
        x = _rows(A, start, dtype, copy=True)
    matrix = np.repeat(np.arange(A.count, dtype=np.int64), width)
    asked = np.repeat(_mask(A, mask), width)
    return Operands(A, rows, x, start is not None, columns, matrix, asked, is_host(b))


def _rows(A: BatchMatrix, blocks: Array, dtype: Any, *, copy: bool) -> Array:
    """Return blocks (count, n, k) as contiguous rows (count k, n)."""
    xp = A.executor.xp
    turned = xp.ascontiguousarray(blocks.transpose(0, 2, 1).astype(dtype, copy=copy))
    return turned.reshape(blocks.shape[0] * blocks.shape[2], A.shape[0])


def _mask(A: BatchMatrix, mask: Any) -> Numbers:
    if mask is None:
        return np.ones(A.count, bool)
    given = np.asarray(A.executor.to_host(native(A.executor, mask, "mask")))
    if given.shape != A.batch_shape or given.dtype != bool:
        raise InvalidArgument(
            f"mask: expected booleans of shape {A.batch_shape}, got {given.dtype} of shape "
            f"{given.shape}"
        )
    return given.ravel()


def tolerance(A: BatchMatrix, value: Any, name: str) -> Numbers:
    """Return a tolerance for each matrix.

    Raises
    ------
    InvalidArgument
        If a tolerance is negative or NaN, or the shape does not fit the batch.
    """
    try:
        given = np.broadcast_to(np.asarray(value, np.float64), A.batch_shape)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name}: expected a number or an array of shape {A.batch_shape}, got {value!r}"
        ) from None
    if not np.all(given >= 0):
        raise InvalidArgument(f"{name}: expected numbers of at least 0, got {value!r}")
    if np.ndim(value) == 0:  # a view of one number: kernels may see that all are equal
        return np.broadcast_to(np.float64(value), (A.count,))
    return np.ascontiguousarray(given).ravel()
