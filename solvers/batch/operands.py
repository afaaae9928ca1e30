"""The right-hand sides, initial guesses, masks and tolerances of a batch, one row per solve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.batch.shapes import vectors_of
from ...core.batch.tolerances import Tolerances
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.operands import is_host, native
from ...core.small_values import as_dtype

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
        Right-hand sides, native and contiguous; ``s`` is the number of systems times columns.
    start : array, shape (s, n), or None
        Initial guesses; native, contiguous, and not shared with the caller.
    columns : tuple of int
        Empty for vectors, else ``(k,)``.
    mask : array of bool, shape (b,), or None
        The systems to solve; None for all.
    """

    A: BatchMatrix
    b: Array
    start: Array | None
    columns: tuple[int, ...]
    mask: Numbers | None
    from_host: bool

    @property
    def count(self) -> int:
        """The number of solves."""
        return self.A.count * self.width

    @property
    def started(self) -> bool:
        """Whether initial guesses are given; they are zero otherwise."""
        return self.start is not None

    @cached_property
    def x(self) -> Array:
        """The initial guesses, in the memory of the solutions."""
        if self.start is not None:
            return self.start
        return self.A.executor.zeros((self.count, self.A.shape[0]), self.b.dtype)

    def memory_of_solutions(self) -> Array:
        """Return ``x`` for an executor that writes the solutions of all solves.

        It is uninitialized without initial guesses; :meth:`forget_solutions` resets it to zero.
        """
        on = self.A.executor
        if on.overwrites_solutions and not self.started and self.mask is None:
            self.x = on.allocate((self.count, self.A.shape[0]), self.b.dtype)
        return self.x

    def forget_solutions(self) -> None:
        """Reset ``x`` if it was memory for an executor that wrote no solutions."""
        if not self.started:
            self.__dict__.pop("x", None)

    @cached_property
    def matrix(self) -> Numbers:
        """The index of the matrix of each solve, array of int64."""
        return np.repeat(np.arange(self.A.count, dtype=np.int64), self.width)

    @cached_property
    def requested_solves(self) -> Numbers | None:
        """The indices of the requested solves; None for all."""
        if self.mask is None:
            return None
        return np.flatnonzero(np.repeat(self.mask, self.width))

    def of_solves(self, tolerances: Tolerances, solves: Numbers | None) -> Tolerances:
        """Return the tolerances of the given solves, or of all."""
        if solves is None:
            return tolerances if self.width == 1 else tolerances.of(self.matrix)
        return tolerances.of(self.matrix[solves])

    @property
    def width(self) -> int:
        """The number of right-hand sides of each system."""
        return self.columns[0] if self.columns else 1

    def shaped(self, rows: Array) -> Any:
        """Return solutions, given as one row per solve, in the shape of the right-hand sides."""
        axes, n = self.A.batch_shape, self.A.shape[0]
        if not self.columns:
            block = rows.reshape(*axes, n)
        else:
            blocks = rows.reshape(self.A.count, self.width, n).transpose(0, 2, 1)
            block = self.A.executor.xp.ascontiguousarray(blocks).reshape(*axes, n, self.width)
        return self.A.executor.to_host(block) if self.from_host else block


def operands(A: BatchMatrix, b: Any, x0: Any, mask: Any, dtype_of: Any) -> Operands:
    """Return the operands of a solve.

    Parameters
    ----------
    A : BatchMatrix
        The batch of square matrices with n rows.
    b : array, shape (*batch_shape, n), (*batch_shape, n, k) or (n,)
        Right-hand sides.
    x0 : array of the shape of b, or None
        Starts.
    mask : array of bool, shape batch_shape, or None
        The systems to solve.
    dtype_of : callable
        Returns the dtype of the computation for the dtypes of the operands.

    Raises
    ------
    ShapeMismatch, InvalidArgument
        If they do not match the batch.
    """
    A._follow_writes()
    on = A.executor
    right, columns = vectors_of(A, native(on, b, "b"), "b")
    start = None
    if x0 is not None:
        start, other = vectors_of(A, native(on, x0, "x0"), "x0")
        if other != columns:
            raise ShapeMismatch(f"x0: expected the columns of b, {columns}, got {other}")
    dtype = dtype_of(right.dtype, *([] if start is None else [start.dtype]))
    rows = _rows(A, right, dtype, copy=False)
    first = None if start is None else _rows(A, start, dtype, copy=True)
    return Operands(A, rows, first, columns, _mask(A, mask), is_host(b))


def _rows(A: BatchMatrix, blocks: Array, dtype: Any, *, copy: bool) -> Array:
    """Return blocks (count, n, k) as contiguous rows (count k, n)."""
    xp = A.executor.xp
    turned = as_dtype(A.executor, blocks.transpose(0, 2, 1), dtype, copy=copy)
    turned = xp.ascontiguousarray(turned)
    return turned.reshape(blocks.shape[0] * blocks.shape[2], A.shape[0])


def _mask(A: BatchMatrix, mask: Any) -> Numbers | None:
    if mask is None:
        return None
    values = np.asarray(A.executor.to_host(native(A.executor, mask, "mask")))
    if values.shape != A.batch_shape or values.dtype != bool:
        raise InvalidArgument(
            f"mask: expected booleans of shape {A.batch_shape}, got {values.dtype} of shape "
            f"{values.shape}"
        )
    return values.ravel()


def tolerances(A: BatchMatrix, rtol: Any, atol: Any) -> Tolerances:
    """Return the tolerances of each matrix.

    Raises
    ------
    InvalidArgument
        If a tolerance is negative or NaN, or the shape does not fit the batch.
    """
    return Tolerances(_tolerance(A, rtol, "rtol"), _tolerance(A, atol, "atol"))


def _tolerance(A: BatchMatrix, value: Any, name: str) -> Numbers:
    try:
        values = np.broadcast_to(np.asarray(value, np.float64), A.batch_shape)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name}: expected a number or an array of shape {A.batch_shape}, got {value!r}"
        ) from None
    if not np.all(values >= 0):
        raise InvalidArgument(f"{name}: expected numbers of at least 0, got {value!r}")
    if np.ndim(value) == 0:  # a broadcast view: kernels can detect that all are equal
        return np.broadcast_to(np.float64(value), (A.count,))
    return np.ascontiguousarray(values).ravel()
