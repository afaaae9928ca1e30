"""Matrices of compressed sparse rows, and the plans of their products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..algorithm import PRODUCTS
from ..dtypes import name_of, stored_dtype, value_dtype
from ..errors import InvalidArgument
from ..identity_set import WeakIdentitySet
from ..operations import matrix as operations
from ..program import recording
from ..statistics import RowStatistics, row_statistics
from ..store import Key, PatternStore, ValueStore
from .base import Matrix
from .plan_bytes import plan_bytes
from .planned import PlannedMatrix

if TYPE_CHECKING:
    from ..algorithm import Plan
    from ..executor import Array
    from .planned import PlannedMatrix

_STATISTICS: Key[RowStatistics] = Key("statistics")
#: Key of plans for vectors that were requested by name; their state may contain values.
_PLAN: Key[Plan] = Key("plan")


class CompressedRows(Matrix):
    """A matrix of compressed sparse rows, with the data that products store with it."""

    arrays = ("data", "indices", "indptr")

    indices: Array
    indptr: Array

    #: Whether products keep no copies of the entries; see :meth:`lean`.
    _lean: bool = False
    #: The plan of products with vectors; native code reads this attribute.
    _plan: Plan | None
    #: Data derived from the pattern; all matrices with the pattern share them.
    _pattern: PatternStore
    #: Data derived from the values; they are updated with the values.
    _copies: ValueStore

    def _reset(self) -> None:
        self.__dict__.update(_plan=None, _pattern=PatternStore(), _copies=ValueStore())

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """The dtype of both index arrays."""
        dtype: np.dtype[Any] = self.indptr.dtype
        return dtype

    def _with_data(self, data: Array) -> Self:
        result = super()._with_data(data)
        result._pattern = self._pattern
        return result

    def _values_changed(self) -> None:
        if self._plan is not None:
            self._plan.update_values(self)
        self._copies.update_values(self)

    def _twin(self) -> Self:
        # The twin shares plan and copies, so that they are updated once, not twice.
        twin = self._from_arrays(self.executor, self.shape, *self._native_arrays(), **self._extra())
        if self._sharers is None:
            self._sharers = WeakIdentitySet[Matrix]((self,))
        derived = {"_plan": self.plan, "_pattern": self._pattern, "_copies": self._copies}
        twin.__dict__.update(derived, _sharers=self._sharers)
        return twin

    @property
    def plan(self) -> Plan:
        """The chosen algorithm for products with vectors, and the reason; made at first use."""
        if self._plan is None:
            self._plan = self._planned("spmv", 1, "auto", name_of(self.dtype))
        return self._plan

    def _planned(self, product: str, columns: int, kernel: str, dtype: str) -> Plan:
        if product == "spmv":
            value_dtype(self.dtype)  # raises for 16 bits: spmv cannot compute in them
        result: Plan = self.executor.run(operations.csr_plan, self, product, columns, kernel, dtype)
        return result

    def plan_for(
        self,
        product: str,
        columns: int = 1,
        kernel: str = "auto",
        dtype: DTypeLike | None = None,
    ) -> Plan:
        """Return the algorithm chosen for a product, with the reason; made at first use and kept.

        Parameters
        ----------
        product : {"spmv", "spmm", "sddmm", "fusedmm"}
            The product.
        columns : int
            Columns of the dense operand: of ``B`` for spmm, of ``C`` for sddmm and fusedmm. A plan
            for spmv assumes one vector.
        kernel : str
            The name of an algorithm, or ``"auto"`` for the rule's choice.
        dtype : dtype, optional
            The dtype of the values and the dense operands; by default, the dtype of the matrix.

        Raises
        ------
        InvalidArgument
            If the executor has no algorithm of that name (the message lists the available ones), if
            the algorithm cannot run for this matrix, or if ``columns`` is not a valid number of
            columns.
        UnsupportedOperation
            If the matrix is a :class:`StoredCsr` and the product is not spmv, or the dtype is
            another one; a Csr supports these.

        Examples
        --------
        >>> import wollemi as wl
        >>> A = wl.Csr(([4.0, 1.0], [0, 1], [0, 1, 2]), executor="reference")
        >>> A.plan_for("spmm", 32).kernel, A.plan_for("spmv", kernel="entries").reason
        ('entries', 'asked for')
        """
        self._require_plans(product, dtype)
        if isinstance(dtype, np.dtype):  # the dtype of an array; the plan usually exists
            known = self._pattern.plans.get((product, columns, kernel, name_of(dtype)))
            if known is not None:
                return known
        name = name_of(self.dtype if dtype is None else stored_dtype(dtype))
        key = (product, columns, kernel, name)
        result = self._pattern.plans.get(key)
        if result is None:
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
            result = self._pattern.plans[key] = self._planned(*key)
        return result

    def _require_plans(self, product: str, dtype: DTypeLike | None) -> None:
        """Raise an error if a product in a dtype has no plans; a Csr supports all of them."""

    def _plan_for_vectors(self, kernel: str) -> Plan:
        if kernel == "auto":
            return self.plan
        name = name_of(self.dtype)
        return self._copies.get(
            _PLAN.of_size(kernel), lambda: self._planned("spmv", 1, kernel, name)
        )

    def with_kernel(self, kernel: str) -> Self:
        """Return this matrix with another algorithm for products with vectors.

        The result shares the arrays of this matrix, and its updates of values.

        Parameters
        ----------
        kernel : str
            Name of an algorithm, as in ``A.plan_for("spmv", kernel=...)``.

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

    def _extra(self) -> dict[str, Any]:
        extra = super()._extra()
        return {**extra, "_lean": True} if self._lean else extra

    @property
    def is_lean(self) -> bool:
        """Whether products keep no copies of the entries; see :meth:`lean`."""
        return self._lean

    def lean(self) -> Self:
        """Return this matrix without copies of its entries: products read only its arrays.

        The result shares the arrays of this matrix, and its updates of values. By default a product
        stores a second copy of the entries in the order in which it is fastest, if that is expected
        to be 1.2 times as fast; the copy takes up to 1.8 times the memory of the matrix. Without
        such copies, products with unequal rows, or with stencils on GPUs, take longer. A kernel
        that is requested by name still keeps the copies that it needs.

        See Also
        --------
        plan_nbytes : The memory that plans take.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(([4.0, 1.0], [0, 1], [0, 1, 2])).lean()
        >>> A @ np.ones(2), A.is_lean, A.plan.algorithm.copies
        (array([4., 1.]), True, False)
        """
        extra = {**self._extra(), "_lean": True}
        arrays = self._native_arrays()
        return self._share_values(self._from_arrays(self.executor, self.shape, *arrays, **extra))

    def plan_only(self) -> PlannedMatrix:
        """Return this matrix without its arrays: only the plan of products with vectors remains.

        If the plan contains a copy of the entries, products with vectors do not need the arrays.
        The result takes the memory of the plan; the memory of the arrays is freed with this matrix.
        The result follows updates of this matrix's values as long as this matrix exists, and keeps
        the last ones afterwards.

        Returns
        -------
        PlannedMatrix
            Products with vectors, solvers and operators made of it work as before; methods that
            read entries raise :class:`~wollemi.core.errors.ArraysGivenUp`.

        Raises
        ------
        UnsupportedOperation
            If the algorithm of :attr:`plan` reads the arrays. The message names that algorithm, and
            the algorithms that do not read them; :meth:`with_kernel` selects one.

        See Also
        --------
        lean : The opposite: only the arrays, without copies of them in plans.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.eye(1000), executor="omp").with_kernel("sell")
        >>> P = A.plan_only()
        >>> P.nbytes == A.plan_nbytes, bool(np.all(P @ np.ones(1000) == 1))
        (True, True)
        """
        return PlannedMatrix(self)

    @property
    def plan_nbytes(self) -> int:
        """Bytes stored in addition to the arrays: packed copies, tables, rows of the transpose.

        Data that several matrices of a pattern share count for each of these matrices.
        """
        things = [self._plan, self._pattern, self._copies]
        kept = [thing for thing in things if thing is not None]
        return plan_bytes(self.executor, kept, self._native_arrays())

    @property
    def row_statistics(self) -> RowStatistics:
        """Statistics of the row lengths."""
        return self._pattern.get(
            _STATISTICS, lambda: row_statistics(self.executor, self.indptr, self.shape[1])
        )

    @property
    def storage_dtype(self) -> np.dtype[Any]:
        """The dtype in which the values are stored; products are computed in :attr:`dtype`."""
        return np.dtype(self.data.dtype)

    def __matmul__(self, other: Any) -> Any:
        if type(other) is self.executor.array_type and recording() is None:
            result = self.executor.product(self, other, None)
            if result is not None:
                return result
        return super().__matmul__(other)

    def _fast_product(self, x: Any, out: Any) -> Array | None:
        kind = self.executor.array_type
        native = type(x) is kind and (out is None or type(out) is kind)
        if native and recording() is None:
            result = self.executor.product(self, x, out)
            if result is not None:
                return result
        return super()._fast_product(x, out)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(operations.csr_spmv, self, x, y, alpha, beta)


def keep_updated(matrix: CompressedRows, key: Key[Any], thing: Any) -> None:
    """Call ``thing.update_values(matrix)`` after each change of the values, until it is replaced.

    Parameters
    ----------
    matrix : CompressedRows
        The matrix, which keeps the object.
    key : Key
        The name of the object; another object with this name replaces it.
    thing : object
        The object.
    """
    matrix._copies.put(key, thing)
