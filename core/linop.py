"""Linear operators: all objects that map vectors linearly.

A subclass defines the map of a native block (:meth:`LinOp.apply_block`); this module defines the
methods for users. Sums, products, scalings and transposes of operators are operators too, evaluated
when they are applied.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .array_protocol import ArrayProtocol
from .described import Described
from .dtypes import common_dtype
from .errors import FixedAttribute, InvalidArgument, UnsupportedOperand, UnsupportedOperation
from .factors import number
from .hooks import Hook, Hooked, hook, is_of_wollemi, required
from .leading_axes import over_blocks, over_vectors
from .libraries import operator_handler
from .operands import (
    OutputTarget,
    as_column,
    block_of,
    dimensions,
    executor_beside,
    fits,
    has_block_layout,
    is_array,
    is_host,
    may_overlap,
    native,
)
from .operator_type import OperatorType
from .program import recording
from .provided import Provided
from .replays import replays_as_called
from .small_values import as_dtype
from .vector_conversions import apply_on_member

if TYPE_CHECKING:
    from .executor import Array, Executor


@Provided
def product(left: LinOp, right: LinOp, /) -> LinOp:
    """Return the operator that applies ``right``, then ``left``; :mod:`.lazy` provides it."""
    raise NotImplementedError


@Provided
def added(left: LinOp, right: LinOp, /) -> LinOp:
    """Return the sum of two operators; :mod:`.lazy` provides it."""
    raise NotImplementedError


@Provided
def scaled(factor: Any, operator: LinOp, /) -> LinOp:
    """Return a number times an operator; :mod:`.lazy` provides it."""
    raise NotImplementedError


@Provided
def conjugated(operator: LinOp, /) -> LinOp:
    """Return the operator with conjugated entries; :mod:`.conjugated` provides it."""
    raise NotImplementedError


#: The attributes that kernels rely on, so that operators must never change them.
FACTS = {
    "shape": "make a new operator of that shape",
    "dtype": "A.astype(dtype) is the operator in another dtype",
    "executor": "A.to(executor) is the operator on another executor",
}


class LinOp(Hooked, Described, ArrayProtocol, metaclass=OperatorType):
    """A linear map from vectors of length ``shape[1]`` to vectors of length ``shape[0]``.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy.dtype
        Dtype of computations; vectors of a wider dtype are computed in the wider dtype.
    executor : Executor
        The executor that stores and applies the operator.
    """

    HOOKS: ClassVar[Mapping[str, Hook]] = {"apply_block": hook("LinOp", "_apply", "apply_block")}

    ndim = 2

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    executor: Executor

    #: Whether it is a matrix or consists of matrices alone, and so can be converted to a matrix.
    _has_entries: bool = False

    #: Whether its entries are stored in arrays of its own.
    _is_matrix: ClassVar[bool] = False

    #: Text after the class's name in errors about entries: why it has no entries, and which object
    #: has them.
    _no_entries: str = ""

    #: Whether it was made of host data without ``executor=``: it then has no fixed executor, and
    #: moves to the executor of an operator that it is combined with.
    _follows: bool = False

    #: Whether it has no entries of its own, so that moving it to another executor is cheap.
    _is_light: bool = False

    #: Number of times that it was rebuilt from other parts; earlier recordings are then out of
    #: date.
    _rebuilds: int = 0

    #: Whether replays of a user-defined operator equal its calls; None before the first comparison.
    _replays: bool | None = None

    #: Attributes that operators of this class never change, with the alternative for each.
    _fixed_attributes: ClassVar[dict[str, str]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; refuse attributes that must not change because kernels trust them.

        With a wrong shape or dtype a kernel would read beyond the end of an array.
        """
        if (
            name in self._fixed_attributes
            and name in self.__dict__
            and not _same(self.__dict__[name], value)
        ):
            raise FixedAttribute(
                f"{name}: a {type(self).__name__} cannot change it; "
                f"{self._fixed_attributes[name]} (can't set attribute)"
            )
        super().__setattr__(name, value)

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the output vectors.

        ``shape`` is the shape of the whole operator. The lengths differ if a group of executors
        shares the operator.
        """
        return self.shape[0]

    @property
    def partition(self) -> Any:
        """The partition of the rows if a group of executors shares the operator, or None."""
        return None

    @property
    def room(self) -> int:
        """Rows after the end of a vector that applying uses if the vector has such space."""
        return 0

    @property
    def column_partition(self) -> Any:
        """The partition of the rows of the input vectors, or None."""
        return self.partition

    @property
    def local_columns(self) -> int:
        """The length of this executor's part of the input vectors."""
        partition, links = self.column_partition, self.executor.links
        if partition is None or links is None:
            return self.shape[1]
        count: int = partition.count(links.rank)
        return count

    # methods of a subclass

    @required
    def apply_block(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Set ``y = alpha * op(x) + beta * y`` for native blocks of this operator's dtype.

        A subclass defines this method; solvers and operators call it. With ``beta == 0`` it must
        not read ``y``. It does not check arguments, and allocates no memory after the first call
        with a shape. Users call :meth:`apply`.

        Parameters
        ----------
        x : array, shape (n, k)
            A native array of the executor.
        y : array, shape (m, k)
            Overwritten. It shares no memory with ``x``.
        alpha, beta : scalar
            Factors.
        """
        raise NotImplementedError

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Implement :meth:`apply_block`; wollemi's own classes define this private name."""
        raise NotImplementedError

    @property
    def resident(self) -> bool:
        """Whether applying consists of executor operations alone, so that it can be recorded.

        A class of another package may define this property. Otherwise the first question of a
        solver records one call and compares its replay with a call; the host drives operators that
        use array functions.
        """
        return self._replays_as_called

    @property
    def _replays_as_called(self) -> bool:
        if type(self)._apply.__module__.startswith("wollemi."):
            return True
        if self._replays is None and recording() is None:
            self._replays = replays_as_called(self)
        return self._replays is not False

    @property
    def varies(self) -> bool:
        """Whether applying is not a fixed linear map but depends on ``x``, as a solver does."""
        return False

    def _savepoint(self) -> Callable[[], None]:
        """Return a function that undoes an update made after this call; a no-op by default."""
        return lambda: None

    @property
    def _row_factors(self) -> Array | None:
        """The row factors, shape (n,), of an operator that only scales rows; otherwise None."""
        return None

    def _follow_writes(self) -> None:
        """Notice values that were written into the arrays of matrices, before a solve."""

    def _private(self) -> LinOp:
        """Return this operator with temporaries of its own.

        A recorded iteration keeps its arrays, even if another caller applies the operator.
        """
        return self

    @property
    def T(self) -> LinOp:
        """The transpose; derived from ``H`` if the class defines only that."""
        if self._has_own("H"):
            return conjugated(self.H)
        raise UnsupportedOperation(self._without("transpose"))

    @property
    def H(self) -> LinOp:
        """The conjugate transpose; by default it is the conjugate of ``T``."""
        if self._has_own("T"):
            return conjugated(self.T)
        raise UnsupportedOperation(self._without("conjugate transpose"))

    def _has_own(self, name: str) -> bool:
        """Return whether the class, or a base outside of wollemi, defines a transpose."""
        definition = next(base for base in type(self).__mro__ if name in vars(base))
        return definition.__module__ not in ("wollemi.core.linop", "wollemi.core.formats.base")

    def _without(self, kind: str) -> str:
        name = type(self).__name__
        if is_of_wollemi(type(self)):
            return f"{name} has no {kind}; take a method that needs none, such as gmres or bicgstab"
        return (
            f"{name} has no {kind}: define T in the class, a property that returns the operator "
            "of the transpose (H follows from it), or take a method that needs none, such as gmres "
            "or bicgstab"
        )

    @abstractmethod
    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor; itself if it is there already."""

    @abstractmethod
    def astype(self, dtype: Any) -> LinOp:
        """Return this operator computing in ``dtype``; itself if it does already."""

    def _multiply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Overwrite ``y`` as :meth:`_apply` does, for users: formats may use faster kernels here.

        Operators in solvers are captured and fused with the next operations; products for users are
        not.
        """
        self._apply(x, y, alpha, beta)

    # methods for users

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
            A native array of the executor, or a NumPy array, which is copied. An operator without
            entries of its own that was made without ``executor=`` (an identity, a function) moves
            to the executor of ``x`` or ``out``.
        out : array, shape (m,) or (m, k), optional
            Overwritten and returned. With ``beta == 0`` it is never read: NaN in it does not
            survive. Its dtype must be the dtype of the result or a wider one; everything is then
            computed in the wider dtype.
        alpha, beta : scalar
            Factors.

        Returns
        -------
        array, shape (m,) or (m, k)
            A NumPy array if ``x`` was one, otherwise a native array.

        Raises
        ------
        ShapeMismatch, ExecutorMismatch, UnsupportedDtype
            If the operands do not fit together.
        InvalidArgument
            If a factor is not a number, or if ``out`` is not writable.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[2.0, 0.0], [1.0, 3.0]]))
        >>> A.apply(np.array([1.0, 1.0]), alpha=2.0)
        array([4., 8.])
        """
        if type(alpha) is float and alpha == 1.0 and type(beta) is float and beta == 0.0:
            result = self._fast_product(x, out)
            if result is not None:
                return result
        place = self.executor
        return place.submit("A @ x", self, self._apply_operands, x, out, alpha, beta)

    def _apply_operands(self, x: Any, out: Any, alpha: complex, beta: complex) -> Any:
        """Implement :meth:`apply` for unchecked operands."""
        alpha, beta = number(alpha, "alpha"), number(beta, "beta")
        if out is None and beta != 0:
            raise InvalidArgument("beta needs an out to scale: pass out= or leave beta at 0")
        if self.partition is not None:
            return apply_on_member(self, x, out, alpha, beta)
        if self._follows and self._is_light and (out is not None or type(x) is not np.ndarray):
            place = executor_beside(self.executor, x, out)
            if place is not None:  # with entries each product would copy
                return self.to(place).apply(x, out, alpha=alpha, beta=beta)
        executor, (rows, columns) = self.executor, self.shape
        given = native(executor, x, "x")
        block = block_of(executor, given, columns, "x", self.dtype)
        dtype = self._result_dtype(block, alpha, beta)
        if out is None:
            operator, block = self._cast(block, dtype)
            result = executor.allocate((rows, block.shape[1]), dtype)
            operator._multiply(block, result, alpha, 0.0)
            result = result.reshape(rows) if given.ndim == 1 else result
            return result if given is x or not is_host(x) else executor.to_host(result)
        shape = (rows,) if given.ndim == 1 else (rows, block.shape[1])
        self._apply_into(OutputTarget(executor, out, shape), block, dtype, alpha, beta)
        return out

    def _fast_product(self, x: Array, out: Any) -> Array | None:
        """Return ``op(x)``, in ``out`` if given, by a fast path; None if there is none."""
        if out is not None or self.partition is not None or not fits(self, x):
            return None
        result = self.executor.allocate((self.shape[0], 1), x.dtype)
        self._multiply(x.reshape(-1, 1), result, 1.0, 0.0)
        return result.reshape(-1)

    def _result_dtype(self, block: Array, alpha: Any, beta: Any) -> np.dtype[Any]:
        if isinstance(alpha, complex) or isinstance(beta, complex):
            return common_dtype(self.dtype, block.dtype, np.complex64)
        own, given = self.dtype, block.dtype
        return own if given is own or given == own else common_dtype(own, given)

    def _cast(self, block: Array, dtype: np.dtype[Any]) -> tuple[LinOp, Array]:
        if block.dtype is not dtype and block.dtype != dtype:
            block = as_dtype(self.executor, block, dtype)
        same = self.dtype is dtype or self.dtype == dtype
        return (self if same else self.astype(dtype)), block

    def _apply_into(
        self,
        target: OutputTarget,
        block: Array,
        dtype: np.dtype[Any],
        alpha: complex,
        beta: complex,
    ) -> None:
        operator, block = self._cast(block, target.holding(dtype))
        view = as_column(target.array)
        straight = has_block_layout(view) and not may_overlap(view, block)
        result = view if straight else self.executor.copy(view)
        operator._multiply(block, result, alpha, beta)
        if not straight:
            self.executor.copy_into(view, result)
        target.finish()

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray) and other.ndim:  # the most frequent case
            return self.apply(other)
        operator = self._beside(other)
        if operator is not None:
            return self._after(operator)
        if not is_array(other) or isinstance(other, ArrayProtocol):  # a sparse vector answers
            return NotImplemented
        if dimensions(other) == 0:
            raise InvalidArgument("@ needs a vector, a block or an operator; scale with *")
        return self.apply(other)

    def dot(self, other: Any) -> Any:
        """Return ``op @ other``, or ``op * other`` for a number; SciPy has the same method."""
        return self * other if isinstance(other, Number) else self @ other

    def _beside(self, other: Any) -> LinOp | None:
        """Return ``other`` as an operator to combine with this one, or None if it is none.

        Sparse matrices of other libraries are accepted: host matrices are copied to this executor.
        """
        if isinstance(other, ArrayProtocol):  # a sparse vector has one dimension
            return other if isinstance(other, LinOp) else None
        if any(hasattr(other, name) for name in ("tocsr", "layout", "matvec")):
            return operator_handler().operator_beside(self.executor, other)
        return None

    def _after(self, other: LinOp) -> LinOp:
        """Return the operator that applies ``other`` and then this one."""
        return product(self, other)

    def _plus(self, other: LinOp, factor: float = 1.0) -> LinOp:
        """Return this operator plus ``factor`` times another."""
        return added(self, other if factor == 1.0 else scaled(factor, other))

    def __rmatmul__(self, other: Any) -> Any:
        operator = self._beside(other)
        if operator is not None:
            return operator._after(self)
        if not is_array(other):
            return NotImplemented
        if dimensions(other) == 2:
            block = other if hasattr(other, "T") else np.asarray(other)
            return (self.T @ block.T).T
        return self.T @ other

    def __add__(self, other: Any) -> Any:
        operator = self._beside(other)
        if operator is not None:
            return self._plus(operator)
        return self if _is_zero(other) else self._no_sum(other)  # sum() begins with zero

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        operator = self._beside(other)
        if operator is not None:
            return self._plus(operator, -1.0)
        if _is_zero(other):
            return self
        return self._no_difference(other, of_self=False)

    def __rsub__(self, other: Any) -> Any:
        operator = self._beside(other)
        if operator is not None:
            return operator._plus(self, -1.0)
        return -self if _is_zero(other) else self._no_difference(other, of_self=True)

    def _no_difference(self, other: Any, *, of_self: bool) -> Any:
        """Refuse ``self - other``, or ``other - self``; matrices take arrays."""
        return self._no_sum(other)

    def _no_sum(self, other: Any) -> Any:
        if isinstance(other, Number) or hasattr(other, "__array__"):
            raise UnsupportedOperand(
                f"the sum of a {type(self).__name__} and a {type(other).__name__} is not taken: "
                "write it with operators, wl.Dense(x) or 2.0 * wl.Identity(n), or with A.to_dense()"
            )
        return NotImplemented

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, Number):
            return scaled(factor, self)
        if isinstance(factor, LinOp) or hasattr(factor, "__array__") or hasattr(factor, "tocsr"):
            raise UnsupportedOperand(
                f"{type(self).__name__} * {type(factor).__name__} would mean one thing to matrices "
                "and another to arrays: write A @ x for the product, A.multiply(x) for that of the "
                "entries"
            )
        return NotImplemented

    __rmul__ = __mul__

    def __pow__(self, exponent: Any) -> Any:
        raise UnsupportedOperand(
            f"{type(self).__name__} ** {exponent!r} would mean one thing to matrices and another "
            "to arrays: write A @ A for the product, A.power(2) for that of the entries"
        )

    def __truediv__(self, divisor: Any) -> LinOp:
        if isinstance(divisor, (int, float, complex, np.number)):
            return self * (1 / divisor)
        if is_array(divisor) or hasattr(divisor, "tocsr"):
            raise UnsupportedOperand(
                f"{type(self).__name__} / {type(divisor).__name__} would mean one thing to "
                "matrices and another to arrays: write wl.Diagonal(1 / d) @ A to divide the rows "
                "of A, A @ wl.Diagonal(1 / d) for its columns, A.multiply(1 / x) for the entries"
            )
        return NotImplemented

    def __neg__(self) -> LinOp:
        return self * -1.0

    def to_dense(self) -> np.ndarray[Any, Any]:
        """Return the matrix of this operator as a NumPy array: its product with the identity.

        Examples
        --------
        >>> import wollemi as wl
        >>> wl.Permutation([1, 0]).to_dense()
        array([[0., 1.],
               [1., 0.]], dtype=float32)
        """
        return np.asarray(self.apply(np.eye(self.shape[1], dtype=self.dtype)))

    def toarray(self) -> np.ndarray[Any, Any]:
        """Return the result of :meth:`to_dense`, by SciPy's name."""
        return self.to_dense()

    def to_scipy_operator(self) -> Any:
        """Return a ``scipy.sparse.linalg.LinearOperator`` that applies this one to NumPy arrays."""
        from scipy.sparse.linalg import LinearOperator

        def column(x: Any) -> Any:
            return np.ravel(x) if np.shape(x)[1:] == (1,) else np.asarray(x)

        return LinearOperator(
            shape=self.shape,
            dtype=self.dtype,
            matvec=lambda x: self.matvec(column(x)),
            matmat=self.matmat,
            rmatvec=lambda x: self.rmatvec(column(x)),
            rmatmat=self.rmatmat,
        )

    # SciPy identifies operators by these names.
    def matvec(self, x: Any) -> Any:
        """Return ``op @ x`` for ``scipy.sparse.linalg``, for each vector ``(..., n)``."""
        return over_vectors(self.apply, x, self.shape[1])

    def rmatvec(self, x: Any) -> Any:
        """Return ``op.H @ x`` for ``scipy.sparse.linalg``, for each vector ``(..., m)``."""
        return over_vectors(self.H.apply, x, self.shape[0])

    def matmat(self, x: Any) -> Any:
        """Return ``op @ x`` for blocks ``(..., n, k)``, for ``scipy.sparse.linalg``."""
        return over_blocks(self.apply, x, self.shape[1])

    def rmatmat(self, x: Any) -> Any:
        """Return ``op.H @ x`` for blocks ``(..., m, k)``, for ``scipy.sparse.linalg``."""
        return over_blocks(self.H.apply, x, self.shape[0])


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(np.all(a == b)))


def _is_zero(other: object) -> bool:
    """Return whether an operand is the number 0, or a zero-dimensional NumPy array of 0."""
    is_number = isinstance(other, (int, float, complex, np.number)) or (
        isinstance(other, np.ndarray) and other.ndim == 0
    )
    return is_number and bool(other == 0)
