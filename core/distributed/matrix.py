"""The rows of a distributed sparse matrix on one member of a group."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..dtypes import double_dtype, is_complex, requested_dtype, storage_dtype
from ..errors import (
    InvalidArgument,
    InvalidMatrix,
    UnsupportedOperation,
)
from ..factors import number
from ..formats import Csr as LocalCsr
from ..formats.elementwise import scaled
from ..formats.stored import StoredCsr, computing_in
from ..lazy import Temporary
from ..linop import FACTS, LinOp
from ..operands import native, new_values
from ..operations import vector
from ..room import with_room
from ..small_values import as_dtype, conjugated
from . import halo as exchange
from .assembly import Blocks, HostRows, assembled, transposed_rows
from .build import from_rows
from .index_arrays import index_array
from .norms import norm
from .partition import Partition
from .products import matmul
from .report import PartitionReport, share_of
from .selection import selected
from .sums import add
from .transposes import transposed

if TYPE_CHECKING:
    from ..executor import Array, Executor

HostArray = np.ndarray[Any, Any]


class _Reports:
    """Makes the report about a matrix's partition as long as the matrix exists."""

    def __init__(self, A: Csr) -> None:
        self._matrix = weakref.ref(A)

    def __call__(self) -> PartitionReport:
        A = self._matrix()
        if A is None:
            raise InvalidArgument("partition: its matrix is gone, and a report is of a matrix")
        return A.partition_report()


