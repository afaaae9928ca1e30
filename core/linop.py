"""Linear operators: everything that maps vectors.

A subclass says how a native block is mapped (:meth:`LinOp._apply`); what users call is here.
Sums, products, scalings and transposes of operators are operators again, evaluated when they are
applied.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Number
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .dtypes import common_dtype, is_complex
from .errors import InvalidArgument, ShapeMismatch, UnsupportedOperation
from .executor import same_executor
from .operands import as_block, has_block_layout, is_host, like, native

if TYPE_CHECKING:
    from .executor import Array, Executor


class LinOp(ABC):
    """A linear map from vectors of length ``shape[1]`` to vectors of length ``shape[0]``.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy.dtype
        The dtype that the operator computes in; vectors of a wider one are computed in the wider.
    executor : Executor
        Where it lives and works.
    """

    __array_ufunc__ = None  # NumPy and CuPy arrays leave `array @ op` and `scalar * op` to us

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    executor: Executor

    # ---- what a subclass says

    @abstractmethod
    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Set ``y = alpha * op(x) + beta * y`` for native blocks of this operator's dtype.

        ``beta == 0`` must not read ``y``. Solvers call this: no check, no allocation after the
        first call with a shape.
        """

    @property
    def resident(self) -> bool:
        """Whether applying is made of executor operations alone, so that it can be recorded."""
        return True

    @property
    def T(self) -> LinOp:
        """The transpose."""
        raise UnsupportedOperation(f"{type(self).__name__} has no transpose")

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        if is_complex(self.dtype):
            raise UnsupportedOperation(f"{type(self).__name__} has no conjugate transpose")
        return self.T

    @abstractmethod
    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor; itself if it is there already."""

    @abstractmethod
    def astype(self, dtype: Any) -> LinOp:
        """Return this operator computing in ``dtype``; itself if it does already."""

    # ---- what users call

    def apply(
        self,
        x: Any,
        out: Any = None,
        *,
        alpha: complex = 1.0,
        beta: complex = 0.0,
    ) -> Any:
        """Return ``alpha * op(x) + beta * out``.

        Parameters
        ----------
        x : array, shape (n,) or (n, k)
            A native array of the executor, or a NumPy array (copied in).
        out : array, shape (m,) or (m, k), optional
            Overwritten and returned. With ``beta == 0`` it is never read: NaN in it does not
            survive.
        alpha, beta : scalar
            Factors.

        Returns
        -------
        array, shape (m,) or (m, k)
            NumPy if ``x`` was, else native.

        Raises
        ------
        ShapeMismatch, ExecutorMismatch, UnsupportedDtype
            If the operands do not fit.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[2.0, 0.0], [1.0, 3.0]]))
        >>> A.apply(np.array([1.0, 1.0]), alpha=2.0)
        array([4., 8.])
        """
        if out is None and beta != 0:
            raise InvalidArgument("beta needs an out to scale: pass out= or leave beta at 0")
        block = as_block(self.executor, x, self.shape[1], "x")
        operator, block = self._in_common_dtype(block, alpha, beta)
        if out is None:
            result = self.executor.allocate((self.shape[0], block.shape[1]), operator.dtype)
            operator._apply(block, result, alpha, 0.0)
            return like(self.executor, result, x)
        self._apply_into(operator, block, x, out, alpha, beta)
        return out

    def _in_common_dtype(
        self, block: Array, alpha: complex = 1.0, beta: complex = 0.0
    ) -> tuple[LinOp, Array]:
        scalars = [np.complex64] if any(np.iscomplexobj(s) for s in (alpha, beta)) else []
        dtype = common_dtype(self.dtype, block.dtype, *scalars)
        if block.dtype != dtype:
            block = block.astype(dtype)
        return (self if self.dtype == dtype else self.astype(dtype)), block

    def _apply_into(
        self, operator: LinOp, block: Array, x: Any, out: Any, alpha: complex, beta: complex
    ) -> None:
        expected = (self.shape[0],) if np.ndim(x) == 1 else (self.shape[0], block.shape[1])
        if tuple(out.shape) != expected:
            raise ShapeMismatch(f"out: expected shape {expected}, got {tuple(out.shape)}")
        if out.dtype != operator.dtype:
            raise InvalidArgument(
                f"out: expected dtype {operator.dtype} (that of the result), got {out.dtype}"
            )
        target = native(self.executor, out, "out")
        view = target[:, None] if target.ndim == 1 else target
        straight = has_block_layout(view) and not _may_overlap(self.executor, view, block)
        result = view if straight else self.executor.copy(view)
        operator._apply(block, result, alpha, beta)
        if not straight:
            self.executor.copy_into(view, result)
        if is_host(out) and target is not out and not self.executor.owns(out):
            out[...] = self.executor.to_host(target)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, LinOp):
            return Product(self, other)
        if isinstance(other, Number) or np.ndim(other) == 0:
            raise InvalidArgument("@ needs a vector, a block or an operator; scale with *")
        return self.apply(other)

    def __rmatmul__(self, other: Any) -> Any:
        if np.ndim(other) == 2:
            return (self.T @ other.T).T
        return self.T @ other

    def __add__(self, other: Any) -> LinOp:
        return Sum(self, other) if isinstance(other, LinOp) else NotImplemented

    def __sub__(self, other: Any) -> LinOp:
        return Sum(self, Scaled(-1.0, other)) if isinstance(other, LinOp) else NotImplemented

    def __mul__(self, factor: Any) -> LinOp:
        return Scaled(factor, self) if isinstance(factor, Number) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> LinOp:
        return self * (1 / divisor) if isinstance(divisor, Number) else NotImplemented

    def __neg__(self) -> LinOp:
        return self * -1.0

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<{type(self).__name__} {rows}x{columns} {self.dtype} on {self.executor.name}>"

    def to_scipy_operator(self) -> Any:
        """Return a ``scipy.sparse.linalg.LinearOperator`` that applies this one to NumPy arrays."""
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(
            shape=self.shape,
            dtype=self.dtype,
            matvec=lambda x: self.apply(np.ravel(x)),
            matmat=self.apply,
            rmatvec=lambda x: self.H.apply(np.ravel(x)),
            rmatmat=lambda x: self.H.apply(x),
        )

    # SciPy recognizes operators by these names.
    def matvec(self, x: Any) -> Any:
        """Return ``op @ x``, for ``scipy.sparse.linalg``."""
        return self.apply(x)

    def rmatvec(self, x: Any) -> Any:
        """Return ``op.H @ x``, for ``scipy.sparse.linalg``."""
        return self.H.apply(x)

    def matmat(self, x: Any) -> Any:
        """Return ``op @ x`` of a block, for ``scipy.sparse.linalg``."""
        return self.apply(x)

    def rmatmat(self, x: Any) -> Any:
        """Return ``op.H @ x`` of a block, for ``scipy.sparse.linalg``."""
        return self.H.apply(x)


def _may_overlap(executor: Executor, a: Array, b: Array) -> bool:
    if a is b:
        return True
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


class _Temporary:
    """A block that a composed operator keeps between applications, one per number of columns."""

    def __init__(self) -> None:
        self._blocks: dict[int, Array] = {}

    def get(self, executor: Executor, rows: int, columns: int, dtype: np.dtype[Any]) -> Array:
        if columns not in self._blocks:
            self._blocks[columns] = executor.allocate((rows, columns), dtype)
        return self._blocks[columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Temporary, ()


class _Composed(LinOp):
    """What sums, products and scalings share: parts that must live in one place."""

    def __init__(self, *parts: LinOp, dtype: np.dtype[Any] | None = None) -> None:
        self.executor = same_executor(type(self).__name__.lower(), *parts)
        self.dtype = common_dtype(*(p.dtype for p in parts), *([dtype] if dtype else []))
        self.parts = tuple(p.astype(self.dtype) for p in parts)

    @property
    def resident(self) -> bool:
        return all(part.resident for part in self.parts)

    def _with_parts(self, *parts: LinOp) -> Self:
        return type(self)(*parts)

    def to(self, executor: Executor | str) -> Self:
        return self._with_parts(*(p.to(executor) for p in self.parts))

    def astype(self, dtype: Any) -> Self:
        if np.dtype(dtype) == self.dtype:
            return self
        return self._with_parts(*(p.astype(dtype) for p in self.parts))


class Sum(_Composed):
    """The lazy sum of operators of one shape."""

    def __init__(self, *parts: LinOp) -> None:
        if len({part.shape for part in parts}) != 1:
            shapes = " + ".join(f"{m}x{n}" for m, n in (p.shape for p in parts))
            raise ShapeMismatch(f"operators of different shapes have no sum: {shapes}")
        super().__init__(*parts)
        self.shape = parts[0].shape

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        for part in self.parts:
            part._apply(x, y, alpha, beta)
            beta = 1.0

    @property
    def T(self) -> LinOp:
        return Sum(*(part.T for part in self.parts))

    @property
    def H(self) -> LinOp:
        return Sum(*(part.H for part in self.parts))


class Product(_Composed):
    """The lazy product of two operators; the right one is applied first."""

    def __init__(self, left: LinOp, right: LinOp) -> None:
        if left.shape[1] != right.shape[0]:
            raise ShapeMismatch(
                f"no product of {left.shape[0]}x{left.shape[1]} and "
                f"{right.shape[0]}x{right.shape[1]}: {left.shape[1]} columns meet "
                f"{right.shape[0]} rows"
            )
        super().__init__(left, right)
        self.shape = (left.shape[0], right.shape[1])
        self._between = _Temporary()

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        left, right = self.parts
        between = self._between.get(self.executor, right.shape[0], x.shape[1], self.dtype)
        right._apply(x, between, 1.0, 0.0)
        left._apply(between, y, alpha, beta)

    @property
    def T(self) -> LinOp:
        left, right = self.parts
        return Product(right.T, left.T)

    @property
    def H(self) -> LinOp:
        left, right = self.parts
        return Product(right.H, left.H)


class Scaled(_Composed):
    """An operator times a number."""

    def __init__(self, factor: Any, part: LinOp) -> None:
        self.factor = factor.item() if isinstance(factor, np.generic) else factor
        wide = np.dtype(np.complex64) if isinstance(self.factor, complex) else None
        super().__init__(part, dtype=wide)
        self.shape = part.shape

    def _with_parts(self, *parts: LinOp) -> Self:
        return type(self)(self.factor, *parts)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.parts[0]._apply(x, y, alpha * self.factor, beta)

    @property
    def T(self) -> LinOp:
        return Scaled(self.factor, self.parts[0].T)

    @property
    def H(self) -> LinOp:
        return Scaled(np.conj(self.factor), self.parts[0].H)


class LinearOperator(LinOp):
    """A user's own callable as an operator.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    matvec : callable
        Maps a native vector of shape ``(n,)`` to one of shape ``(m,)``.
    rmatvec : callable, optional
        The conjugate transpose's ``matvec``; without it there is no ``H``.
    matmat, rmatmat : callable, optional
        The same for blocks of shape ``(n, k)``; by default column by column.
    dtype : dtype
        The dtype of the result; float64 by default.
    executor : Executor or str, optional
        Where the callable's arrays live; the default executor by default.

    Notes
    -----
    The callable runs in Python, so a solver with such an operator is driven by the host.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> twice = wl.LinearOperator((2, 2), matvec=lambda x: 2 * x)
    >>> twice @ np.array([1.0, 2.0])
    array([2., 4.])
    """

    def __init__(
        self,
        shape: tuple[int, int],
        matvec: Any,
        rmatvec: Any = None,
        matmat: Any = None,
        rmatmat: Any = None,
        dtype: Any = None,
        executor: Executor | str | None = None,
    ) -> None:
        from .registry import executor as by_name
        from .registry import get_default_executor

        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = common_dtype(np.float64 if dtype is None else dtype)
        self.executor = get_default_executor() if executor is None else by_name(executor)
        self._matvec, self._rmatvec = matvec, rmatvec
        self._matmat, self._rmatmat = matmat, rmatmat

    @property
    def resident(self) -> bool:
        return False

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if self._matmat is not None and x.shape[1] != 1:
            self._combine(self._matmat(x), y, alpha, beta)
            return
        for c in range(x.shape[1]):
            mapped = native(self.executor, self._matvec(x[:, c]), "the result of matvec")
            if mapped.size != self.shape[0]:
                raise ShapeMismatch(
                    f"matvec returned shape {tuple(mapped.shape)}, expected ({self.shape[0]},)"
                )
            self._combine(mapped.reshape(-1, 1), y[:, c : c + 1], alpha, beta)

    def _combine(self, mapped: Any, y: Array, alpha: complex, beta: complex) -> None:
        from .operations import vector

        block = as_block(self.executor, mapped, self.shape[0], "the result of matvec")
        self.executor.run(vector.axpby, block.astype(self.dtype), y, alpha, beta)

    @property
    def H(self) -> LinOp:
        if self._rmatvec is None:
            raise UnsupportedOperation("this LinearOperator has no transpose: pass rmatvec=")
        return LinearOperator(
            self.shape[::-1],
            self._rmatvec,
            self._matvec,
            self._rmatmat,
            self._matmat,
            self.dtype,
            self.executor,
        )

    @property
    def T(self) -> LinOp:
        if not is_complex(self.dtype):
            return self.H
        conjugate = self.H
        return LinearOperator(
            conjugate.shape,
            lambda x: conjugate.apply(x.conj()).conj(),
            lambda x: self.apply(x.conj()).conj(),
            dtype=self.dtype,
            executor=self.executor,
        )

    def to(self, executor: Executor | str) -> LinOp:
        from .registry import executor as by_name

        if by_name(executor) != self.executor:
            raise UnsupportedOperation(
                "a LinearOperator cannot be moved: its callable was written for the arrays of "
                f"{self.executor.name}; make another one there"
            )
        return self

    def astype(self, dtype: Any) -> LinOp:
        if np.dtype(dtype) == self.dtype:
            return self
        if is_complex(self.dtype) and not is_complex(dtype):
            raise InvalidArgument("a complex operator cannot be computed in a real dtype")
        return LinearOperator(
            self.shape,
            self._matvec,
            self._rmatvec,
            self._matmat,
            self._rmatmat,
            dtype,
            self.executor,
        )


def as_linop(operator: Any, executor: Executor | str | None = None) -> LinOp:
    """Return ``operator`` as a LinOp.

    Parameters
    ----------
    operator : LinOp, matrix, ``scipy.sparse.linalg.LinearOperator`` or dense array
        What to wrap. A sparse matrix of SciPy, CuPy or PyTorch becomes a :class:`wollemi.Csr`.
    executor : Executor or str, optional
        Where a matrix without a home goes; the default executor by default.
    """
    if isinstance(operator, LinOp):
        return operator
    if hasattr(operator, "matvec") and not hasattr(operator, "tocsr"):
        return LinearOperator(
            operator.shape,
            operator.matvec,
            getattr(operator, "rmatvec", None),
            dtype=getattr(operator, "dtype", None) or np.float64,
            executor=executor,
        )
    from .formats import Csr, Dense

    if hasattr(operator, "tocsr") or getattr(operator, "layout", None) is not None:
        return Csr(operator, executor=executor)
    return Dense(operator, executor=executor)
