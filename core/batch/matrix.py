"""The common base of batched formats: leading axes, members, values, products and transfers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import prod
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike

from ..capture import CHANGES, MAKES
from ..dtypes import common_dtype, is_complex, requested_dtype
from ..errors import (
    FixedAttribute,
    IndexOutOfRange,
    InvalidArgument,
    UnsupportedOperation,
)
from ..factors import number
from ..formats.base import Matrix
from ..formats.given import as_source
from ..formats.watched_values import marks_of
from ..operands import is_host, native, new_values
from ..registry import executor as executor_by_name
from ..small_values import as_dtype, conjugated
from .shapes import BatchOperand

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import BatchCsr

#: The reason in errors about methods that only single matrices have.
ONE_BY_ONE = "a batch has one pattern and many values; A[k] is one matrix with all methods"


#: Attributes that a batch never changes, with the alternative for each.
_FIXED = {
    "shape": "wl.Csr((data, indices, indptr), shape=shape) is a batch of another shape",
    "batch_shape": "data with other leading axes makes another batch",
    "dtype": "A.astype(dtype) is a batch of another dtype",
    "executor": "A.to(executor) is a batch elsewhere",
}


class UnsupportedOnBatch(UnsupportedOperation, AttributeError):
    """A batch does not support a method of single matrices.

    It is an AttributeError too, so that ``hasattr`` is False for unsupported methods.
    """


class BatchMatrix(ABC):
    """Many matrices with a common shape and pattern.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of each matrix.
    batch_shape : tuple of int
        The leading axes of the values.
    data : array, shape (*batch_shape, ...)
        Values: for each matrix the array of its format.
    dtype : numpy.dtype
        The dtype of the values.
    executor : Executor
        The executor of the arrays.
    """

    format: ClassVar[str]

    # NumPy leaves ``X @ A`` to this class.
    __array_ufunc__ = None

    _is_batch = True

    executor: Executor
    shape: tuple[int, int]
    batch_shape: tuple[int, ...]
    #: The values, one row for each matrix.
    _values: Array
    #: A matrix with the common pattern; its values have no meaning.
    _one: Matrix
    #: Whether the batch was made of host data without ``executor=``.
    _follows: bool = False
    #: The number of updates of the values.
    _changes: int = 0

    @classmethod
    def _from_values(
        cls, one: Matrix, batch_shape: tuple[int, ...], values: Array, *, follows: bool = False
    ) -> Self:
        """Make a batch with the pattern of ``one``; ``values`` has one row for each matrix."""
        result = cls.__new__(cls)
        result.executor, result.shape, result.batch_shape = one.executor, one.shape, batch_shape
        result._one, result._follows = one, follows
        xp = one.executor.xp
        result._values = xp.ascontiguousarray(values)  # kernels read contiguous rows
        return result

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; refuse attributes that never change, because kernels trust them."""
        if name in _FIXED and (name == "dtype" or name in self.__dict__):
            raise FixedAttribute(
                f"{name}: a batch cannot change it; {_FIXED[name]} (can't set attribute)"
            )
        super().__setattr__(name, value)

    # ---- facts

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return np.dtype(self._values.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes: the leading axes and two."""
        return len(self.batch_shape) + 2

    @property
    def count(self) -> int:
        """The number of matrices."""
        return prod(self.batch_shape)

    @property
    def nnz(self) -> int:
        """The number of entries that each matrix stores."""
        return self._one.nnz

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        return int(self._values.nbytes) + self._one.nbytes - int(self._one.data.nbytes)

    @property
    def data(self) -> Array:
        """The values, with the leading axes of the batch."""
        return self._values.reshape(*self.batch_shape, *self._one.data.shape)

    @data.setter
    def data(self, data: Any) -> None:
        self.update_values(data)

    def __len__(self) -> int:
        return self.batch_shape[0]

    def __repr__(self) -> str:
        batch = "x".join(map(str, self.batch_shape))
        rows, columns = self.shape
        return (
            f"<batch of {batch} {type(self._one).__name__} {rows}x{columns} {self.dtype} "
            f"nnz={self.nnz} on {self.executor.name}>"
        )

    # ---- members

    def _member(self, k: int) -> Matrix:
        """Return matrix ``k``, counted over all leading axes; it shares no values."""
        values = self.executor.copy(self._values[k])
        return self._one._with_data(values.reshape(self._one.data.shape))

    def __getitem__(self, key: Any) -> Any:
        """Return one matrix, or the batch selected by slices and arrays for the leading axes.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr((np.array([[2.0], [3.0]]), [0], [0, 1]), shape=(1, 1))
        >>> A[1].to_dense()
        array([[3.]])
        >>> A[:1].batch_shape
        (1,)
        """
        places = np.arange(self.count).reshape(self.batch_shape)
        try:
            chosen = places[key]
        except IndexError as error:
            raise IndexOutOfRange(
                f"A[{key!r}]: the batch has the leading axes {self.batch_shape}: {error}"
            ) from None
        if np.ndim(chosen) == 0:
            return self._member(int(chosen))
        order = self.executor.from_host(np.ascontiguousarray(chosen.ravel()))
        return self._from_values(self._one, chosen.shape, self._values[order])

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    # ---- values

    def update_values(self, data: Any) -> None:
        """Overwrite the values of all matrices; the pattern does not change.

        Parameters
        ----------
        data : array, of the shape of ``self.data``
            The new values.

        Raises
        ------
        InvalidMatrix
            If the shape differs, or if complex values would become real; no values are changed
            then.
        """
        self.executor.refuse_capture(CHANGES)
        shape = tuple(self.data.shape)
        values = new_values(self.executor, data, shape, self.dtype, "batch")
        source = as_source(self.executor, values, self._values)
        self.executor.copy_into(self._values, source.reshape(self._values.shape))
        self._changes += 1

    def _follow_writes(self) -> None:
        """Notice values that were written into :attr:`data` since the last solve on the host."""
        if type(self._values) is np.ndarray:
            present = marks_of(self._values)
            if self.__dict__.setdefault("_marks", present) != present:
                self._changes += 1
                self.__dict__["_marks"] = present

    def _with_values(self, values: Array) -> Self:
        return self._from_values(self._one, self.batch_shape, values, follows=self._follows)

    def astype(self, dtype: DTypeLike) -> Self:
        """Return this batch with values of ``dtype``; itself if it already has that dtype.

        Raises
        ------
        UnsupportedDtype
            If matrices cannot have values of that dtype.
        InvalidArgument
            If complex values would become real.
        """
        dtype = requested_dtype(dtype)
        if dtype == self.dtype:
            return self
        if is_complex(self.dtype) and not is_complex(dtype):
            raise InvalidArgument(
                f"a {self.dtype} batch does not become {dtype} by itself: take .real of its data"
            )
        self.executor.refuse_capture(MAKES)
        return self._with_values(as_dtype(self.executor, self._values, dtype))

    def copy(self) -> Self:
        """Return a copy that does not share values with this batch."""
        return self._with_values(self.executor.copy(self._values))

    def conj(self) -> Self:
        """Return the complex conjugates; itself if the values are real."""
        if not is_complex(self.dtype):
            return self
        return self._with_values(conjugated(self.executor, self._values))

    def __mul__(self, factor: Any) -> Any:
        """Return all matrices multiplied by a number."""
        if not isinstance(factor, Number):
            self._refuse("*", "scale by one number, or give data of other values")
        self.executor.refuse_capture(MAKES)
        return self._with_values(self._values * number(factor, "factor"))

    __rmul__ = __mul__

    def __neg__(self) -> Self:
        self.executor.refuse_capture(MAKES)
        return self._with_values(-self._values)

    def __truediv__(self, divisor: Any) -> Any:
        if not isinstance(divisor, Number):
            self._refuse("/", "divide by one number, or give data of other values")
        return self * (1 / divisor if divisor else np.inf)  # type: ignore[operator]

    # ---- positions

    def to(self, executor: Executor | str) -> Self:
        """Return this batch on another executor; itself if it is there already."""
        target = executor_by_name(executor)
        if target == self.executor:
            return self
        values = target.brought(self.executor, self._values)
        if isinstance(values, np.ndarray) and values is self._values:
            values = target.copy(values)
        return self._from_values(self._one.to(target), self.batch_shape, values)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "one": self._one,
            "batch_shape": self.batch_shape,
            "values": np.asarray(self.executor.to_host(self._values)),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        one = state["one"]
        values = one.executor.from_host(np.array(state["values"]))
        self.__dict__.update(self._from_values(one, state["batch_shape"], values).__dict__)

    def asformat(self, format: str) -> BatchMatrix:
        """Return this batch in another format; itself if it has that format.

        Parameters
        ----------
        format : {"csr", "ell", "dense"}
            Other formats have no batched class.

        Raises
        ------
        UnsupportedOperation
            If the format has no batched class.
        """
        from .convert import converted

        return converted(self, format)

    @abstractmethod
    def tocsr(self) -> BatchCsr:
        """Return this batch in the CSR format; itself if it has that format."""

    def to_scipy(self) -> list[Any]:
        """Return ``scipy.sparse`` arrays in lists that are nested like the leading axes."""
        matrices = [self._member(k).to_scipy() for k in range(self.count)]
        return _nested(matrices, self.batch_shape)

    def to_dense(self) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array, shape (*batch_shape, m, n)."""
        made = np.zeros((self.count, *self.shape), self.dtype)
        for k in range(self.count):
            made[k] = self._member(k).to_dense()
        return made.reshape(*self.batch_shape, *self.shape)

    toarray = to_dense

    # ---- products

    def __matmul__(self, other: Any) -> Any:
        """Return the products with vectors or blocks, broadcast as in :func:`numpy.matmul`.

        An array of shape ``(*batch_shape, n)`` contains one vector for each matrix; an array of
        shape ``(n,)`` is one vector for all matrices. Any other array contains blocks
        ``(..., n, k)``; its leading axes are broadcast against the axes of the batch.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr((np.array([[2.0, 1.0], [3.0, 4.0]]), [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> A @ np.ones(2)
        array([[2., 1.],
               [3., 4.]])
        """
        if isinstance(other, (BatchMatrix, Matrix)):
            self._refuse("@ between sparse matrices", "multiply A[k] @ B[k] one by one")
        return self.executor.submit("A @ X", self, self._times, other)

    def _times(self, other: Any) -> Any:
        operand = BatchOperand(self, native(self.executor, other, "X"))
        dtype = common_dtype(self.dtype, operand.array.dtype)
        self._prepare_product(operand, dtype)
        made = self.astype(dtype)._product(operand, operand.blocks(dtype))
        shape = (*operand.batch_shape, self.shape[0], *operand.columns)
        made = made.reshape(shape)
        return self.executor.to_host(made) if is_host(other) else made

    def _prepare_product(self, operand: BatchOperand, dtype: np.dtype[Any]) -> None:  # noqa: B027
        """Prepare data that products make once, before any work on the operands."""

    @abstractmethod
    def _product(self, operand: BatchOperand, blocks: Array) -> Array:
        """Return the products of all matrices with native blocks of shape (count, n, k)."""

    def __rmatmul__(self, other: Any) -> NoReturn:
        self._refuse("X @ A", "(A.T @ X) multiplies from the left")

    def _ones(self, length: int) -> Array:
        ones = np.ones((self.count, length), self.dtype)
        return self.executor.from_host(ones.reshape(*self.batch_shape, length))

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of all entries, or the column sums (0) or row sums (1), of each matrix.

        Parameters
        ----------
        axis : {None, 0, 1, -1, -2}
            The axis, as for one matrix.

        Returns
        -------
        array, shape batch_shape, (*batch_shape, n) or (*batch_shape, m)
            Native array.
        """
        self.executor.refuse_capture(MAKES)
        if axis is None:
            sums = self._values.reshape(self.count, prod(self._one.data.shape)).sum(axis=1)
            return sums.reshape(self.batch_shape)
        if axis not in (0, 1, -1, -2):
            raise InvalidArgument(f"axis: expected None, 0 or 1, got {axis!r}")
        turned = self if axis in (1, -1) else self.T
        return turned @ self._ones(turned.shape[1])

    def diagonal(self) -> Any:
        """Return the main diagonals as a native array, shape (*batch_shape, min(m, n))."""
        return self.tocsr().diagonal()

    @property
    @abstractmethod
    def T(self) -> BatchMatrix:
        """The transposes; they share no values with this batch."""

    @property
    def H(self) -> BatchMatrix:
        """The conjugate transposes."""
        return self.T.conj()

    # unsupported methods

    def _refuse(self, label: str, remedy: str) -> NoReturn:
        raise UnsupportedOperation(f"{label} is not defined for a batch: {remedy}")

    def __add__(self, other: Any) -> NoReturn:
        self._refuse("+", "add the data of two batches of one pattern, A.data + B.data")

    __radd__ = __add__

    def __sub__(self, other: Any) -> NoReturn:
        self._refuse("-", "subtract the data of two batches of one pattern, A.data - B.data")

    __rsub__ = __sub__

    def __pow__(self, exponent: Any) -> NoReturn:
        self._refuse("**", "A.data ** p are the powers of the entries")

    def __abs__(self) -> NoReturn:
        self._refuse("abs", "abs(A.data) are the absolute values of the entries")

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raise an error that explains why a batch lacks a method of one matrix."""
            if not name.startswith("_") and hasattr(type(self.__dict__.get("_one")), name):
                raise UnsupportedOnBatch(f"{name} is not defined for a batch: {ONE_BY_ONE}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _nested(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Return items as nested lists with this shape."""
    for length in reversed(shape[1:]):
        items = [items[k : k + length] for k in range(0, len(items), length)] if length else []
    return items