class Csr(LinOp):
    """A sparse matrix with rows distributed over a group; this object is one member's part.

    :func:`wollemi.distribute` makes it from a whole matrix, :meth:`from_rows` from the rows of each
    member, and :func:`wollemi.read` from a file.

    Attributes
    ----------
    shape : tuple of int
        Shape of the whole matrix.
    local_rows : int
        Number of rows of this member.
    partition, column_partition : Partition
        The partition of the rows, and of the vectors to which the matrix is applied.
    executor : Executor
        This member's executor.
    nnz, local_nnz : int
        Number of entries of the whole matrix, and of this member's rows.

    Notes
    -----
    A product has these steps. The rows of ``x`` that other members need are sent. The *interior*,
    the longest run of rows that need no rows of others, is multiplied. The rows from other members,
    the *ghosts*, arrive. Then the rows before and after the interior are multiplied. Rows keep the
    order of their entries, so the product is bitwise equal to the one on a single executor with the
    same kernels.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, section 11.5.6.
    """

    format: ClassVar[str] = "csr"
    _fixed_attributes: ClassVar[dict[str, str]] = FACTS

    def __init__(
        self,
        executor: Executor,
        partition: Partition,
        column_partition: Partition,
        blocks: Blocks,
        data: Array,
    ) -> None:
        self.executor = executor
        self._partition = partition.reporting(_Reports(self))
        self._column_partition = column_partition
        self.shape = (partition.size_of_vectors, column_partition.size_of_vectors)
        self._blocks, self.data = blocks, data
        self.dtype = np.dtype(data.dtype)
        self._parts: list[LocalCsr | StoredCsr | None] = [*blocks.matrices(executor, data)]
        self._ends = Temporary(), Temporary()
        self._derived: dict[str, Any] = {}
        self._report: PartitionReport | None = None
        self._changes = 0

    @classmethod
    def from_rows(
        cls,
        group: Any,
        rows: Any,
        shape: tuple[int, int],
        *,
        columns: Any = None,
        partition: Any = None,
    ) -> Any:
        """Return the matrix that consists of the members' rows; collective.

        Parameters
        ----------
        group : Group
            The group that shares the matrix.
        rows : tuple (data, indices, indptr), sparse matrix of SciPy, or callable
            The rows of this member with all their entries, and with the columns of the whole
            matrix. By default they follow the rows of the previous member. For a group in one
            process: a list with the rows of each member. A function is called as ``rows(executor)``
            on each member and returns its rows; GPU arrays, for example from ``executor.xp``, stay
            on the GPU.
        shape : tuple of int
            Shape of the whole matrix.
        columns : Partition or sequence of int, optional
            The partition of the vectors to which the matrix is applied. By default it is the
            partition of the rows if the matrix is square, and equal numbers otherwise.
        partition : Partition or sequence of int, optional
            The partition of the rows, for example loaded from a file: a rank passes the rows
            ``partition.rows(rank)``, in this order. By default it follows from the number of rows
            that each member passes.

        Returns
        -------
        Csr
            This member's part; for a group in one process, the operator of all members.

        Raises
        ------
        InvalidMatrix
            If the rows do not describe a matrix of this shape, or if their number differs from the
            partition. :func:`wollemi.distributed.from_contributions` takes contributions to rows
            of other members.
        GroupMismatch
            If the ranks pass different shapes or partitions.
        ShapeMismatch
            If a sparse matrix does not have the number of columns of the whole matrix. Arrays do
            not have a number of columns, so only their column indices are checked.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> group = wl.distributed.Group(["reference", "reference"])
        >>> one = (np.array([2.0]), np.array([0]), np.array([0, 1]))
        >>> two = (np.array([3.0]), np.array([1]), np.array([0, 1]))
        >>> A = wl.distributed.Csr.from_rows(group, [one, two], shape=(2, 2))
        >>> A @ np.ones(2)
        array([2., 3.])
        """
        return from_rows(group, rows, shape, columns, partition)

    # ---- facts

    def partition_report(self) -> PartitionReport:
        """Return the shares of all members; the first call is collective.

        See :meth:`Partition.report`.
        """
        if self._report is None:
            self._report = PartitionReport(tuple(self._links.all(share_of(self))))
        return self._report

    @property
    def partition(self) -> Partition:
        """The partition of the rows."""
        return self._partition

    @property
    def column_partition(self) -> Partition:
        """The partition of the vectors to which the matrix is applied."""
        return self._column_partition

    @property
    def local_rows(self) -> int:
        """The number of rows of this member."""
        return self._blocks.rows

    @property
    def first_row(self) -> int:
        """The new number of this member's first row."""
        return int(self._partition.offsets[self._links.rank])

    @property
    def local_nnz(self) -> int:
        """The number of entries in this member's rows."""
        return int(self.data.size)

    @property
    def nnz(self) -> int:
        """The number of entries of the whole matrix."""
        return self._blocks.nnz

    @property
    def nbytes(self) -> int:
        """The size of this member's part in bytes."""
        return sum(part.nbytes for part in self._parts if part is not None)

    @property
    def halo(self) -> exchange.Halo:
        """The rows of vectors that are exchanged with each member."""
        return self._blocks.halo

    @property
    def ghosts(self) -> HostArray:
        """The new numbers of the ghosts, the columns of other members, in ascending order."""
        return self._blocks.ghosts

    @property
    def _links(self) -> Any:
        return self.executor.links

    @property
    def _values_version(self) -> int:
        return self._changes

    # ---- applying

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self._product(LocalCsr._apply, x, y, alpha, beta)

    def _multiply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self._product(LocalCsr._multiply, x, y, alpha, beta)

    def _product(
        self, rows: Callable[..., None], x: Array, y: Array, alpha: complex, beta: complex
    ) -> None:
        """Multiply; ``rows`` multiplies a block of rows."""
        blocks, run = self._blocks, self.executor.run
        head, interior, tail = self._parts
        if blocks.halo.idle:
            if interior is not None:
                rows(interior, x, y, alpha, beta)
            return
        if blocks.whole:
            self._product_of_whole(rows, x, y, alpha, beta)
            return
        k = int(x.shape[1])
        packed_rows, gathered = self._ends
        inner, outer = slice(blocks.begin, blocks.end), blocks.touched_rows
        with (
            packed_rows.block(self.executor, blocks.halo.packed, k, self.dtype) as packed,
            gathered.block(self.executor, outer + blocks.halo.ghosts, k, self.dtype) as needed,
        ):
            if blocks.halo.packed:
                run(vector.gather, blocks.halo.send_index, x, packed, 1.0, 0.0)
            run(exchange.send, blocks.halo, packed, needed[outer:])
            if interior is not None:
                rows(interior, x, y[inner], alpha, beta)
            if outer:
                run(vector.gather, blocks.touched, x, needed[:outer], 1.0, 0.0)
            run(exchange.receive, blocks.halo, needed[outer:])
            if head is not None:
                rows(head, needed, y[: blocks.begin], alpha, beta)
            if tail is not None:
                rows(tail, needed, y[blocks.end :], alpha, beta)

    def _product_of_whole(
        self, rows: Callable[..., None], x: Array, y: Array, alpha: complex, beta: complex
    ) -> None:
        """Multiply all rows at once: ghosts are stored after the member's own rows of ``x``."""
        executor, halo, k = self.executor, self._blocks.halo, int(x.shape[1])
        own, place = self._blocks.columns, with_room(executor, x, halo.ghosts)
        with ExitStack() as lent:
            if place is None:
                block = self._ends[1].block(executor, own + halo.ghosts, k, self.dtype)
                place = lent.enter_context(block)
                if own:
                    executor.run(vector.axpby, x, place[:own], 1.0, 0.0)
            self._fill_ghosts(x, place[own:])
            if self._parts[1] is not None:
                rows(self._parts[1], place, y, alpha, beta)

    def _fill_ghosts(self, x: Array, ghosts: Array) -> None:
        """Exchange rows of a vector with the other members."""
        run, halo = self.executor.run, self._blocks.halo
        if self._links.fuses:
            run(exchange.push, halo, x, ghosts)
            return
        with self._ends[0].block(self.executor, halo.packed, int(x.shape[1]), self.dtype) as packed:
            if halo.packed:
                run(vector.gather, halo.send_index, x, packed, 1.0, 0.0)
            run(exchange.send, halo, packed, ghosts)
            run(exchange.receive, halo, ghosts)

    @property
    def room(self) -> int:
        """The spare rows after a member's part of a vector that products use if they exist."""
        return self.halo.ghosts if self._blocks.whole and not self.halo.idle else 0

    def _in_double(self) -> LinOp | None:
        result = self._copied()
        result.__dict__["dtype"] = double_dtype(self.dtype)
        result._parts = [
            computing_in(part, result.dtype) if isinstance(part, LocalCsr) else part
            for part in self._parts
        ]
        result._ends, result._derived, result._report = (Temporary(), Temporary()), {}, None
        return result

    def _private(self) -> LinOp:
        result = self._copied()
        result._ends = Temporary(), Temporary()
        return result

    def _copied(self) -> Self:
        result = type(self).__new__(type(self))
        result.__dict__.update(self.__dict__)
        return result

    # ---- other operators

    @property
    def T(self) -> Csr:
        """The transpose, made at the first use; collective."""
        return self._kept_operator("T", lambda: self._transposed(False))

    @property
    def H(self) -> Csr:
        """The conjugate transpose; collective."""
        if not is_complex(self.dtype):
            return self.T
        return self._kept_operator("H", lambda: self._transposed(True))

    def _kept_operator(self, name: str, make: Callable[[], Csr]) -> Csr:
        if name not in self._derived:
            self._derived[name] = make()
        result: Csr = self._derived[name]
        return result

    def _transposed(self, conjugate: bool) -> Csr:
        if self.halo.idle:  # all entries stay on their members
            turned = self.local.transpose()
            data = conjugated(self.executor, turned.data) if conjugate else turned.data
            return self._of_own_columns(self.column_partition, self.partition, turned, data)
        if self.partition.numbers is None and self.column_partition.numbers is None:
            return transposed(self, conjugate)
        rows = transposed_rows(
            self._links, self.partition, self.column_partition, self._global_rows()
        )
        values = rows.values.conj() if conjugate else rows.values
        return assembled(
            self.executor, self.column_partition, self.partition, rows.indptr, rows.columns, values
        )

    def _global_rows(self) -> HostRows:
        """Return this member's rows on the host, with the columns of the whole matrix."""
        to_host = self.executor.to_host
        indptr, columns = self._blocks.global_columns(self.executor)
        return HostRows(indptr, columns, np.asarray(to_host(self.data)))

    def host_rows(self) -> Any:
        """Return this member's rows as a SciPy array of shape (local_rows, n)."""
        from scipy.sparse import csr_array

        rows = self._global_rows()
        arrays = (rows.values, rows.columns, rows.indptr)
        return csr_array(arrays, shape=(self.local_rows, self.shape[1]))

    def _of_own_columns(
        self, partition: Partition, column_partition: Partition, rows: LocalCsr, data: Array
    ) -> Csr:
        """Return the matrix of a member's rows if they have only own columns."""
        indptr, numbers = (index_array(self.executor, a) for a in (rows.indptr, rows.indices))
        blocks = Blocks(self.executor, column_partition, indptr, numbers, None, self.nnz)
        return Csr(self.executor, partition, column_partition, blocks, data)

    @property
    def extended(self) -> LocalCsr:
        """The rows of this member as a matrix of its executor without links.

        Its columns are the member's own columns, then its ghosts in order.
        """
        result: LocalCsr | None = self._derived.get("extended")
        if result is None:
            alone = self.executor.as_member(None)
            result = self._derived["extended"] = self._blocks.extended(alone, self.data)
        return result

    def _after(self, other: LinOp) -> LinOp:
        """Return the product with another operator; it is a matrix if both are matrices."""
        if isinstance(other, Csr):
            return matmul(self, other)
        return super()._after(other)

    def _plus(self, other: LinOp, factor: float = 1.0) -> LinOp:
        """Return the sum with ``factor`` times another operator; of two matrices a matrix."""
        if isinstance(other, Csr):
            return add(self, other, factor)
        return super()._plus(other, factor)

    def __mul__(self, factor: Any) -> Any:
        """Return this matrix times a number."""
        if not isinstance(factor, Number):
            return super().__mul__(factor)
        return self._with_data(scaled(self.extended, number(factor, "factor")).data)

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        """Return rows and columns, which stay on their members; collective.

        Parameters
        ----------
        key : slice, array of int or bool, or a pair of them
            Distinct rows and columns; a pair of integers selects one value.
        """
        with self._links.guarded():
            return selected(self, key)

    @property
    def local(self) -> LocalCsr:
        """The square block of this member's rows and columns, on its executor without links.

        Preconditioners that work within a member use it.
        """
        return self._local_on(self.executor.as_member(None))

    def _local_on(self, executor: Executor) -> LocalCsr:
        found: LocalCsr | None = self._derived.get("local")
        if found is None:
            found = self._derived["local"] = self._blocks.local(self.executor, self.data)
        arrays = found._native_arrays()
        return LocalCsr._from_arrays(executor, found.shape, *arrays)

    @property
    def own_block(self) -> LocalCsr:
        """The same block on this member's executor with links, whose sums go over the group."""
        return self._local_on(self.executor)

    def diagonal(self) -> Array:
        """Return this member's part of the diagonal."""
        return self.extended.diagonal()

    def _norm(self, ord: Any, axis: int | None) -> Any:
        """Return a norm of the whole matrix; collective. See :func:`wollemi.linalg.norm`."""
        return norm(self, ord, axis)

    def to_local(self) -> Any:
        """Return the whole matrix as a SciPy array on every member; collective."""
        return self._stacked(self._links.all(self._lengths_and_entries()))

    def to_first(self) -> Any:
        """Return the whole matrix on the first member, None on the others; collective."""
        sent: list[Any] = [None] * self._links.size
        sent[0] = self._lengths_and_entries()
        parts = self._links.alltoall(sent)
        return self._stacked(parts) if self._links.rank == 0 else None

    def _lengths_and_entries(self) -> tuple[HostArray, HostArray, HostArray]:
        """Return the lengths, columns and values of this member's rows."""
        rows = self._global_rows()
        return np.diff(rows.indptr), rows.columns, rows.values

    def _stacked(self, parts: list[tuple[HostArray, HostArray, HostArray]]) -> Any:
        """Return the rows of all members as one SciPy array."""
        from scipy.sparse import csr_array

        lengths = np.concatenate([part[0] for part in parts])
        stacked = csr_array(
            (
                np.concatenate([part[2] for part in parts]),
                np.concatenate([part[1] for part in parts]),
                np.concatenate([[0], np.cumsum(lengths)]),
            ),
            shape=self.shape,
        )
        places = self.partition._places
        return stacked if places is None else stacked[places]

    def to(self, executor: Executor | str) -> LinOp:
        """Return this matrix; a matrix that a group shares cannot move.

        Raises
        ------
        UnsupportedOperation
            If another executor is requested.
        """
        if self.executor == executor:
            return self
        raise UnsupportedOperation(
            "a matrix that a group shares does not move to another executor: make a matrix of "
            "A.to_local() there, or distribute it anew"
        )

    def astype(self, dtype: Any) -> Csr:
        """Return this matrix with values of ``dtype``; itself if they already have it."""
        dtype = requested_dtype(dtype)
        if dtype == self.dtype:
            return self
        if is_complex(self.dtype) and not is_complex(dtype):
            raise InvalidArgument(f"a {self.dtype} matrix does not become {dtype} by itself")
        return self._with_data(as_dtype(self.executor, self.data, dtype))

    def stored(self, dtype: Any) -> Csr:
        """Return this matrix if its values already have ``dtype``.

        Raises
        ------
        UnsupportedOperation
            If another dtype is requested: a shared matrix stores its values in the dtype in which
            it computes.
        """
        if storage_dtype(dtype, self.dtype) == self.dtype:
            return self
        raise UnsupportedOperation(
            f"stored({str(dtype)!r}): a matrix that a group shares stores its values in the dtype "
            f"that it computes in, {self.dtype}. A.astype makes one that computes in another dtype "
            "too; A.local.stored stores the block of a member's own rows and columns in less"
        )

    def _with_data(self, data: Array) -> Csr:
        return Csr(self.executor, self.partition, self.column_partition, self._blocks, data)

    def with_values(self, data: Any) -> Csr:
        """Return a matrix with this pattern and other values.

        Parameters
        ----------
        data : array, shape (local_nnz,)
            The values, in the order in which this member's rows were passed.
        """
        values = native(self.executor, data, "data")
        if tuple(values.shape) != tuple(self.data.shape):
            raise InvalidMatrix(
                f"with_values: expected data of shape {tuple(self.data.shape)}, got "
                f"{tuple(values.shape)}"
            )
        return self._with_data(self.executor.copy(values))

    def conj(self) -> Csr:
        """Return the complex conjugate; itself if the values are real."""
        return (
            self._with_data(conjugated(self.executor, self.data))
            if is_complex(self.dtype)
            else self
        )

    def update_values(self, data: Any) -> None:
        """Overwrite the values of this member's rows; the pattern stays.

        Parameters
        ----------
        data : array, shape (local_nnz,)
            New values, in the order in which this member's rows were passed.
        """
        self.executor.copy_into(self.data, self._new_values(data))
        self._changes += 1
        self._derived.clear()
        for part in self._parts:
            if part is not None:
                part._tell_sharers()

    def _new_values(self, data: Any) -> Array:
        """Return new values of this member's rows in the dtype of the matrix."""
        shape = tuple(self.data.shape)
        values = new_values(self.executor, data, shape, self.dtype, "matrix")
        result: Array = as_dtype(self.executor, values, self.dtype, copy=True)
        return result

    # ---- vectors

    def scatter(self, whole: Any) -> Array:
        """Return this member's rows of a whole vector or block on its executor."""
        rows = self.column_partition.part(np.asarray(whole), self._links.rank)
        return self.executor.copy(self.executor.from_host(np.ascontiguousarray(rows)))

    def gather(self, part: Any) -> HostArray:
        """Return the whole vector or block as a NumPy array; collective."""
        host = np.asarray(self.executor.to_host(native(self.executor, part, "part")))
        return self.partition.whole(self._links.gathered(host))

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"<distributed {type(self).__name__} {rows}x{columns} {self.dtype}, "
            f"{self.local_rows} rows and {self.local_nnz} entries on {self.executor.full_name}>"
        )
