"""Compressed sparse rows, the format that everything can become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

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
from .given import check_axes, checked_shape, own, place
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
    """A sparse matrix by compressed rows.

    Parameters
    ----------
    arg : matrix or tuple
        A matrix of SciPy, CuPy or PyTorch, any wollemi matrix, a dense array, the triple
        ``(data, indices, indptr)``, or ``(data, (row, col))``; duplicates are added up. Arrays of a
        device are checked there.
    shape : tuple of int, optional
        Rows and columns; needed with a tuple, unless the largest index tells them.
    dtype : dtype, optional
        Of the values; by default that of ``arg``. Matrices hold booleans and integers
        (uint64 becomes float64); solvers compute in float64.
    executor : Executor or str, optional
        Where it lives; the default executor by default, or where ``arg`` lives.
    copy : bool, optional
        Whether the matrix must have copies of all arrays. By default it has copies of a tuple's
        arrays, and of arrays of another library's matrix; with a wollemi matrix it shares them, and
        new values of one are new values of both. ``copy=False`` saves memory and time: compressed
        rows are used in place where their dtype, order and device allow. Until the matrix is gone,
        do not change these arrays; new values are written into them.

    Attributes
    ----------
    data : array, shape (nnz,)
        Values, row by row; explicit zeros stay.
    indices : array of int32 or int64, shape (nnz,)
        Columns.
    indptr : array of the same dtype, shape (m + 1,)
        Row ``i`` is in ``indptr[i]:indptr[i + 1]``.

    Raises
    ------
    InvalidMatrix
        If the arrays do not describe a matrix; the message names the position.

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
        """Return the dtype of this format for a requested dtype: 16-bit and exact ones stay."""
        return stored_or_held_dtype(dtype)

    def astype(self, dtype: DTypeLike, copy: bool = False, *, casting: Casting = "unsafe") -> Self:
        """Return this matrix with values of ``dtype``; itself if they are already.

        See :meth:`Matrix.astype`. Entries of booleans at one position are one entry before.
        """
        once = self.without_duplicates() if self.dtype == np.bool_ else self
        if once is not self and dtype != np.bool_:
            return once.astype(dtype, casting=casting)  # type: ignore[return-value]
        return super().astype(dtype, copy, casting=casting)

    def transposed_pattern(self) -> tuple[Csr, Array]:
        """Return the transpose of the pattern and where its entries were.

        It is made once and kept; its values are zeros. The values of the transpose are
        ``A.data[order]``.
        """
        return self._pattern.get(_TRANSPOSED, self._transpose_pattern)

    def _transpose_pattern(self) -> tuple[Csr, Array]:
        pattern = without_values(self)
        indptr, indices, data, order = self.executor.run(structure.csr_transpose, pattern)
        made = Csr._from_arrays(self.executor, self.shape[::-1], data, indices, indptr)
        return made, order

    def _transposed_with_values(self) -> tuple[Csr, Array, Array | None]:
        """Return the pattern of the transpose and the order, with values if both were made now."""
        if _TRANSPOSED in self._pattern:
            return *self.transposed_pattern(), None
        indptr, indices, data, order = rearranged(self, structure.csr_transpose)
        zeros = self.executor.zeros((self.nnz,), np.float32)
        pattern = Csr._from_arrays(self.executor, self.shape[::-1], zeros, indices, indptr)
        return *self._pattern.get(_TRANSPOSED, lambda: (pattern, order)), data

    def _multiply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if y.shape[1] < 2:
            self._apply(x, y, alpha, beta)
            return
        # Several vectors are a dense matrix: spmm chooses its kernel by how many they are.
        values, B, C = (as_batch(array) for array in (self.data, x, y))
        self.executor.run(products.csr_spmm, self, values, B, C, alpha, beta, "auto")

    @property
    def T(self) -> Csc:
        """The transpose, which shares this matrix's arrays."""
        from .csc import Csc

        transposed = Csc._from_arrays(
            self.executor, self.shape[::-1], self.data, self.indices, self.indptr
        )
        transposed._transpose_of = self  # which its rows are stored with
        return self._share_values(transposed)

    @property
    def H(self) -> Csc:
        """The conjugate transpose; shares this matrix's arrays if they are real."""
        return self.T.conj() if is_complex(self.dtype) else self.T

    def transpose(self, axes: tuple[int, int] | None = None, copy: bool = False) -> Csr:
        """Return the transpose by compressed rows, sorted; it shares no memory with this matrix."""
        check_axes(axes)
        indptr, indices, data, _ = rearranged(self, structure.csr_transpose)
        return Csr._from_arrays(self.executor, self.shape[::-1], data, indices, indptr)

    def sort(self) -> Self:
        """Return this matrix with the columns of each row in rising order; itself if they are.

        The order is found once and kept with the pattern, unless the matrix is lean.
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
        """Return the pattern with sorted rows, and where its entries were; the values are zeros."""
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
        ``A.dtype``: vectors, results and solvers have that dtype, and the matrix is the one of the
        rounded values. Where products are bound by memory, they take as much less time as there is
        less to read.

        Parameters
        ----------
        dtype : dtype
            ``"float32"``, ``"float16"`` or ``"bfloat16"`` of a float64 matrix, ``"float16"`` or
            ``"bfloat16"`` of a float32 one, ``"complex64"`` of a complex128 one.

        Returns
        -------
        StoredCsr
            It shares the pattern of this matrix. Its values are its own: new ones of this matrix
            do not change it.

        Raises
        ------
        UnsupportedDtype
            If there are no products for values that are stored so.
        InvalidArgument
            If a value is too large for ``dtype``: beyond 65504 in float16. If all values are too
            small for its digits (below 6.1e-5 in float16, 1.2e-38 in the others), or a row that has
            values becomes 0. Single values become 0 next to larger ones of their row: below 3e-8
            in float16.

        Examples
        --------
        A solver of the stored matrix solves the system of the rounded values. Iterative refinement
        around it solves that of this matrix:

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
        """Sort the columns of each row and add up entries of one position, in place; zeros stay.

        Plans are made anew. Matrices that shared this one's arrays, such as ``A.T`` made before,
        keep the entries as they were, and no longer follow its values.

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
        """Return this matrix, sorted, with duplicates added up; itself if that changes nothing."""
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
        """Bring the columns of each row into rising order, in place, as SciPy's does.

        The arrays become new ones if there is anything to do: matrices that share them, and a
        SciPy matrix that this one was made of, keep the old ones. :meth:`sort` returns a matrix.
        """
        if not self.has_sorted_indices:
            self._replace(self.sort())

    def eliminate_zeros(self) -> None:
        """Take the entries that are 0 out of the pattern, in place, as SciPy's does.

        Entries of one position are not added up before. The arrays become new ones if there are
        zeros, as by :meth:`sort_indices`.

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
        """Whether the columns of each row are in rising order (equal ones allowed)."""
        from .rowwise import order_of

        falls, _ = order_of(self)
        return falls == 0

    @has_sorted_indices.setter
    def has_sorted_indices(self, value: bool) -> None:
        """Take a statement of a caller; a wrong one is refused, since kernels trust the order."""
        validate.check_statement("has_sorted_indices", value, self.has_sorted_indices)

    @property
    def has_duplicates(self) -> bool:
        """Whether a sorted matrix stores a position twice."""
        from .rowwise import order_of

        _, repeats = order_of(self)
        return repeats > 0

    @property
    def has_canonical_format(self) -> bool:
        """Whether the columns of each row are in rising order, none of them twice."""
        from .rowwise import order_of

        return order_of(self) == (0, 0)

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        """Take a statement of a caller; a wrong one is refused, since kernels trust the order."""
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
        """Return arrays of the host as SciPy's array, without copies."""
        from scipy.sparse import csr_array

        return csr_array(tuple(arrays), shape=self.shape)


