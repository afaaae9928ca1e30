"""Diagonal matrices, and the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from ..assembled import Assembled
from ..dtypes import requested_dtype, value_dtype
from ..errors import InvalidMatrix
from ..linop import FACTS
from ..operands import native
from ..operations import vector
from ..registry import executor as executor_by_name
from ..small_values import as_dtype
from .base import Matrix
from .given import checked_shape, homeless, place

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr


class Diagonal(Matrix):
    """A diagonal matrix.

    Parameters
    ----------
    data : array, shape (n,)
        The diagonal entries.
    dtype, executor
        As for :class:`Csr`.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.Diagonal(np.array([2.0, 3.0])) @ np.array([1.0, 1.0])
    array([2., 3.])
    """

    format = "diagonal"
    arrays = ("data",)
    _is_light = True  # as long as a vector

    def __init__(
        self, data: Any, *, dtype: Any = None, executor: Executor | str | None = None
    ) -> None:
        where = place(executor, data)
        values = native(where, data, "data")
        if values.ndim != 1:
            raise InvalidMatrix(f"data: expected 1 dimension, got shape {tuple(values.shape)}")
        held = value_dtype(values.dtype) if dtype is None else requested_dtype(dtype)
        values = where.copy(as_dtype(where, values, held))
        n = int(values.size)
        self.__dict__.update(Diagonal._from_arrays(where, (n, n), values).__dict__)
        self._follows = homeless(executor, data)

    @staticmethod
    def _held_dtype(dtype: DTypeLike) -> np.dtype[Any]:
        """Return the dtype for scaling vectors: a diagonal does not store exact integers."""
        return value_dtype(dtype)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(vector.scale_rows, self.data, x, y, alpha, beta)

    @property
    def _row_factors(self) -> Array:
        return self.data

    @property
    def T(self) -> Diagonal:
        """The matrix itself."""
        return self

    @property
    def H(self) -> Diagonal:
        """The complex conjugate."""
        return self.conj()

    def _main_diagonal(self) -> Array:
        return self.executor.copy(self.data)


class Identity(Assembled):
    """The identity operator.

    Parameters
    ----------
    n : int
        Rows and columns.
    dtype, executor
        As for :class:`Csr`.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.Identity(2) @ np.array([1.0, 2.0])
    array([1., 2.])
    """

    _fixed_attributes: ClassVar[dict[str, str]] = FACTS
    _has_entries = True
    _is_light = True

    def __init__(
        self, n: int, *, dtype: DTypeLike = np.float32, executor: Executor | str | None = None
    ) -> None:
        self.shape = checked_shape((n, n))
        self.dtype = requested_dtype(dtype)
        self.executor = place(executor)
        self._follows = executor is None

    def _entries(self) -> Csr:
        ones = Diagonal(np.ones(self.shape[0], self.dtype), executor=self.executor)
        return ones.tocsr()._following(self)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(vector.axpby, x, y, alpha, beta)

    @property
    def T(self) -> Self:
        """The identity itself."""
        return self

    @property
    def H(self) -> Self:
        """The identity itself."""
        return self

    def to(self, executor: Executor | str) -> Self:
        """Return the identity on another executor, to which it is then fixed."""
        return type(self)(self.shape[0], dtype=self.dtype, executor=executor_by_name(executor))

    def astype(self, dtype: DTypeLike) -> Self:
        """Return the identity computing in ``dtype``; itself if it does already."""
        if requested_dtype(dtype) == self.dtype:
            return self
        result = type(self)(self.shape[0], dtype=dtype, executor=self.executor)
        result._follows = self._follows
        return result
