"""Products of distributed matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, ShapeMismatch
from ..formats import Csr as LocalCsr
from ..formats.arithmetic import matmul as local_product
from ..formats.rowwise import is_known_distinct
from .assembly import Blocks
from .ghost_rows import ghost_rows
from .halo import index_dtype
from .index_arrays import distinct, host, index_array, keeps_whole, like, namespace, stacked, stored

if TYPE_CHECKING:
    from ..executor import Executor
    from .matrix import Csr
    from .partition import Partition

HostArray = np.ndarray[Any, Any]


def matmul(A: Csr, B: Csr) -> Csr:
    """Return the sparse product of two matrices; collective.

    A member receives the rows of ``B`` that its rows of ``A`` need from other members, and
    multiplies locally. If the members' rows are consecutive, every entry is the sum that one
    executor computes, in the same order.

    Raises
    ------
    ShapeMismatch
        If the number of columns of ``A`` differs from the number of rows of ``B``.
    InvalidArgument
        If the columns of ``A`` and the rows of ``B`` have different partitions.
    """
    if A.shape[1] != B.shape[0]:
        raise ShapeMismatch(
            f"no product of {A.shape[0]}x{A.shape[1]} and {B.shape[0]}x{B.shape[1]}"
        )
    if A.column_partition != B.partition:
        raise InvalidArgument(
            "a product of matrices that a group shares: the members that have rows of the second "
            "one have the same columns of the first one; distribute it with columns=B.partition"
        )
    dtype = np.result_type(A.dtype, B.dtype)
    A, B = A.astype(dtype), B.astype(dtype)
    known, rows = rows_needed(A, B.column_partition, B.extended, B.ghosts)
    product = local_product(A.extended, rows)
    idle = A.halo.idle and B.halo.idle
    return shared_rows(A.executor, (A.partition, B.column_partition), product, known, idle)


def shared_rows(
    executor: Executor,
    partitions: tuple[Partition, Partition],
    rows: LocalCsr,
    known: Columns,
    idle: bool,
) -> Csr:
    """Return the matrix that consists of the members' rows; collective.

    Parameters
    ----------
    executor : Executor
        The member's executor.
    partitions : (Partition, Partition)
        The partitions of the rows and the columns.
    rows : Csr of this member's executor
        The rows; their column indices are positions in ``known``.
    known : Columns
        The columns of the rows.
    idle : bool
        Whether the rows of all members have only own columns.
    """
    from .matrix import Csr as SharedCsr

    indptr, found = index_array(executor, rows.indptr), index_array(executor, rows.indices)
    numbers, used = known.numbered(executor, found)
    ghosts = None if idle else known.beside[used]
    distinct = is_known_distinct(rows)
    blocks = Blocks(executor, partitions[1], indptr, numbers, ghosts, distinct=distinct)
    return SharedCsr(executor, *partitions, blocks, rows.data)


@dataclass(frozen=True)
class Columns:
    """The columns of a product or a sum on a member, in the order of their new numbers.

    Attributes
    ----------
    beside : array of int64
        The new numbers of the columns of other members.
    below, own_count : int
        The number of these before the member's own columns, and the number of own columns.
    """

    beside: HostArray
    below: int
    own_count: int

    @classmethod
    def of(
        cls, executor: Executor, partition: Partition, rank: int, places: Any
    ) -> tuple[Columns, Any]:
        """Return a member's own columns merged with others, and the positions of the latter.

        Parameters
        ----------
        executor : Executor
            The member's executor.
        partition : Partition
            The partition of the columns.
        rank : int
            Rank of the member.
        places : array of int64
            The new numbers of columns of other members, in any order, on the host or the device.
        """
        first, own = int(partition.offsets[rank]), partition.count(rank)
        # Own columns lie between those of others; without them the numbers have a smaller range.
        xp = namespace(executor, places)
        beside, at = distinct(executor, xp.where(places >= first + own, places - own, places))
        below = int(np.searchsorted(beside, first))
        made = cls(np.where(beside < first, beside, beside + own), below, own)
        return made, xp.where(at < below, at, at + own)

    @property
    def count(self) -> int:
        """The number of columns."""
        return int(self.beside.size) + self.own_count

    def positions(self, executor: Executor, numbers: Any, ghosts: HostArray) -> Any:
        """Return the positions of the columns of a member's own rows among all columns.

        Parameters
        ----------
        executor : Executor
            The member's executor.
        numbers : array of int
            Column numbers: the member's own columns from 0 on, then its ghosts.
        ghosts : array of int64
            The positions of the ghosts.
        """
        result = numbers + self.below
        if ghosts.size:
            away = namespace(executor, numbers).flatnonzero(numbers >= self.own_count)
            table = like(executor, ghosts.astype(numbers.dtype), numbers)
            result[away] = table[numbers[away] - self.own_count]
        return result

    def numbered(self, executor: Executor, indices: Any) -> tuple[Any, HostArray]:
        """Return the columns of a product as own columns and ghosts, and the ghosts that occur.

        Parameters
        ----------
        executor : Executor
            The member's executor.
        indices : array of int
            The columns of all entries, as positions among all columns.

        Returns
        -------
        numbers : array of int
            Column numbers: the member's own columns from 0 on, then its ghosts.
        used : array of int64
            The positions of the ghosts among the columns of other members.
        """
        if not self.beside.size:
            return indices, np.zeros(0, np.int64)
        xp = namespace(executor, indices)
        numbers = indices - self.below
        # Most columns are own columns. Viewed as unsigned, negative numbers are large.
        away = xp.flatnonzero(numbers.view(f"u{numbers.dtype.itemsize}") >= self.own_count)
        beside = indices[away]
        beside = xp.where(beside < self.below, beside, beside - self.own_count)
        flags = xp.zeros(self.beside.size, np.int8)
        flags[beside] = 1
        occurs = host(executor, flags) != 0
        ghosts = self.own_count + np.cumsum(occurs) - 1
        numbers[away] = like(executor, ghosts.astype(indices.dtype), indices)[beside]
        return numbers, np.flatnonzero(occurs)


def rows_needed(
    A: Csr, partition: Partition, rows: LocalCsr, ghosts: HostArray
) -> tuple[Columns, LocalCsr]:
    """Return the rows of a matrix for the columns of ``A.extended``, and their columns.

    The columns are in the order of their new numbers, so that the rows of a product are sorted by
    them. Collective.

    Parameters
    ----------
    A : Csr
        The left factor.
    partition : Partition
        The partition of the columns of the right factor.
    rows : Csr
        The member's rows of the right factor: its own columns from 0 on, then ghosts.
    ghosts : array of int64
        The new numbers of the ghosts, in ascending order.
    """
    executor = A.executor
    rank = executor.links.rank  # type: ignore[union-attr]
    first, own = int(partition.offsets[rank]), partition.count(rank)
    if A.halo.idle and not ghosts.size:
        return Columns(ghosts, 0, own), rows
    whole = keeps_whole(executor)
    indptr, numbers, data = rows.indptr, rows.indices, rows.data
    if not whole:
        indptr, numbers, data = (host(executor, a) for a in (indptr, numbers, data))
    theirs, lengths, values = like(executor, np.zeros(0, np.int64), numbers), ghosts[:0], data[:0]
    if not A.halo.idle:
        lengths, theirs, values = ghost_rows(A, rows, ghosts, first, own)
    xp = namespace(executor, theirs)
    outside = xp.flatnonzero((theirs < first) | (theirs >= first + own))
    beside = xp.concatenate([like(executor, ghosts, theirs), theirs[outside]])
    known, at = Columns.of(executor, partition, rank, beside)
    theirs = theirs - first + known.below
    theirs[outside] = at[ghosts.size :]
    kind = index_dtype(max(known.count, int(numbers.size) + int(theirs.size)))
    entries = int(numbers.size)
    numbers = numbers.astype(kind, copy=False)
    columns = known.positions(executor, numbers, host(executor, at[: ghosts.size]))
    if lengths.size:
        columns = stacked(executor, theirs[:0], columns, theirs)
        data = stacked(executor, values[:0], data, values)
        ends = entries + np.cumsum(lengths)
        indptr = stacked(executor, ends[:0], indptr.astype(kind, copy=False), ends)
    return known, LocalCsr._from_arrays(
        rows.executor,
        (int(indptr.size) - 1, known.count),
        like(executor, data, rows.data),
        stored(executor, columns, kind),
        stored(executor, indptr, kind),
    )
