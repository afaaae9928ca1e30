"""Matrices that have released their arrays: only the plan of products with vectors remains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from ..algorithm import Plan
from ..dtypes import requested_dtype
from ..errors import ArraysGivenUp, UnsupportedOperation
from ..lazy import Temporary
from ..linop import FACTS, LinOp
from ..operations import matrix as operations
from ..operations import vector
from ..registry import executor as executor_by_name
from .plan_bytes import plan_bytes

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from ..statistics import RowStatistics
    from .compressed import CompressedRows

#: The remedies for methods that need arrays, by method name; all others have :data:`_KEEP`.
_REMEDIES = {
    "T": "make A.transpose().plan_only() of the matrix too: that multiplies by the transpose",
    "H": "make A.transpose().conj().plan_only() of the matrix too",
    "to": "move the matrix first: A.to(executor).plan_only()",
    "astype": "convert the vectors, or the matrix first: A.astype(dtype).plan_only()",
    "update_values": "update the matrix that plan_only() was called on: while it lives, this one "
    "follows",
    "pickle": "pickle the matrix, and make A.plan_only() of it where it is loaded",
    "copy": "nothing can change it, so that everyone may use this one",
}
_KEEP = "ask the matrix that plan_only() was called on, and keep it as long as that is needed"


class PlannedMatrix(LinOp):
    """A matrix without its original arrays: it multiplies vectors with the plan alone.

    ``A.plan_only()`` makes it. It holds the memory of the plan; ``A`` may be freed. Products with
    vectors work as with ``A``, and so do sums and products of operators and solvers that use only
    these. Products with one vector are bitwise equal. All methods that read entries raise
    :class:`~wollemi.core.errors.ArraysGivenUp` with a remedy.

    Attributes
    ----------
    nnz : int
        Number of entries of the matrix.
    storage_dtype : numpy.dtype
        The dtype of its stored values.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(([4.0, 1.0], [0, 1], [0, 1, 2]), executor="omp").with_kernel("sell")
    >>> P = A.plan_only()
    >>> P @ np.ones(2), P.plan.kernel
    (array([4., 1.]), 'sell')
    >>> P.tocsr()
    Traceback (most recent call last):
        ...
    wollemi.core.errors.ArraysGivenUp: tocsr: plan_only() gave up the arrays of this matrix, \
