"""A sparse vector: a row or a column of a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..array_protocol import ArrayProtocol
from ..errors import InvalidArgument, ShapeMismatch
from .base import Matrix
from .entry_functions import EntryFunctions

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr


class SparseVector(EntryFunctions, ArrayProtocol):
    """A sparse array of one dimension: the type of ``A[i]`` and ``A[:, j]``.

    Parameters
    ----------
    row : Csr, shape (1, n)
        The entries, as a matrix of one row.

    Attributes
    ----------
    row : Csr, shape (1, n)
        The entries; ``v.row`` is the vector as a matrix.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> v = wl.Csr(np.array([[1.0, 0.0, 2.0]]))[0]
    >>> v.shape, v.nnz, v.toarray()
    ((3,), 2, array([1., 0., 2.]))
    """

    ndim = 1
    format = "coo"
    shape: Any

    def __init__(self, row: Csr) -> None:
        if row.shape[0] != 1:
            raise ShapeMismatch(f"a sparse vector is made of one row, got {row.shape[0]}")
        self.row = row
        self.shape = (row.shape[1],)
        self.dtype = row.dtype

    # ---- facts

    @property
    def executor(self) -> Executor:
        """Where the vector lives."""
        return self.row.executor

    @property
    def device(self) -> Any:
        """The device of the arrays, as their library names it."""
        return self.row.device

    @property
    def nnz(self) -> int:
        """How many entries are stored, explicit zeros included."""
        return self.row.nnz

    size = nnz

    @property
    def data(self) -> Array:
        """The stored values."""
        return self.row.data

    @property
    def indices(self) -> Array:
        """The positions of the stored values."""
        return self.row.indices

    @property
    def coords(self) -> tuple[Array]:
        """The positions of the stored values in a tuple, by SciPy's name."""
        return (self.row.indices,)

    def __repr__(self) -> str:
        return f"<SparseVector {self.shape[0]} {self.dtype} nnz={self.nnz} on {self.executor.name}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a NumPy array of all entries: as many as a dense vector has."""
        made = self.toarray()
        return made if dtype is None else made.astype(dtype, copy=False)

    # ---- other forms

    def toarray(self) -> np.ndarray[Any, Any]:
        """Return a NumPy array of all entries."""
        return self.row.to_dense().reshape(-1)

    to_dense = todense = toarray

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.coo_array`` of one dimension."""
        from scipy.sparse import coo_array

        made = self.row.to_scipy().tocoo()
        return coo_array((made.data, (made.col,)), shape=self.shape)

    def to(self, executor: Executor | str) -> SparseVector:
        """Return this vector on another executor."""
        return SparseVector(self.row.to(executor))

    def reshape(self, *shape: Any) -> Any:
        """Return the entries in another shape, as :meth:`wollemi.Csr.reshape` does."""
        return self.row.reshape(*shape)

    def copy(self) -> SparseVector:
        """Return a copy that shares no memory with this vector."""
        return SparseVector(self.row.copy())

    def astype(self, dtype: DTypeLike) -> SparseVector:
        """Return this vector with values of ``dtype``."""
        return SparseVector(self.row.astype(dtype))

    def conj(self) -> Any:
        """Return the complex conjugate."""
        return self._answer(self.row.conj())

    @property
    def real(self) -> SparseVector:
        """The real part."""
        return SparseVector(self.row.real)

    @property
    def imag(self) -> SparseVector:
        """The imaginary part."""
        return SparseVector(self.row.imag)

    @property
    def T(self) -> SparseVector:
        """The vector itself: an array of one dimension is its own transpose."""
        return self

    # ---- arithmetic is that of the row

    def _function(self, name: str) -> SparseVector:
        return SparseVector(self.row._function(name))

    def _ufunc(self, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
        """Return a function of NumPy's of operands of which this is one, or NotImplemented."""
        rows = tuple(i.row if isinstance(i, SparseVector) else i for i in inputs)
        return self._answer(self.row._ufunc(ufunc, rows))

    def _answer(self, made: Any) -> Any:
        """Return the result for the row as one for the vector."""
        if isinstance(made, Matrix):
            return SparseVector(made.tocsr()) if made.shape[0] == 1 else made
        if getattr(made, "ndim", 0) == 2 and made.shape[0] == 1:
            return made.reshape(-1)
        return made

    def _with(self, method: str, other: Any) -> Any:
        operand = other.row if isinstance(other, SparseVector) else other
        made = getattr(self.row, method)(operand)
        return made if getattr(other, "ndim", 0) == 2 else self._answer(made)

    def __mul__(self, other: Any) -> Any:
        return self._with("__mul__", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._with("__truediv__", other)

    def __add__(self, other: Any) -> Any:
        return self._with("__add__", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with("__sub__", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("__rsub__", other)

    def __pow__(self, exponent: Any) -> Any:
        return self._with("__pow__", exponent)

    def __neg__(self) -> Any:
        return self._answer(-self.row)

    def __abs__(self) -> SparseVector:
        return SparseVector(abs(self.row))

    def __eq__(self, other: object) -> Any:
        return self._with("__eq__", other)

    def __ne__(self, other: object) -> Any:
        return self._with("__ne__", other)

    def __lt__(self, other: Any) -> Any:
        return self._with("__lt__", other)

    def __le__(self, other: Any) -> Any:
        return self._with("__le__", other)

    def __gt__(self, other: Any) -> Any:
        return self._with("__gt__", other)

    def __ge__(self, other: Any) -> Any:
        return self._with("__ge__", other)

    __hash__ = object.__hash__

    def multiply(self, other: Any) -> Any:
        """Return the entry-wise product with a vector, an array or a number."""
        return self._with("multiply", other)

    def power(self, n: float, dtype: DTypeLike | None = None) -> SparseVector:
        """Return every entry to the power ``n``."""
        return SparseVector(self.row.power(n, dtype))

    def maximum(self, other: Any) -> Any:
        """Return the larger of each pair of entries."""
        return self._with("maximum", other)

    def minimum(self, other: Any) -> Any:
        """Return the smaller of each pair of entries."""
        return self._with("minimum", other)

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a vector, a number, or with a matrix, a vector."""
        if isinstance(other, SparseVector):
            self._require_length(other.shape[0])
            return self.multiply(other).sum()
        made = self.row @ other
        return made[0] if getattr(made, "ndim", 0) == 1 else self._answer(made)

    def __rmatmul__(self, other: Any) -> Any:
        made = other @ self.row.transpose()
        if getattr(made, "ndim", 0) == 1:
            return made[0]
        if getattr(made, "shape", (0, 0))[1:] == (1,):
            return SparseVector(made.transpose()) if hasattr(made, "nnz") else made[:, 0]
        return made

    def dot(self, other: Any) -> Any:
        """Return ``self @ other``."""
        return self @ other

    def _require_length(self, length: int) -> None:
        if length != self.shape[0]:
            raise ShapeMismatch(f"vectors of lengths {self.shape[0]} and {length} have no product")

    # ---- sums and extremes

    def _reduced(self, method: str, axis: Any, **options: Any) -> Any:
        self._require_axis(axis)
        return getattr(self.row, method)(axis=None, **options)

    def _require_axis(self, axis: Any) -> None:
        if axis not in (None, 0, -1, (0,), (-1,)):
            raise InvalidArgument(f"axis: a vector has axis 0 alone, got {axis!r}")

    def sum(self, axis: int | None = None, dtype: DTypeLike | None = None) -> Any:
        """Return the sum of all entries."""
        return self._reduced("sum", axis, dtype=dtype)

    def mean(self, axis: int | None = None, dtype: DTypeLike | None = None) -> Any:
        """Return the mean of all entries; zeros count."""
        return self._reduced("mean", axis, dtype=dtype)

    def max(self, axis: int | None = None) -> Any:
        """Return the largest entry; positions without one count as zeros."""
        return self._reduced("max", axis)

    def min(self, axis: int | None = None) -> Any:
        """Return the smallest entry; positions without one count as zeros."""
        return self._reduced("min", axis)

    def argmax(self, axis: int | None = None) -> Any:
        """Return the position of the largest entry."""
        return self._reduced("argmax", axis)

    def argmin(self, axis: int | None = None) -> Any:
        """Return the position of the smallest entry."""
        return self._reduced("argmin", axis)

    def count_nonzero(self, axis: int | None = None) -> int:
        """Return how many entries are not zero."""
        self._require_axis(axis)
        return self.row.count_nonzero()

    def nonzero(self) -> tuple[Array]:
        """Return the positions of the entries that are not zero, in a tuple."""
        return (self.row.nonzero()[1],)

    # ---- entries

    def __getitem__(self, key: Any) -> Any:
        """Return an entry (``v[i]``), or a part: ``v[2:5]``, ``v[[4, 0]]``, ``v[mask]``.

        Raises
        ------
        IndexOutOfRange
            If there is no such position.
        """
        if isinstance(key, SparseVector):
            key = key.toarray()
        return self.row[0, key]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        raise TypeError(
            "the length of a sparse vector could be that of its shape or the number of its "
            "entries: write v.shape[0] or v.nnz"
        )
