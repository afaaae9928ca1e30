"""A sparse vector: a row or a column of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..array_protocol import ArrayProtocol
from ..dtypes import is_exact
from ..errors import (
    IndexOutOfRange,
    InvalidIndex,
    ShapeMismatch,
    UnsupportedOperation,
)
from .base import Matrix
from .entry_functions import EntryFunctions
from .vector_entries import row_of
from .vector_forms import VECTOR_FORMATS, VectorForms
from .vector_reductions import VectorReductions

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr


class SparseVector(VectorForms, VectorReductions, EntryFunctions, ArrayProtocol):
    """A sparse one-dimensional array: the type of ``A[i]`` and ``A[:, j]``.

    Parameters
    ----------
    arg : array, sparse array or tuple
        A dense one-dimensional array, a one-dimensional sparse array of SciPy, a sparse vector,
        ``(data, (positions,))``, the triple ``(data, positions, [0, entries])``, or a length
        ``(n,)`` for zeros.
    shape : tuple of int, optional
        The length, ``(n,)``; by default the length of ``arg``, or the largest position plus one. A
        shorter sparse argument is padded with zeros.
    dtype, executor
        As for :class:`Csr`.
    copy : bool, optional
        Whether the arrays of a sparse vector are copied; other arguments are always copied.

    Attributes
    ----------
    row : Csr, shape (1, n)
        The entries as a matrix of one row; use ``v.row`` as the matrix form of the vector.
    format : {"coo", "csr"}
        SciPy's name of the format, which :meth:`tocsr` and :meth:`tocoo` change; both use the same
        arrays.

    Raises
    ------
    InvalidMatrix
        If the argument has two dimensions, or a position is out of range.
    UnsupportedOperand
        If the argument is a number, or is not an array.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> v = wl.Csr(np.array([[1.0, 0.0, 2.0]]))[0]
    >>> v.shape, v.nnz, v.toarray()
    ((3,), 2, array([1., 0., 2.]))
    >>> wl.SparseVector(([5.0], ([1],)), shape=(3,)).toarray()
    array([0., 5., 0.])
    """

    ndim = 1
    shape: Any

    def __init__(
        self,
        arg: Any,
        shape: Any = None,
        *,
        dtype: Any = None,
        executor: Executor | str | None = None,
        copy: bool | None = None,
    ) -> None:
        row = row_of(arg, shape, dtype, executor)
        self._hold(row.copy() if copy else row, getattr(arg, "format", "coo"))

    @classmethod
    def _of(cls, row: Csr, format: str = "coo") -> Self:
        """Return a matrix of one row as a vector."""
        if row.shape[0] != 1:
            raise ShapeMismatch(f"a sparse vector is made of one row, got {row.shape[0]}")
        vector = cls.__new__(cls)
        vector._hold(row, format)
        return vector

    def _hold(self, row: Csr, format: str) -> None:
        self.row = row
        self.shape = (row.shape[1],)
        self.dtype = row.dtype
        self.format = format if format in VECTOR_FORMATS else "coo"

    # ---- facts

    @property
    def executor(self) -> Executor:
        """The executor of the vector."""
        return self.row.executor

    @property
    def device(self) -> Any:
        """The device of the arrays, as named by their library."""
        return self.row.device

    @property
    def nnz(self) -> int:
        """The number of stored entries, including explicit zeros."""
        return self.row.nnz

    size = nnz

    @property
    def data(self) -> Array:
        """The stored values."""
        return self.row.data

    @data.setter
    def data(self, values: Array) -> None:
        """Overwrite the values of the stored positions."""
        self.row.data = values

    @property
    def indices(self) -> Array:
        """The positions of the stored values."""
        return self.row.indices

    @property
    def indptr(self) -> Array:
        """The start and the end of the entries: 0 and their number."""
        return self.row.indptr

    @property
    def coords(self) -> tuple[Array]:
        """The positions of the stored values as a tuple, under SciPy's name."""
        return (self.row.indices,)

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the positions are ascending (equal ones allowed)."""
        return self.row.has_sorted_indices

    @property
    def has_canonical_format(self) -> bool:
        """Whether the positions are strictly ascending."""
        return self.row.has_canonical_format

    def __repr__(self) -> str:
        return f"<SparseVector {self.shape[0]} {self.dtype} nnz={self.nnz} on {self.executor.name}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array, which is as long as a dense vector."""
        made = self.toarray()
        return made if dtype is None else made.astype(dtype, copy=False)

    # ---- changes in place

    def update_values(self, data: Any) -> None:
        """Overwrite the values; the positions stay."""
        self.row.update_values(data)

    def sort_indices(self) -> None:
        """Sort the positions, in place."""
        self.row.sort_indices()

    def sum_duplicates(self) -> None:
        """Sort the positions and sum duplicates, in place."""
        self.row.sum_duplicates()

    def eliminate_zeros(self) -> None:
        """Remove stored zeros, in place."""
        self.row.eliminate_zeros()

    def prune(self) -> None:
        """Do nothing: the arrays have no unused capacity; SciPy has the same method."""

    # ---- arithmetic uses the row

    def _function(self, name: str) -> SparseVector:
        return self._like(self.row._function(name))

    def _ufunc(self, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
        """Apply a ufunc to operands, one of which is this vector, or return NotImplemented."""
        rows = tuple(i.row if isinstance(i, SparseVector) else i for i in inputs)
        return self._answer(self.row._ufunc(ufunc, rows))

    def _answer(self, result: Any) -> Any:
        """Convert the result for the row to the result for the vector."""
        if isinstance(result, Matrix):
            return self._like(result.tocsr()) if result.shape[0] == 1 else result
        if getattr(result, "ndim", 0) == 2 and result.shape[0] == 1:
            return result.reshape(-1)
        return result

    def _with(self, method: str, other: Any) -> Any:
        operand = other.row if isinstance(other, SparseVector) else other
        made = getattr(self.row, method)(operand)
        return made if getattr(other, "ndim", 0) == 2 else self._answer(made)

    def __mul__(self, other: Any) -> Any:
        return self._with("__mul__", other)

    __rmul__ = __mul__

    def __imul__(self, other: Any) -> Any:
        """Multiply the stored values by a number in place; otherwise ``v = v * other``."""
        return NotImplemented if self.row.__imul__(other) is NotImplemented else self

    def __itruediv__(self, other: Any) -> Any:
        """Divide the stored values by a number in place; otherwise ``v = v / other``."""
        return NotImplemented if self.row.__itruediv__(other) is NotImplemented else self

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
        return self._like(abs(self.row))

    def __round__(self, ndigits: int = 0) -> SparseVector:
        return self._like(round(self.row, ndigits))

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
        return self._like(self.row.power(n, dtype))

    def maximum(self, other: Any) -> Any:
        """Return the larger of each pair of entries."""
        return self._with("maximum", other)

    def minimum(self, other: Any) -> Any:
        """Return the smaller of each pair of entries."""
        return self._with("minimum", other)

    def __matmul__(self, other: Any) -> Any:
        """Return the product: a number for a vector, and a vector for a matrix."""
        if isinstance(other, SparseVector):
            self._require_length(other.shape[0])
            terms = self.multiply(other)
            # Integers and booleans keep their dtype, as in NumPy's products.
            return terms.sum(dtype=terms.dtype if is_exact(terms.dtype) else None)
        made = self.row @ other
        return made[0] if getattr(made, "ndim", 0) == 1 else self._answer(made)

    def __rmatmul__(self, other: Any) -> Any:
        result = other @ self.row.transpose()
        if getattr(result, "ndim", 0) == 1:
            return result[0]
        if getattr(result, "shape", (0, 0))[1:] == (1,):
            return self._like(result.transpose()) if hasattr(result, "nnz") else result[:, 0]
        return result

    def dot(self, other: Any) -> Any:
        """Return ``self @ other``."""
        return self @ other

    def _require_length(self, length: int) -> None:
        if length != self.shape[0]:
            raise ShapeMismatch(f"vectors of lengths {self.shape[0]} and {length} have no product")

    # ---- entries

    def __getitem__(self, key: Any) -> Any:
        """Return an entry (``v[i]``), or a part: ``v[2:5]``, ``v[[4, 0]]``, ``v[mask]``.

        None adds an axis: ``v[None]`` is a matrix of one row, ``v[:, None]`` a matrix of one
        column.

        Raises
        ------
        IndexOutOfRange
            If a position does not exist.
        InvalidIndex
            If the key has more than one axis, or if the result would have three dimensions.
        """
        part, axes = _part_and_axes(key)
        if axes is None:
            found = self.row[0, part]
            return self._like(found.row) if isinstance(found, SparseVector) else found
        if isinstance(part, (int, np.integer)):
            length = self.shape[0]
            if not -length <= part < length:
                raise IndexOutOfRange(f"index ({part}) out of range: the length is {length}")
            return self[part % length : part % length + 1]
        chosen = self[part]
        return chosen.reshape(*axes(chosen.shape[0]))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Refuse ``v[i] = value``, which would add positions.

        Raises
        ------
        InvalidIndex
            If the key has more than one axis.
        UnsupportedOperation
            Otherwise always; the message names the replacement.
        """
        _part_and_axes(key)
        raise UnsupportedOperation(
            "v[...] = value is refused: each assignment would make new positions. Collect (data, "
            "(positions,)) and make the vector once; v.update_values(data) sets stored values, and "
            "v + wl.SparseVector(changes) adds entries"
        )

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        raise TypeError(
            "the length of a sparse vector could be that of its shape or the number of its "
            "entries: write v.shape[0] or v.nnz"
        )


def _part_and_axes(key: Any) -> tuple[Any, Callable[[int], tuple[int, int]] | None]:
    """Return the key of the axis, and the function for the shape if None adds an axis.

    Raises
    ------
    InvalidIndex
        If the key has more than one axis, or adds more than one.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    named = [part for part in parts if part is not None and part is not Ellipsis]
    ellipses = sum(part is Ellipsis for part in parts)
    if len(named) > 1 or ellipses > 1:
        raise InvalidIndex(
            f"too many indices: a sparse vector has one dimension, got {len(named)} indices and "
            f"{ellipses} ellipses"
        )
    part = named[0] if named else slice(None)
    if isinstance(part, SparseVector):
        part = part.toarray()
    added = sum(one is None for one in parts)
    if added == 0:
        return part, None
    if added > 1:
        raise InvalidIndex(
            "None in an index adds a dimension: the result would have three, and sparse arrays "
            "have two at most"
        )
    if parts[0] is None:
        return part, lambda length: (1, length)
    return part, lambda length: (length, 1)
