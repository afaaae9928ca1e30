"""Compressed sparse rows, to which all formats can be converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ..dtypes import (
    COMPUTED,
    Casting,
    is_complex,
    is_exact,
    is_narrow,
    stored_or_held_dtype,
)
from ..long_sums import LONG, has_long_row, in_double_if_long, rounded_to
from ..operands import as_batch, to_host
from ..operations import matrix as operations
from ..operations import products, structure
from ..store import Key
from . import device_arrays, validate
from .base import Matrix
from .batchable import Batchable
from .compressed import CompressedRows
from .constructed import Constructed
from .given import check_axes, checked_shape, is_of_scipy, owned_array, place, require_shape
from .triangular import SolvesTriangles

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from ..linop import LinOp
    from ..operation import Operation
    from .csc import Csc
    from .stored import StoredCsr

C = TypeVar("C", bound=Matrix)

_TRANSPOSED: Key[tuple[Csr, Array]] = Key("transposed")
_SORTED: Key[tuple[Csr, Array]] = Key("sorted rows")


class Csr(SolvesTriangles, CompressedRows, Constructed, metaclass=Batchable):
    """A sparse matrix in the compressed sparse row format.

    Parameters
    ----------
    arg : matrix or tuple
        A matrix of SciPy, CuPy or PyTorch; any wollemi matrix; a dense array; the triple
        ``(data, indices, indptr)``; or ``(data, (row, col))``, with duplicates summed. Device
        arrays are checked on the device.
    shape : tuple of int, optional
        Rows and columns; required with a tuple, unless the largest index determines them.
    dtype : dtype, optional
        Dtype of the values; by default the dtype of ``arg``. Matrices can store booleans and
        integers (uint64 becomes float64); solvers then compute in float64.
    executor : Executor or str, optional
        Executor of the matrix; by default the executor of ``arg``, or the default executor for host
        data.
    copy : bool, optional
        Whether the matrix must copy all arrays. By default it copies the arrays of a tuple and of
        another library's matrix; it shares the arrays of a wollemi matrix, so that new values of
        one are new values of both. ``copy=False`` saves memory and time: compressed rows are used
        in place if their dtype, order and device allow it. Do not change these arrays while the
        matrix exists; updates of its values overwrite them.

    Attributes
    ----------
    data : array, shape (nnz,)
        Values, row by row, including explicit zeros.
    indices : array of int32 or int64, shape (nnz,)
        Column indices.
    indptr : array of the same dtype, shape (m + 1,)
        Row ``i`` consists of the entries ``indptr[i]:indptr[i + 1]``.

    Raises
    ------
    InvalidMatrix
        If the arrays do not describe a valid matrix; the message names the position.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(([4.0, 1.0, 3.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    >>> A @ np.array([1.0, 2.0])
    array([6., 6.])
    """

    format = "csr"

    @staticmethod
    def _of_arrays(arg: Any, shape: Any, executor: Any, copy: bool) -> Csr | None:
        values = validate.stored_values
        return compressed_of(Csr, arg, shape, executor, copy, rows_first=True, values=values)

    @staticmethod
    def _held_dtype(dtype: DTypeLike) -> np.dtype[Any]:
        """Return the dtype of this format for a requested one: 16-bit and exact ones stay."""
        return stored_or_held_dtype(dtype)

    def astype(self, dtype: DTypeLike, copy: bool = False, *, casting: Casting = "unsafe") -> Self:
        """Return this matrix with values of ``dtype``; itself if they already have it.

        See :meth:`Matrix.astype`. Duplicates of boolean matrices are merged before the conversion.
        """
        once = self.without_duplicates() if self.dtype == np.bool_ else self
        if once is not self and dtype != np.bool_:
            return once.astype(dtype, casting=casting)  # type: ignore[return-value]
        return super().astype(dtype, copy, casting=casting)

    def transposed_pattern(self) -> tuple[Csr, Array]:
        """Return the transpose of the pattern, and the previous position of each entry.

        The transpose is made once and kept; its values are zeros. The values of the transposed
        matrix are ``A.data[order]``.
        """
        return self._pattern.get(_TRANSPOSED, self._transpose_pattern)

    def _transpose_pattern(self) -> tuple[Csr, Array]:
        pattern = without_values(self)
        arrays = TransposedArrays(*self.executor.run(structure.csr_transpose, pattern))
        return arrays.matrix(self.executor, self.shape[::-1]), arrays.order

    def _transposed_with_values(self) -> tuple[Csr, Array, Array | None]:
        """Return the transposed pattern and the order, and the values if all are made now."""
        if _TRANSPOSED in self._pattern:
            return *self.transposed_pattern(), None
        arrays = transposed_arrays(self)
        zeros = self.executor.zeros((self.nnz,), np.float32)
        pattern = arrays._replace(data=zeros).matrix(self.executor, self.shape[::-1])
        return *self._pattern.get(_TRANSPOSED, lambda: (pattern, arrays.order)), arrays.data

    def _multiply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if y.shape[1] < 2:
            self._apply(x, y, alpha, beta)
            return
        # Several vectors form a dense matrix: spmm chooses its kernel by their number.
        values, B, C = (as_batch(array) for array in (self.data, x, y))
        self.executor.run(products.csr_spmm, self, values, B, C, alpha, beta, "auto")

    @property
    def T(self) -> Csc:
        """The transpose, which shares this matrix's arrays."""
        from .csc import Csc

        transposed = Csc._from_arrays(
            self.executor, self.shape[::-1], self.data, self.indices, self.indptr
        )
        transposed._transpose_of = self  # stores the rows of the transpose
        return self._share_values(transposed)

    @property
    def H(self) -> Csc:
        """The conjugate transpose; it shares this matrix's arrays if they are real."""
        return self.T.conj() if is_complex(self.dtype) else self.T

    def transpose(self, axes: tuple[int, int] | None = None, copy: bool = False) -> Csr:
        """Return the transpose as a new Csr with sorted rows, which shares no memory."""
        check_axes(axes)
        return transposed_arrays(self).matrix(self.executor, self.shape[::-1])

    def sort(self) -> Self:
        """Return this matrix with sorted rows; itself if they are sorted.

        The order is computed once and stored with the pattern, unless the matrix is lean.
        """
        if self.has_sorted_indices:
            return self
        if self._lean:
            indices, data, _ = rearranged(self, structure.csr_sort)
            return self._from_arrays(self.executor, self.shape, data, indices, self.indptr)
        pattern, order = self._pattern.get(_SORTED, self._sorted_pattern)
        data = self.data[order]
        made = self._from_arrays(self.executor, self.shape, data, pattern.indices, self.indptr)
        made._pattern = pattern._pattern
        return made

    def _sorted_pattern(self) -> tuple[Csr, Array]:
        """Return the sorted pattern with zeros as values, and the order of its entries."""
        pattern = without_values(self)
        indices, data, order = self.executor.run(structure.csr_sort, pattern)
        return pattern._from_arrays(self.executor, self.shape, data, indices, self.indptr), order

    def _made_double(self, dtype: np.dtype[Any]) -> LinOp:
        if is_exact(self.dtype):
            return self.astype(dtype)
        from .stored import computing_in

        return computing_in(self, dtype)

    def stored(self, dtype: DTypeLike) -> Csr | StoredCsr:
        """Return this matrix with its values stored in a lower precision; itself if they are.

        Products with vectors read the stored values, convert each in registers, and compute in
        ``A.dtype``. Vectors, results and solvers have that dtype; the matrix consists of the
        rounded values. If products are limited by memory bandwidth, their time decreases in
        proportion to the bytes read.

        Parameters
        ----------
        dtype : dtype
            ``"float32"``, ``"float16"`` or ``"bfloat16"`` for a float64 matrix; ``"float16"`` or
            ``"bfloat16"`` for a float32 one; ``"complex64"`` for a complex128 one.

        Returns
        -------
        StoredCsr
            A matrix that shares the pattern of this one. It has its own values: updates of this
            matrix do not change it.

        Raises
        ------
        UnsupportedDtype
            If no products exist for values that are stored in ``dtype``.
        InvalidArgument
            If a value is too large for ``dtype`` (beyond 65504 in float16). If all values are too
            small for full precision (below 6.1e-5 in float16, 1.2e-38 in the others), or if a
            nonzero row becomes 0. A small value next to larger ones of its row may become 0 (below
            3e-8 in float16).

        Examples
        --------
        A solver of the stored matrix solves the system with the rounded values. Iterative
        refinement around it solves the system with this matrix:

        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[4.0, 0.1], [0.1, 3.0]]))
        >>> S = A.stored("float32")
        >>> A.nbytes, S.nbytes
        (60, 44)
        >>> inner = wl.solvers.Cg(S, rtol=1e-6)
        >>> wl.solvers.Ir(A, inner=inner, rtol=1e-14).solve(np.ones(2)).converged
        True
        """
        from .stored import stored

        return stored(self, dtype)

    def sum_duplicates(self) -> None:
        """Sort the columns of each row and sum duplicates, in place; zeros stay.

        Plans are made again. Matrices that shared arrays with this one, such as an earlier ``A.T``,
        keep the old entries, and are no longer updated with its values.

        Examples
        --------
        >>> import wollemi as wl
        >>> A = wl.Csr(([1.0, 2.0, 3.0], [1, 0, 1], [0, 3]), shape=(1, 2))
        >>> A.sum_duplicates()
        >>> A.data, A.indices
        (array([2., 4.]), array([0, 1]))
        """
        matrix = self.without_duplicates()
        if matrix is not self:
            self._replace(matrix)

    def without_duplicates(self) -> Csr:
        """Return this matrix, sorted, with summed duplicates; itself if nothing changes."""
        matrix = self.sort()
        if matrix.has_duplicates:
            if is_exact(self.dtype):
                from .exact import without_duplicates

                return without_duplicates(matrix)
            if is_narrow(self.dtype):
                return matrix.astype(np.float32).without_duplicates().astype(self.dtype)
            if matrix.nnz > LONG and has_long_row(matrix.indptr):
                matrix = matrix._with_data(in_double_if_long(self.executor, matrix.data))
            indptr, indices, data = self.executor.run(structure.csr_sum_duplicates, matrix)
            data = rounded_to(self.executor, data, self.dtype)
            return Csr._from_arrays(self.executor, self.shape, data, indices, indptr)
        return matrix

    def sort_indices(self) -> None:
        """Sort the columns of each row, in place, like SciPy's method.

        If the order changes, the matrix gets new arrays: matrices that share the old arrays, and a
        SciPy matrix from which this one was made, keep them. :meth:`sort` returns a new matrix.
        """
        if not self.has_sorted_indices:
            self._replace(self.sort())

    def eliminate_zeros(self) -> None:
        """Remove stored zeros from the pattern, in place, like SciPy's method.

        Duplicates are not summed first. If there are zeros, the matrix gets new arrays, as in
        :meth:`sort_indices`.

        Examples
        --------
        >>> import wollemi as wl
        >>> A = wl.Csr(([4.0, 0.0], [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> A.eliminate_zeros()
        >>> A.nnz
        1
        """
        from .elementwise import drop_zeros

        drop_zeros(self)

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the column indices of each row are ascending (equal ones allowed)."""
        from .rowwise import order_of

        falls, _ = order_of(self)
        return falls == 0

    @has_sorted_indices.setter
    def has_sorted_indices(self, value: bool) -> None:
        """Accept the caller's statement; refuse a wrong one, since kernels trust the order."""
        validate.check_statement("has_sorted_indices", value, self.has_sorted_indices)

    @property
    def has_duplicates(self) -> bool:
        """Whether a sorted matrix stores a position more than once."""
        from .rowwise import order_of

        _, repeats = order_of(self)
        return repeats > 0

    @property
    def has_canonical_format(self) -> bool:
        """Whether the column indices of each row are strictly ascending."""
        from .rowwise import order_of

        return order_of(self) == (0, 0)

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        """Accept the caller's statement; refuse a wrong one, since kernels trust the order."""
        validate.check_statement("has_canonical_format", value, self.has_canonical_format)

    def _main_diagonal(self) -> Array:
        if is_exact(self.dtype):
            from .exact import diagonal

            return diagonal(self, 0)
        if is_narrow(self.dtype):
            return self.astype(np.float32)._main_diagonal().astype(self.dtype)
        d = self.executor.allocate((min(self.shape),), self.dtype)
        self.executor.run(operations.csr_diagonal, self, d)
        return d

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` that shares no memory with this matrix."""
        return self._of_scipy(self._host_copies())

    def _of_scipy(self, arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
        """Return host arrays as a SciPy matrix without copies."""
        from scipy.sparse import csr_array

        return csr_array(tuple(arrays), shape=self.shape)


def without_values(A: Csr) -> Csr:
    """Return a matrix with the same pattern, and zeros of a dtype that all kernels accept."""
    zeros = A.executor.zeros((A.nnz,), np.float32)
    return Csr._from_arrays(A.executor, A.shape, zeros, A.indices, A.indptr)


def rearranged(A: Csr, operation: Operation) -> tuple[Array, ...]:
    """Return the results of an operation that permutes entries; the last is the new order.

    Kernels of such operations move only the dtypes in which they compute; see :func:`as_movable`.
    """
    if A.dtype in COMPUTED:
        found: tuple[Array, ...] = A.executor.run(operation, A)
        return found
    movable = Csr._from_arrays(A.executor, A.shape, as_movable(A.data), A.indices, A.indptr)
    *arrays, data, order = A.executor.run(operation, movable)
    return *arrays, from_movable(data, A.dtype), order


class TransposedArrays(NamedTuple):
    """The results of ``csr.transpose``: ``data[k]`` is entry ``order[k]`` of the matrix."""

    indptr: Array
    indices: Array
    data: Array
    order: Array

    def matrix(self, executor: Executor, shape: tuple[int, int]) -> Csr:
        """Return the transpose with these arrays."""
        return Csr._from_arrays(executor, shape, self.data, self.indices, self.indptr)


def transposed_arrays(A: Csr) -> TransposedArrays:
    """Return the arrays of the transpose, with sorted rows."""
    return TransposedArrays(*rearranged(A, structure.csr_transpose))


def as_movable(values: Array) -> Array:
    """Return values in a dtype that kernels can move; :func:`from_movable` is the inverse.

    Integers of 32 and 64 bits are reinterpreted as floating-point numbers with the same bits.
    Booleans and 16-bit values are converted to float32, which represents them exactly.
    """
    same_bits = {4: np.float32, 8: np.float64}.get(np.dtype(values.dtype).itemsize)
    return values.view(same_bits) if same_bits else values.astype(np.float32)


def from_movable(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return moved values in their original dtype."""
    return values.view(dtype) if dtype.itemsize in (4, 8) else values.astype(dtype)


def compressed_of(
    kind: type[C],
    triple: Any,
    shape: Any,
    executor: Executor | str | None,
    copy: bool,
    *,
    rows_first: bool,
    values: Callable[[Any], np.ndarray[Any, Any]] = validate.values,
) -> C | None:
    """Return a matrix of compressed rows or columns of a triple or of SciPy's matrix; or None."""
    format = "csr" if rows_first else "csc"
    if is_of_scipy(triple) and triple.format == format and len(triple.shape) == 2:
        given = (triple.data, triple.indices, triple.indptr)
        made = compressed_of(
            kind, given, triple.shape, executor, copy, rows_first=rows_first, values=values
        )
        assert made is not None
        require_shape(made, shape)
        return made
    if not (isinstance(triple, tuple) and len(triple) == 3):
        return None
    where = place(executor, *triple)
    there = device_arrays.compressed(where, triple, shape, rows_first=rows_first, copy=copy)
    if there is not None:
        return kind._from_arrays(where, *there)
    checked = validate_compressed(triple, shape, rows_first=rows_first, values=values)
    if shape is None:
        _, indices, indptr = checked
        shape = (indptr.size - 1, int(indices.max()) + 1 if indices.size else 0)
        shape = shape if rows_first else shape[::-1]
    arrays = (owned_array(where, a, g, copy=copy) for a, g in zip(checked, triple, strict=True))
    return kind._from_arrays(where, checked_shape(shape), *arrays)


def validate_compressed(
    triple: Any,
    shape: Any,
    *,
    rows_first: bool,
    values: Callable[[Any], np.ndarray[Any, Any]] = validate.values,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Check ``(data, indices, indptr)`` of compressed rows or columns, as kernels need it."""
    data = values(to_host(triple[0]))
    indptr = to_host(triple[2])
    unbounded = int(np.iinfo(np.int64).max)
    if shape is None:
        major, minor = max(int(np.size(indptr)) - 1, 0), unbounded
    else:
        rows, columns = checked_shape(shape)
        major, minor = (rows, columns) if rows_first else (columns, rows)
    indices = validate.indices(to_host(triple[1]), minor, "indices")
    validate.equal_lengths(data=data, indices=indices)
    data, indices = (validate.named_by(indptr, array) for array in (data, indices))
    indptr = validate.pointers(indptr, major, data.size)
    largest = max(data.size, major, minor if shape is not None else 0)
    indices, indptr = validate.of_one_dtype(largest, indices, indptr)
    if validate.is_logical(triple[0]):
        return validate.either_compressed(data, indices, indptr)
    return data, indices, indptr
