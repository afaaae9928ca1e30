"""Patterns with one interval of columns in each row."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike

from ..assembled import Assembled
from ..dtypes import index_dtype, requested_dtype, stored_dtype
from ..errors import InvalidMatrix, ShapeMismatch, UnsupportedOperation
from ..executor import brought_together
from ..linop import FACTS
from ..operands import to_host
from ..operations import masks as operations
from ..registry import executor as executor_by_name
from ..store import Key, PatternStore
from .csr import Csr
from .given import checked_shape, homeless, place
from .planned import PlannedMatrix
from .validate import equal_lengths, integers

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr

_TRANSPOSED: Key[Mask] = Key("transposed mask")
_MOVED: Key[Mask] = Key("mask on another executor")


class Mask(Assembled):
    """A matrix of ones in one interval of columns per row; it stores only the interval ends.

    The functions of :mod:`wollemi.masks` make common masks. :func:`wollemi.fusedmm` with a mask is
    attention, and ``mask @ x`` sums rows of ``x``; neither creates an array of entries.

    Parameters
    ----------
    first, last : array of int, shape (m,)
        Row ``i`` has the columns ``first[i], ..., last[i] - 1``; it is empty if ``last[i]`` is not
        above ``first[i]``. Neither array may decrease from a row to the next, so that each column
        has one interval of rows.
    columns : int
        The number of columns.
    dtype, executor
        As for :class:`wollemi.Csr`.

    Raises
    ------
    InvalidMatrix
        If an end decreases, or is outside of ``0..columns``.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> mask = wl.masks.Mask([0, 0, 1], [1, 2, 3], 3)
    >>> mask.to_dense()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [0., 1., 1.]], dtype=float32)
    >>> mask @ np.array([1.0, 2.0, 4.0])
    array([1., 3., 6.])
    """

    first: Array
    last: Array
    nnz: int

    _has_entries = True
    _is_light = True
    _fixed_attributes: ClassVar[dict[str, str]] = FACTS | {
        "first": "make a new wl.masks.Mask(first, last, columns)",
        "last": "make a new wl.masks.Mask(first, last, columns)",
    }

    def __init__(
        self,
        first: Any,
        last: Any,
        columns: int,
        *,
        dtype: DTypeLike = np.float32,
        executor: Executor | str | None = None,
    ) -> None:
        where = place(executor, first)
        begin, end = integers(to_host(first), "first"), integers(to_host(last), "last")
        equal_lengths(first=begin, last=end)
        shape = checked_shape((begin.size, columns))
        for name, ends_of in (("first", begin), ("last", end)):
            _check_ends(name, ends_of, shape[1])
        self._take(where, shape, requested_dtype(dtype, stored_dtype), begin, end)
        self._follows = homeless(executor, first)

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names the replacement for an attribute of other matrices."""
            message = f"'Mask' object has no attribute {name!r}"
            if name in Csr.arrays or (not name.startswith("_") and hasattr(Csr, name)):
                message += f"; it works on entries, which A.tocsr().{name} has"
            raise AttributeError(message, name=name, obj=self)

    def _take(
        self,
        where: Executor,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        begin: np.ndarray[Any, Any],
        end: np.ndarray[Any, Any],
    ) -> None:
        """Initialize the mask from valid ends on the host."""
        index = index_dtype(max(shape), begin.dtype, end.dtype)
        begin, end = begin.astype(index), np.maximum(begin, end).astype(index)
        self.shape, self.dtype, self.executor = shape, dtype, where
        self.first, self.last = where.from_host(begin), where.from_host(end)
        self.nnz = int((end - begin).sum(dtype=np.int64))
        self._pattern = PatternStore()

    @classmethod
    def _from_ends(
        cls,
        where: Executor,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        begin: np.ndarray[Any, Any],
        end: np.ndarray[Any, Any],
    ) -> Self:
        """Make a mask from valid ends on the host."""
        result = cls.__new__(cls)
        result._take(where, shape, dtype, begin, end)
        return result

    def _following(self, *made_of: Mask) -> Self:
        """Return this mask; it has no fixed executor if none of ``made_of`` has one."""
        self._follows = all(mask._follows for mask in made_of)
        return self

    def _ends(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return ``first`` and ``last`` on the host."""
        begin, end = (np.asarray(self.executor.to_host(x)) for x in (self.first, self.last))
        return begin, end

    # ---- facts

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """The dtype of ``first`` and ``last``."""
        return np.dtype(self.first.dtype)

    @property
    def nbytes(self) -> int:
        """The size of the mask in bytes."""
        return int(self.first.nbytes + self.last.nbytes)

    @cached_property
    def indptr(self) -> Array:
        """The row pointers that a list of all entries would have: int64, shape (m + 1,)."""
        begin, end = self._ends()
        starts = np.zeros(begin.size + 1, np.int64)
        np.cumsum(end - begin, dtype=np.int64, out=starts[1:])
        return self.executor.from_host(starts)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"<Mask {rows}x{columns} {self.dtype}/{self.index_dtype} nnz={self.nnz} "
            f"on {self.executor.name}>"
        )

    # derived objects

    def _entries(self) -> Csr:
        begin, end = self._ends()
        lengths = end - begin
        index = index_dtype(self.nnz, begin.dtype)
        starts = np.zeros(begin.size + 1, index)
        np.cumsum(lengths, dtype=index, out=starts[1:])
        indices = np.arange(self.nnz, dtype=index)
        indices -= np.repeat(starts[:-1] - begin, lengths)
        arrays = (np.ones(self.nnz, self.dtype), indices, starts)
        native = map(self.executor.from_host, arrays)
        return Csr._from_arrays(self.executor, self.shape, *native)._following(self)

    def to_dense(self) -> np.ndarray[Any, Any]:
        """Return all entries as a NumPy array of zeros and ones."""
        begin, end = self._ends()
        column = np.arange(self.shape[1])
        there = (begin[:, None] <= column) & (column < end[:, None])
        return there.astype(self.dtype)

    def __and__(self, other: Any) -> Mask:
        """Return the mask of the positions in both masks."""
        if not isinstance(other, Mask):
            return NotImplemented
        if other.shape != self.shape:
            raise ShapeMismatch(f"&: masks of shapes {self.shape} and {other.shape}")
        mine, its = brought_together("&", self, other)
        (begin, end), (its_begin, its_end) = mine._ends(), its._ends()
        both = (np.maximum(begin, its_begin), np.minimum(end, its_end))
        dtype = np.promote_types(mine.dtype, its.dtype)
        return self._from_ends(mine.executor, self.shape, dtype, *both)._following(mine, its)

    def __or__(self, other: Any) -> Any:
        """Return the union of the positions, as a :class:`~.mask_union.MaskUnion`."""
        if not isinstance(other, Mask):
            return NotImplemented
        from .mask_union import united

        return united(self, other)

    @property
    def T(self) -> Mask:
        """The transpose, which is a mask too; it is made once."""
        return self._pattern.get(_TRANSPOSED, self._transposed).astype(self.dtype)

    def _transposed(self) -> Mask:
        # Since the ends are ascending, column j belongs to the rows from the first row that ends
        # behind j to the last row that begins at or before j.
        begin, end = self._ends()
        column = np.arange(self.shape[1], dtype=begin.dtype)
        rows = (np.searchsorted(ends, column, side="right") for ends in (end, begin))
        index = index_dtype(max(self.shape), begin.dtype)
        turned = (x.astype(index) for x in rows)
        made = self._from_ends(self.executor, self.shape[::-1], self.dtype, *turned)
        return made._following(self)

    @property
    def H(self) -> Mask:
        """The transpose."""
        return self.T

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.sums, self.first, self.last, x, y, alpha, beta)

    def to(self, executor: Executor | str) -> Mask:
        """Return this mask on another executor; itself if it is there already."""
        target = executor_by_name(executor)
        if target == self.executor:
            return self
        return self._from_ends(target, self.shape, self.dtype, *self._ends())

    def beside(self, place: Executor | None) -> Mask:
        """Return this mask on an executor if it is not fixed to one; made once for each."""
        if place is None or not self._follows or place == self.executor:
            return self
        return self._pattern.get(_MOVED.of_size(place.name), lambda: self.to(place))

    def astype(self, dtype: DTypeLike) -> Mask:
        """Return this mask with ones of ``dtype``; itself if they already have it.

        Both masks share their memory and the data prepared for products.
        """
        asked = requested_dtype(dtype, stored_dtype)
        if asked == self.dtype:
            return self
        result = type(self).__new__(type(self))
        result.__dict__.update(self.__dict__, dtype=asked)
        return result

    def plan_for(self, product: str = "", *options: object, **named: object) -> NoReturn:
        """Raise an error: masks have no plans.

        Parameters
        ----------
        product : str
            As for :meth:`Csr.plan_for`; all values are refused.

        Raises
        ------
        UnsupportedOperation
            Always.
        """
        raise UnsupportedOperation(
            "a mask has no plan: there is nothing to look for in its entries; "
            "A.tocsr().plan_for(...) is that of the same pattern with entries"
        )

    def __getstate__(self) -> dict[str, Any]:
        begin, end = (np.asarray(self.executor.to_host(x)) for x in (self.first, self.last))
        return {
            "first": begin,
            "last": end,
            "columns": self.shape[1],
            "dtype": self.dtype,
            "executor": self.executor.name,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _check_ends(name: str, ends: np.ndarray[Any, Any], columns: int) -> None:
    """Raise InvalidMatrix unless ends are column numbers and never decrease."""
    if ends.size and not (ends[0] >= 0 and ends.max() <= columns):
        raise InvalidMatrix(f"{name}: expected columns from 0 to {columns}")
    falls = np.flatnonzero(ends[1:] < ends[:-1])
    if falls.size:
        row = int(falls[0]) + 1
        raise InvalidMatrix(
            f"{name}: falls from {ends[row - 1]} to {ends[row]} at row {row}; a pattern other than "
            "intervals that move on from row to row needs stored entries, a wl.Csr"
        )


def refuse_without_entries(A: Any) -> None:
    """Raise an error if a method for stored entries gets a matrix that stores none.

    Raises
    ------
    UnsupportedOperation
        If it does; the message names the replacement of the method.
    """
    if isinstance(A, PlannedMatrix):
        A.refuse("this product")
    if isinstance(A, Mask):
        raise UnsupportedOperation(
            f"a mask stores no entries, and this works on entries: A.tocsr() has them, {A.nnz} "
            "here. Without entries there are A @ x and wl.fusedmm(A, ...)"
        )
