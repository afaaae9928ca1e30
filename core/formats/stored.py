"""Compressed sparse rows with values stored in a lower precision than the computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..distinct import distinct
from ..dtypes import (
    Casting,
    is_complex,
    may_store,
    name_of,
    requested_dtype,
    require_cast,
    storage_dtype,
)
from ..errors import InvalidArgument, UnsupportedOperation
from ..small_values import as_dtype, for_zero_tests, not_flushed
from ..store import Key
from .base import Matrix
from .compressed import CompressedRows
from .csr import Csr

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from ..linop import LinOp


class StoredCsr(CompressedRows):
    """A matrix of compressed sparse rows with values stored in a lower precision.

    ``A.stored("float32")`` makes it. Products read the stored values, convert each in registers,
    and compute in :attr:`dtype`, which is the dtype of vectors, results and solvers. They read less
    memory than products of a :class:`Csr` of that dtype. The matrix consists of the rounded values.

    Attributes
    ----------
    dtype : numpy.dtype
        The dtype of products.
    storage_dtype : numpy.dtype
        The dtype of the stored values.
    data : array of storage_dtype, shape (nnz,)
        Values, row by row.
    indices : array of int32 or int64, shape (nnz,)
        Column indices.
    indptr : array of the same dtype, shape (m + 1,)
        Row ``i`` consists of the entries ``indptr[i]:indptr[i + 1]``.

    Notes
    -----
    Products with vectors and dense matrices, and :meth:`diagonal`, read the stored values. All
    other methods (sums and products of matrices, scaling, slices, conversions, ``to_scipy``) use
    ``A.tocsr()``, the same matrix with values of ``A.dtype``, and their results have this dtype. It
    is made at each call: for repeated use, keep it.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 0.1], [0.1, 3.0]])).stored("float32")
    >>> A.dtype, A.storage_dtype
    (dtype('float64'), dtype('float32'))
    >>> A @ np.array([0.0, 1.0]) == np.array([np.float32(0.1), 3.0])
    array([ True,  True])
    """

    format = "stored"

    #: The matrix of which this is the transpose, if it was made as ``A.T``.
    _transpose_of: StoredCsr | None

    def _reset(self) -> None:
        super()._reset()
        self.__dict__["_transpose_of"] = None

    def _extra(self) -> dict[str, Any]:
        return {**super()._extra(), "dtype": self.dtype}

    def __repr__(self) -> str:
        return (
            super()
            .__repr__()
            .replace(f" {self.dtype}/", f" {self.dtype} stored in {self.storage_dtype}/")
        )

    def _require_plans(self, product: str, dtype: DTypeLike | None) -> None:
        computed = self.dtype if dtype is None else requested_dtype(dtype)
        if product != "spmv" or computed != self.dtype:
            raise UnsupportedOperation(
                f"a StoredCsr has plans for spmv in {self.dtype} alone: A.tocsr() has plans of "
                "other products"
            )

    # ---- values

    @property
    def _values_version(self) -> int:
        source = self._transpose_of
        return self._changes if source is None else self._changes + source._values_version

    def _follow_writes(self) -> None:
        source = self._transpose_of
        if source is None:
            super()._follow_writes()
        elif not self._is_representative:
            source._follow_writes()

    def _with_data(self, data: Array) -> Any:
        """Return a matrix with this pattern; a Csr unless the values have storage dtype."""
        return super()._with_data(data) if data.dtype != self.dtype else csr_of(self, data)

    def _as_stored(self, values: Array) -> Array:
        computed = as_dtype(self.executor, values, self.dtype)
        result = rounded(self.executor, computed, self.storage_dtype)
        refuse_lost_rows(self, computed, result)
        return result

    def update_values(self, data: Any) -> None:
        """Overwrite the values, rounded to :attr:`storage_dtype`; pattern and plan stay.

        Parameters
        ----------
        data : array, of the shape of ``self.data``
            The new values in the order of ``self.data``, of any precision.

        Raises
        ------
        InvalidMatrix
            If the shape differs; no values are changed then.
        InvalidArgument
            If a value is too large for the storage dtype, or if a nonzero row becomes 0; no values
            are changed then.
        """
        if self._transpose_of is not None:
            raise InvalidArgument(
                "this is the transpose of a StoredCsr and follows its values: update the values of "
                "A.T, which is that matrix"
            )
        super().update_values(data)

    def stored(self, dtype: DTypeLike) -> Csr | StoredCsr:
        """Return this matrix with values stored in another dtype; itself if they already are.

        A higher storage precision does not restore digits that were rounded away.
        """
        wanted = storage_dtype(dtype, self.dtype)
        return self if wanted == self.storage_dtype else self.tocsr().stored(wanted)

    def astype(self, dtype: DTypeLike, copy: bool = False, *, casting: Casting = "unsafe") -> Any:
        """Return this matrix computing in another dtype; itself if it does already.

        The values stay in their storage dtype if that is lower than ``dtype``. Otherwise the result
        is a :class:`Csr` of ``dtype``.
        """
        dtype = requested_dtype(dtype)
        require_cast(self.dtype, dtype, casting)
        if dtype == self.dtype:
            return self.copy() if copy else self
        if may_store(self.storage_dtype, dtype):
            made = self._from_arrays(self.executor, self.shape, *self._native_arrays(), dtype=dtype)
            made._pattern = self._pattern
            return made.copy() if copy else self._share_values(made)
        return self.tocsr().astype(dtype)

    def permute(self, p: Any = None, q: Any = None) -> StoredCsr:
        """Return this matrix with permuted rows and columns; see ``Csr.permute``."""
        result = self.tocsr().permute(p, q).stored(self.storage_dtype)
        assert isinstance(result, StoredCsr)
        return result

    def __mul__(self, factor: Any) -> Any:
        """Return a :class:`Csr`, because a stored value times a number has more digits."""
        return self.tocsr() * factor

    __rmul__ = __mul__

    def _pattern_alone(self) -> Csr:
        """Return a Csr for operations that read only the pattern."""
        return csr_of(self, self.data)

    def _main_diagonal(self) -> Array:
        """Return the diagonal in :attr:`dtype`, without converting the other values."""
        found = self._pattern.get(_DIAGONAL, lambda: _diagonal_entries(self))
        data = as_dtype(self.executor, self.data[found.positions], self.dtype)
        narrow = Csr._from_arrays(self.executor, self.shape, data, found.indices, found.indptr)
        return narrow._main_diagonal()

    # ---- the transpose

    @property
    def T(self) -> StoredCsr:
        """The transpose, in the same format; made once and updated with this matrix's values."""
        if self._transpose_of is not None:
            return self._transpose_of
        result = self._copies.get(_TRANSPOSE, lambda: Transpose(self)).rows._twin()
        result.__dict__["_transpose_of"] = self
        return result

    @property
    def H(self) -> StoredCsr:
        """The conjugate transpose."""
        return self.T.conj()

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` with values of :attr:`dtype`."""
        return self.tocsr().to_scipy()


class DiagonalEntries(NamedTuple):
    """The entries on the diagonal; they depend only on the pattern.

    Attributes
    ----------
    positions : array of int64, shape (count,)
        Their positions in ``A.data``, ascending.
    indices : array of int, shape (count,)
        Their columns.
    indptr : array of int, shape (m + 1,)
        Row ``i`` has the entries ``positions[indptr[i]:indptr[i + 1]]``.
    """

    positions: Array
    indices: Array
    indptr: Array


def _diagonal_entries(A: StoredCsr) -> DiagonalEntries:
    """Return the positions of the diagonal, found on the host once per pattern."""
    executor, dtype = A.executor, A.indices.dtype
    indptr, indices = (np.asarray(executor.to_host(a)) for a in (A.indptr, A.indices))
    rows = np.repeat(np.arange(A.shape[0], dtype=dtype), np.diff(indptr))
    positions = np.flatnonzero(indices == rows)
    begins = np.searchsorted(positions, indptr).astype(dtype)
    return DiagonalEntries(
        *(executor.from_host(a) for a in (positions, indices[positions], begins))
    )


_DIAGONAL: Key[DiagonalEntries] = Key("entries of the diagonal")


class Transpose:
    """The transpose of a StoredCsr, which is updated with its values.

    Attributes
    ----------
    rows : StoredCsr
        The transpose; ``rows.data`` is ``A.data[order]``.
    order : array of int, shape (nnz,)
        The position of each of its entries in ``A``.
    """

    def __init__(self, A: StoredCsr) -> None:
        pattern, self.order = csr_of(A, A.data).transposed_pattern()
        self.rows = StoredCsr._from_arrays(
            A.executor, pattern.shape, A.data[self.order], pattern.indices, pattern.indptr,
            dtype=A.dtype,
        )  # fmt: skip
        self.rows._pattern = pattern._pattern

    def update_values(self, A: StoredCsr) -> None:
        """Copy the values of ``A``."""
        self.rows.executor.copy_into(self.rows.data, A.data[self.order])
        self.rows._tell_sharers()


_TRANSPOSE: Key[Transpose] = Key("transpose of a StoredCsr")


def csr_of(A: CompressedRows, data: Array) -> Csr:
    """Return a Csr with the pattern of ``A`` and other values."""
    result = Csr._from_arrays(A.executor, A.shape, data, A.indices, A.indptr, _lean=A.is_lean)
    result._pattern = A._pattern
    return result


def widened(A: StoredCsr) -> Csr:
    """Return the same matrix with values of the dtype in which it computes."""
    return csr_of(A, as_dtype(A.executor, A.data, A.dtype, copy=True))


def stored(A: Csr, dtype: DTypeLike) -> Csr | StoredCsr:
    """Return a matrix with its values stored in ``dtype``; itself if it already has it."""
    wanted = storage_dtype(dtype, A.dtype)
    if wanted == A.dtype:
        return A
    data = rounded(A.executor, A.data, wanted)
    refuse_lost_rows(A, A.data, data)
    made = StoredCsr._from_arrays(
        A.executor, A.shape, data, A.indices, A.indptr, dtype=A.dtype, _lean=A.is_lean
    )
    made._pattern = A._pattern
    return made._following(A)


def computing_in(A: Csr, dtype: np.dtype[Any]) -> StoredCsr:
    """Return a matrix that computes in a wider dtype and shares the values of ``A``.

    Its products keep no copies of the entries.
    """
    made = StoredCsr._from_arrays(A.executor, A.shape, *A._native_arrays(), dtype=dtype, _lean=True)
    made._pattern = A._pattern
    return A._share_values(made)


def rounded(executor: Executor, values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values rounded to ``dtype``.

    Raises
    ------
    InvalidArgument
        If a finite value becomes infinite, or if all values are so small that they lose digits or
        become 0. The message gives the magnitude of the values.
    """
    with np.errstate(over="ignore", under="ignore"):
        result = as_dtype(executor, values, dtype, copy=True)
    _refuse_lost(executor, values, result, dtype, _REMEDY)
    return result


def lowered(A: LinOp, dtype: np.dtype[Any]) -> LinOp:
    """Return an operator computing in ``dtype``.

    Raises
    ------
    InvalidArgument
        If it is a matrix and a value becomes infinite, or all values are so small that they lose
        digits or become 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        result = A.astype(dtype)
    if isinstance(A, Matrix) and result.dtype.itemsize < A.dtype.itemsize and A.dtype.kind in "fc":
        assert isinstance(result, Matrix)
        _refuse_lost(A.executor, A.data, result.data, dtype, _LOWERED)
    return result


def _refuse_lost(
    executor: Executor, values: Array, converted: Array, dtype: np.dtype[Any], remedy: str
) -> None:
    xp, checked = executor.xp, _readable(converted)
    largest = _largest_finite(executor, values)
    lost = int((~xp.isfinite(checked) & xp.isfinite(values)).sum())
    if lost:
        raise InvalidArgument(
            f"{lost} of {values.size} values are too large for {name_of(dtype)}; the largest has "
            f"the size {largest:.3g}. {remedy}"
        )
    if 0 < largest < _least(dtype):
        raise InvalidArgument(
            f"all values are too small for {name_of(dtype)}, which has all digits from "
            f"{_least(dtype):.3g} on; the largest has the size {largest:.3g}. {remedy}"
        )


_REMEDY = (
    "Store them in a dtype of a wider range (bfloat16 has that of float32), or scale the matrix"
)
_LOWERED = "Multiply the matrix and b by one power of two, or compute in a dtype of a wider range"


def _readable(stored: Array) -> Array:
    """Return stored values in a dtype that array functions of all executors support."""
    return stored if is_complex(stored.dtype) else stored.astype(np.float32)


def _largest_finite(executor: Executor, values: Array) -> float:
    if not values.size:
        return 0.0
    xp = executor.xp
    return float(abs(not_flushed(executor, xp.where(xp.isfinite(values), values, 0))).max())


def _least(dtype: np.dtype[Any]) -> float:
    """Return the smallest number that a storage dtype represents with full precision."""
    return 2.0**-14 if name_of(dtype) == "float16" else float(np.finfo(np.float32).tiny)


def refuse_lost_rows(A: CompressedRows, values: Array, stored: Array) -> None:
    """Raise an error if rounding has changed all nonzero values of a row to 0.

    Raises
    ------
    InvalidArgument
        If it has, because the stored matrix would be singular; the message names the first such
        row.
    """
    executor = A.executor
    lost = (for_zero_tests(executor, _readable(stored)) == 0) & (
        for_zero_tests(executor, values) != 0
    )
    if not int(lost.sum()):
        return
    places = np.flatnonzero(executor.to_host(lost))
    indptr = np.asarray(executor.to_host(A.indptr))
    rows = distinct(np.searchsorted(indptr, places, side="right") - 1)
    kept = np.concatenate([[0], np.cumsum(np.asarray(executor.to_host(_readable(stored))) != 0)])
    empty = rows[kept[indptr[rows + 1]] == kept[indptr[rows]]]
    if empty.size:
        row = int(empty[0])
        largest = _largest_finite(executor, values[int(indptr[row]) : int(indptr[row + 1])])
        raise InvalidArgument(
            f"row {row} becomes 0 in {name_of(np.dtype(stored.dtype))} (and {empty.size - 1} other "
            f"rows): its largest value has the size {largest:.3g}. {_REMEDY}, or its rows"
        )