and its plan, sell, multiplies vectors alone; ask the matrix that plan_only() was called on, and \
keep it as long as that is needed
    """

    nnz: int
    storage_dtype: np.dtype[Any]

    _fixed_attributes: ClassVar[dict[str, str]] = FACTS | {
        name: "make A.plan_only() of another matrix" for name in ("nnz", "storage_dtype")
    }
    _no_entries = " without arrays (plan_only() gave them up; pass the original matrix)"

    def __init__(self, A: CompressedRows) -> None:
        plan = A.plan
        if not plan.algorithm.alone:
            raise UnsupportedOperation(_why_not(A))
        self.executor, self.shape, self.dtype = A.executor, A.shape, A.dtype
        self.nnz, self.storage_dtype = A.nnz, A.storage_dtype
        plan.algorithm.complete(A, plan.state)
        held = plan.algorithm.held_alone(plan.state)
        #: Native code reads the plan from this attribute.
        self._plan = Plan(plan.algorithm, plan.reason, plan.statistics, held)
        self._follows = A._follows
        self._lines = Temporary(), Temporary()

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raise an error for a missing matrix attribute, with the reason and a remedy."""
            from .csr import Csr
            from .stored import StoredCsr

            if name in Csr.arrays or (not name.startswith("_") and _is_of(name, Csr, StoredCsr)):
                self.refuse(name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; refuse names of the released arrays."""
        if name in ("data", "indices", "indptr"):
            self.refuse(name, "update_values")
        super().__setattr__(name, value)

    def refuse(self, asked: str, remedy: str | None = None) -> NoReturn:
        """Raise the error of a method that needs arrays; ``remedy`` is the key of the remedy."""
        advice = _REMEDIES.get(remedy or asked, _KEEP)
        raise ArraysGivenUp(
            f"{asked}: plan_only() gave up the arrays of this matrix, and its plan, "
            f"{self.plan.kernel}, multiplies vectors alone; {advice}",
            name=asked,
            obj=self,
        )

    # ---- facts

    @property
    def plan(self) -> Plan:
        """The algorithm, the reason for its choice, and its arrays."""
        return self._plan

    @property
    def nbytes(self) -> int:
        """The size of the matrix in bytes, which is the size of its plan."""
        return plan_bytes(self.executor, [self.plan], [])

    @property
    def plan_nbytes(self) -> int:
        """The same as :attr:`nbytes`, because nothing but the plan is stored."""
        return self.nbytes

    @property
    def row_statistics(self) -> RowStatistics:
        """Statistics of the row lengths."""
        return self.plan.statistics

    def __repr__(self) -> str:
        rows, columns = self.shape
        stored = "" if self.storage_dtype == self.dtype else f" stored in {self.storage_dtype}"
        return (
            f"<{type(self).__name__} {rows}x{columns} {self.dtype}{stored} nnz={self.nnz} "
            f"on {self.executor.name}, by its plan alone: {self.plan.kernel}>"
        )

    # ---- products

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        run = self.executor.run
        if not self.nnz:
            if beta == 0:
                run(vector.fill, y, 0.0)
            else:
                run(vector.axpby, y, y, 0.0, beta)
        elif self.plan.algorithm.alone_in_blocks or (_is_line(x) and _is_line(y)):
            run(operations.planned_spmv, self, x, y, alpha, beta)
        else:
            self._apply_by_columns(x, y, alpha, beta)

    def _apply_by_columns(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Multiply column by column; each column is first made contiguous."""
        run, (rows, columns) = self.executor.run, self.shape
        of_x, of_y = self._lines
        with (
            of_x.block(self.executor, columns, 1, self.dtype) as line,
            of_y.block(self.executor, rows, 1, self.dtype) as result,
        ):
            for c in range(x.shape[1]):
                target = y[:, c : c + 1]
                run(vector.axpby, x[:, c : c + 1], line, 1.0, 0.0)
                run(operations.planned_spmv, self, line, result, alpha, 0.0)
                run(vector.axpby, result, target, 1.0, beta)

    def _private(self) -> PlannedMatrix:
        result = type(self).__new__(type(self))
        result.__dict__.update(self.__dict__, _lines=(Temporary(), Temporary()))
        return result

    # methods that need arrays, and have a name that operators have

    @property
    def T(self) -> LinOp:
        """Raise an error that explains how to get the transpose."""
        self.refuse("T")

    @property
    def H(self) -> LinOp:
        """Raise an error that explains how to get the conjugate transpose."""
        self.refuse("H")

    def to(self, executor: Executor | str) -> PlannedMatrix:
        """Return this matrix on its own executor; plans cannot move to another one."""
        if executor_by_name(executor) == self.executor:
            return self
        self.refuse("to")

    def astype(self, dtype: DTypeLike) -> PlannedMatrix:
        """Return this matrix if it computes in ``dtype``; a plan supports only one dtype."""
        if requested_dtype(dtype) == self.dtype:
            return self
        self.refuse(f"astype({str(dtype)!r})", "astype")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.refuse("pickle")

    def __copy__(self) -> NoReturn:
        self.refuse("copy")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.refuse("copy")


def _is_of(name: str, *classes: type) -> bool:
    return any(hasattr(one, name) for one in classes)


def _is_line(block: Array) -> bool:
    """Return whether a block is one contiguous vector."""
    rows, columns = block.shape
    return columns == 1 and (rows < 2 or block.strides[0] == block.dtype.itemsize)


def _why_not(A: CompressedRows) -> str:
    """Return why products of a matrix need more than its plan, and the remedy."""
    algorithms = A.executor.algorithms.of("spmv")
    able = " or ".join(repr(one.name) for one in algorithms if one.alone)
    way_out = (
        f"choose one that keeps the entries, A.with_kernel(name).plan_only() with {able}"
        if able
        else f"no algorithm of {A.executor.name} holds the entries in its plan: keep the matrix"
    )
    return (
        f"plan_only: {A.plan.kernel!r}, which multiplies this matrix ({A.plan.reason}), reads its "
        f"arrays in every product, so that they cannot be given up; {way_out}"
    )
