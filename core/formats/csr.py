"""Compressed sparse rows, the format that everything can become."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike

from ..algorithm import PRODUCTS
from ..dtypes import is_complex, is_narrow, name_of, stored_dtype
from ..errors import InvalidArgument
from ..operands import as_batch, to_host
from ..operations import matrix as operations
from ..operations import products, structure
from ..statistics import RowStatistics, row_statistics
from ..store import Key, PatternStore, ValueStore
from . import validate
from .base import Matrix
from .given import checked_shape, converted, homeless, own, place
from .triangular import SolvesTriangles

if TYPE_CHECKING:
    from ..algorithm import Plan
    from ..executor import Array, Executor
    from ..operation import Operation
    from .csc import Csc

_STATISTICS: Key[RowStatistics] = Key("statistics")
#: Plans for products with vectors that were asked for by name: their state may hold values.
_PLAN: Key[Plan] = Key("plan")
_TRANSPOSED: Key[tuple[Csr, Array]] = Key("transposed")


class Csr(SolvesTriangles, Matrix):
    """A sparse matrix by compressed rows.

    Parameters
    ----------
    arg : matrix or tuple
        A matrix of SciPy, CuPy or PyTorch, any wollemi matrix, a dense array, the triple
        ``(data, indices, indptr)``, or ``(data, (row, col))``, whose duplicates are added up.
    shape : tuple of int, optional
        Rows and columns; needed with a tuple, unless the largest index tells them.
    dtype : dtype, optional
        Of the values; by default that of ``arg`` (integers become float64).
    executor : Executor or str, optional
        Where it lives; the default executor by default, or where ``arg`` lives.

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
        If the arrays do not describe a matrix; the message names the place.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(([4.0, 1.0, 3.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    >>> A @ np.array([1.0, 2.0])
    array([6., 6.])
    """

    format = "csr"
    arrays = ("data", "indices", "indptr")

    indices: Array
    indptr: Array

    #: The plan of products with vectors; native code reads it here.
    _plan: Plan | None
    #: What follows from the pattern; matrices of the same pattern and other values share it.
    _pattern: PatternStore
    #: What was made from the values, which follows them.
    _copies: ValueStore

    def __init__(
        self,
        arg: Any,
        shape: tuple[int, int] | None = None,
        *,
        dtype: Any = None,
        executor: Executor | str | None = None,
    ) -> None:
        arg = validate.as_numbers(arg, dtype)
        if isinstance(arg, tuple) and len(arg) == 3:
            made = _from_triple(arg, shape, place(executor, *arg))
        else:
            made = converted(arg, "csr", shape, executor)
        if dtype is not None:
            made = made.astype(dtype)
        self._become(made, homeless(executor, arg))

    @staticmethod
    def _held_dtype(dtype: DTypeLike) -> np.dtype[Any]:
        """Return what a dtype that is asked for becomes: 16-bit ones stay."""
        return stored_dtype(dtype)

    def _reset(self) -> None:
        self.__dict__.update(_plan=None, _pattern=PatternStore(), _copies=ValueStore())

    def _with_data(self, data: Array) -> Self:
        made = super()._with_data(data)
        made._pattern = self._pattern
        return made

    def _values_changed(self) -> None:
        if self._plan is not None:
            self._plan.update_values(self)
        self._copies.update_values(self)

    def _twin(self) -> Self:
        # The plan and the copies are brought up to date through this matrix, not twice.
        twin = self._from_arrays(self.executor, self.shape, *self._native_arrays())
        if self._sharers is None:
            self._sharers = WeakSet((self,))
        derived = {"_plan": self.plan, "_pattern": self._pattern, "_copies": self._copies}
        twin.__dict__.update(derived, _sharers=self._sharers)
        return twin

    @property
    def plan(self) -> Plan:
        """What was chosen for products with vectors, and why; made when first needed."""
        if self._plan is None:
            self._plan = self._planned("spmv", 1, "auto", name_of(self.dtype))
        return self._plan

    def _planned(self, product: str, columns: int, kernel: str, dtype: str) -> Plan:
        made: Plan = self.executor.run(operations.csr_plan, self, product, columns, kernel, dtype)
        return made

    def plan_for(
        self,
        product: str,
        columns: int = 1,
        kernel: str = "auto",
        dtype: DTypeLike | None = None,
    ) -> Plan:
        """Return what was chosen for a product, and why; made when first needed, then stored.

        Parameters
        ----------
        product : {"spmv", "spmm", "sddmm", "fusedmm"}
            What is computed.
        columns : int
            Of the dense operand: of ``B`` for spmm, of ``C`` for sddmm and fusedmm. A plan for
            spmv is for one vector.
        kernel : str
            The name of an algorithm, or ``"auto"`` for the rule's choice.
        dtype : dtype, optional
            Of values and dense operands together; that of the matrix by default.

        Raises
        ------
        InvalidArgument
            If the executor has no algorithm of that name; the message lists those it has. If the
            algorithm cannot run for this matrix. If ``columns`` is no number of columns.

        Examples
        --------
        >>> import wollemi as wl
        >>> A = wl.Csr(([4.0, 1.0], [0, 1], [0, 1, 2]), executor="reference")
        >>> A.plan_for("spmm", 32).kernel, A.plan_for("spmv", kernel="entries").reason
        ('entries', 'asked for')
        """
        name = name_of(self.dtype if dtype is None else stored_dtype(dtype))
        key = (product, columns, kernel, name)
        found = self._pattern.plans.get(key)
        if found is None:
            if product not in PRODUCTS:
                raise InvalidArgument(
                    f"there is no plan for {product!r}, only for {', '.join(PRODUCTS)}"
                )
            if not isinstance(columns, (int, np.integer)) or columns < 0:
                raise InvalidArgument(
                    f"columns: expected how many the dense operand has, got {columns!r}"
                )
            if product == "spmv":
                return self._plan_for_vectors(kernel)
            found = self._pattern.plans[key] = self._planned(*key)
        return found

    def _plan_for_vectors(self, kernel: str) -> Plan:
        if kernel == "auto":
            return self.plan
        name = name_of(self.dtype)
        return self._copies.get(
            _PLAN.of_size(kernel), lambda: self._planned("spmv", 1, kernel, name)
        )

    def with_kernel(self, kernel: str) -> Csr:
        """Return this matrix with another algorithm for products with vectors.

        It shares the arrays of this matrix, and follows its values.

        Parameters
        ----------
        kernel : str
            The name of an algorithm, as of ``A.plan_for("spmv", kernel=...)``.

        Raises
        ------
        InvalidArgument
            If the executor has no algorithm of that name, or it cannot run for this matrix.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(([4.0, 1.0], [0, 1], [0, 1, 2]), executor="omp").with_kernel("sell")
        >>> A.plan.kernel, A @ np.ones(2)
        ('sell', array([4., 1.]))
        """
        other = self._share_values(self._with_data(self.data))
        other._plan = other.plan_for("spmv", kernel=kernel)
        return other

    @property
    def row_statistics(self) -> RowStatistics:
        """How long the rows are."""
        return self._pattern.get(
            _STATISTICS, lambda: row_statistics(self.executor, self.indptr, self.shape[1])
        )

    def transposed_pattern(self) -> tuple[Csr, Array]:
        """Return the transpose of the pattern and where its entries were.

        It is made once and kept; its values are zeros. Those of the transpose are
        ``A.data[order]``.
        """
        return self._pattern.get(_TRANSPOSED, self._transpose_pattern)

    def _transpose_pattern(self) -> tuple[Csr, Array]:
        pattern = without_values(self)
        indptr, indices, data, order = self.executor.run(structure.csr_transpose, pattern)
        made = Csr._from_arrays(self.executor, self.shape[::-1], data, indices, indptr)
        return made, order

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.csr_spmv, self, x, y, alpha, beta)

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

    def transpose(self) -> Csr:
        """Return the transpose by compressed rows, sorted."""
        indptr, indices, data, _ = rearranged(self, structure.csr_transpose)
        return Csr._from_arrays(self.executor, self.shape[::-1], data, indices, indptr)

    def sort(self) -> Self:
        """Return this matrix with the columns of each row in rising order; itself if they are."""
        if self.has_sorted_indices:
            return self
        indices, data, _ = rearranged(self, structure.csr_sort)
        return self._from_arrays(self.executor, self.shape, data, indices, self.indptr)

    def sum_duplicates(self) -> None:
        """Sort the columns of each row and add up entries of one place, in place; zeros stay.

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
        """Return this matrix, sorted, with entries of one place added up; itself if it is so."""
        matrix = self.sort()
        if matrix.has_duplicates:
            if is_narrow(self.dtype):
                return matrix.astype(np.float32).without_duplicates().astype(self.dtype)
            indptr, indices, data = self.executor.run(structure.csr_sum_duplicates, matrix)
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

        Entries of one place are not added up before. The arrays become new ones if there are
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

    @property
    def has_duplicates(self) -> bool:
        """Whether a sorted matrix stores some place twice."""
        from .rowwise import order_of

        _, repeats = order_of(self)
        return repeats > 0

    @property
    def has_canonical_format(self) -> bool:
        """Whether the columns of each row are in rising order, none of them twice."""
        from .rowwise import order_of

        return order_of(self) == (0, 0)

    def _main_diagonal(self) -> Array:
        if is_narrow(self.dtype):
            return self.astype(np.float32)._main_diagonal().astype(self.dtype)
        d = self.executor.allocate((min(self.shape),), self.dtype)
        self.executor.run(operations.csr_diagonal, self, d)
        return d

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` that shares no memory with this matrix."""
        from scipy.sparse import csr_array

        return csr_array(tuple(self._host_copies()), shape=self.shape)


def without_values(A: Csr) -> Csr:
    """Return a matrix of the same pattern whose values are zeros that every kernel takes."""
    zeros = A.executor.zeros((A.nnz,), np.float32)
    return Csr._from_arrays(A.executor, A.shape, zeros, A.indices, A.indptr)


def rearranged(A: Csr, operation: Operation) -> tuple[Array, ...]:
    """Return what an operation makes that puts entries into another order, which comes last.

    Its kernels take no values of 16 bits: those follow the order afterwards.
    """
    if not is_narrow(A.dtype):
        found: tuple[Array, ...] = A.executor.run(operation, A)
        return found
    *arrays, _, order = A.executor.run(operation, without_values(A))
    return *arrays, A.data[order], order


def _from_triple(triple: Any, shape: Any, executor: Executor) -> Csr:
    data, indices, indptr = validate_compressed(
        triple, shape, rows_first=True, values=validate.stored_values
    )
    if shape is None:
        shape = (indptr.size - 1, int(indices.max()) + 1 if indices.size else 0)
    arrays = zip((data, indices, indptr), triple, strict=True)
    return Csr._from_arrays(
        executor, checked_shape(shape), *(own(executor, a, given) for a, given in arrays)
    )


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
    indptr = validate.pointers(indptr, major, data.size)
    largest = max(data.size, major, minor if shape is not None else 0)
    indices, indptr = validate.of_one_dtype(largest, indices, indptr)
    if validate.is_logical(triple[0]):
        return validate.either_compressed(data, indices, indptr)
    return data, indices, indptr