def without_values(A: Csr) -> Csr:
    """Return a matrix of the same pattern with zeros as values that every kernel takes."""
    zeros = A.executor.zeros((A.nnz,), np.float32)
    return Csr._from_arrays(A.executor, A.shape, zeros, A.indices, A.indptr)


def rearranged(A: Csr, operation: Operation) -> tuple[Array, ...]:
    """Return the result of an operation that permutes entries; the new order comes last.

    Its kernels take the dtypes that they compute in: see :func:`as_movable`.
    """
    if A.dtype in COMPUTED:
        found: tuple[Array, ...] = A.executor.run(operation, A)
        return found
    movable = Csr._from_arrays(A.executor, A.shape, as_movable(A.data), A.indices, A.indptr)
    *arrays, data, order = A.executor.run(operation, movable)
    return *arrays, from_movable(data, A.dtype), order


def as_movable(values: Array) -> Array:
    """Return values in a dtype of which kernels move values; :func:`from_movable` is the inverse.

    Integers of 32 and 64 bits are read as floating-point numbers of the same bits. Booleans and
    values of 16 bits become float32, which holds all of them.
    """
    same_bits = {4: np.float32, 8: np.float64}.get(np.dtype(values.dtype).itemsize)
    return values.view(same_bits) if same_bits else values.astype(np.float32)


def from_movable(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return moved values in the dtype that they had before."""
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
    """Return a matrix of compressed rows or columns; None if the argument is no triple."""
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
    arrays = (own(where, a, g, copy=copy) for a, g in zip(checked, triple, strict=True))
    return kind._from_arrays(where, checked_shape(shape), *arrays)


def validate_compressed(
    triple: Any,
    shape: Any,
    *,
    rows_first: bool,
    values: Callable[[Any], np.ndarray[Any, Any]] = validate.values,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Check ``(data, indices, indptr)`` of compressed rows or columns, as kernels take them."""
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
