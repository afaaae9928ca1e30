"""Products of matrices that a group shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, ShapeMismatch
from ..formats import Csr as LocalCsr
from ..formats.arithmetic import matmul as local_product
from .assembly import Blocks
from .halo import index_dtype
from .index_arrays import distinct, here, host, like, namespace, stored, values_here
from .overlap import rows_of_ghosts

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .matrix import Csr
    from .partition import Partition

HostArray = np.ndarray[Any, Any]


def matmul(A: Csr, B: Csr) -> Csr:
    """Return the sparse product of two matrices; all members must ask.

    A member receives the rows of ``B`` that its rows of ``A`` need of others, and multiplies them
    by itself: an entry is the sum that one executor computes, in the same order, where members have
    rows that follow one another.

    Raises
    ------
    ShapeMismatch
        If ``A`` has not as many columns as ``B`` has rows.
    InvalidArgument
        If other members have the columns of ``A`` than the rows of ``B``.
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
    known, rows = _rows_needed(A, B)
    product = local_product(A.extended, rows)
    idle = A.halo.idle and B.halo.idle
    return shared_rows(A, B.column_partition, product, known, idle)


def shared_rows(
    A: Csr, column_partition: Partition, rows: LocalCsr, known: Columns, idle: bool
) -> Csr:
    """Return the matrix of a member's rows, which has the rows of ``A``; all members must ask.

    Parameters
    ----------
    A : Csr
        Members have the same rows of it.
    column_partition : Partition
        Who has which columns.
    rows : Csr of this member's executor
        The rows, with columns by their positions in ``known``.
    known : Columns
        The columns of the rows.
    idle : bool
        Whether the rows of all members have own columns alone.
    """
    from .matrix import Csr as SharedCsr

    executor = A.executor
    indptr, found = here(executor, rows.indptr), here(executor, rows.indices)
    numbers, used = known.numbered(executor, found)
    ghosts = None if idle else known.beside[used]
    blocks = Blocks(executor, column_partition, indptr, numbers, ghosts)
    return SharedCsr(executor, A.partition, column_partition, blocks, rows.data)


@dataclass(frozen=True)
class Columns:
    """The columns of a product or a sum on a member, in the order of their new numbers.

    Attributes
    ----------
    beside : array of int64
        The new numbers of the columns of other members.
    below, own : int
        How many of those come before the member's own columns, and how many are its own.
    """

    beside: HostArray
    below: int
    own: int

    @classmethod
    def of(cls, partition: Partition, rank: int, places: HostArray) -> tuple[Columns, HostArray]:
        """Return a member's own columns with other members' columns, and where the latter are.

        Parameters
        ----------
        partition : Partition
            Who has which columns.
        rank : int
            The member.
        places : array of int64
            The new numbers of columns of other members, in any order.
        """
        first, own = int(partition.offsets[rank]), partition.count(rank)
        # own columns lie between other members' columns: without them the numbers are closer
        beside, at = distinct(np.where(places >= first + own, places - own, places))
        below = int(np.searchsorted(beside, first))
        made = cls(np.where(beside < first, beside, beside + own), below, own)
        return made, np.where(at < below, at, at + own)

    @property
    def count(self) -> int:
        """How many columns there are."""
        return int(self.beside.size) + self.own

    def positions(self, executor: Executor, numbers: Any, ghosts: HostArray) -> Any:
        """Return the positions among all columns of the columns of a member's own rows.

        Parameters
        ----------
        executor : Executor
            Of the member.
        numbers : array of int
            The member's own columns from 0 on, then its ghosts.
        ghosts : array of int64
            The positions of the ghosts.
        """
        if not ghosts.size:
            return numbers + self.below
        xp = namespace(executor, numbers)
        away = numbers >= self.own
        table = like(executor, ghosts.astype(numbers.dtype), numbers)
        return xp.where(away, table[xp.where(away, numbers - self.own, 0)], numbers + self.below)

    def numbered(self, executor: Executor, found: Any) -> tuple[Any, HostArray]:
        """Return the columns of a product as own ones and ghosts, and the ghosts that occur.

        Parameters
        ----------
        executor : Executor
            Of the member.
        found : array of int
            The columns of all entries, by their positions among all columns.

        Returns
        -------
        numbers : array of int
            The member's own columns from 0 on, then its ghosts.
        used : array of int64
            The positions of the ghosts among the columns of other members.
        """
        if not self.beside.size:
            return found, np.zeros(0, np.int64)
        xp = namespace(executor, found)
        own = found - self.below
        away = (own < 0) | (own >= self.own)
        beside = xp.where(found < self.below, found, own - self.own + self.below)
        flags = xp.zeros(self.beside.size, np.int8)
        flags[beside[away]] = 1
        occurs = host(executor, flags) != 0
        ghosts = self.own + np.cumsum(occurs) - 1
        table = like(executor, ghosts.astype(found.dtype), found)
        numbers = xp.where(away, table[xp.where(away, beside, 0)], own)
        return numbers, np.flatnonzero(occurs)


def _rows_needed(A: Csr, B: Csr) -> tuple[Columns, LocalCsr]:
    """Return the rows of ``B`` for the columns of ``A.extended``, and which columns they have.

    Columns are in the order of their new numbers, so that rows of the product are sorted by them.
    """
    executor, partition = A.executor, B.column_partition
    rank = executor.links.rank  # type: ignore[union-attr]
    first, own = int(partition.offsets[rank]), partition.count(rank)
    if A.halo.idle and not B.ghosts.size:
        return Columns(B.ghosts, 0, own), B.extended
    indptr, numbers = B._blocks.numbers_here(executor)
    data = values_here(executor, B.data)

    def taken(entries: HostArray) -> tuple[HostArray, HostArray]:
        at = like(executor, entries, numbers)
        found = host(executor, numbers[at]).astype(np.int64)
        places, outside = found + first, found >= own
        places[outside] = B.ghosts[found[outside] - own]
        return places, host(executor, data[like(executor, entries, data)])

    none = np.zeros(0, np.int64)
    lengths, others, values = none, none, np.zeros(0, B.dtype)
    if not A.halo.idle:
        lengths, others, values = rows_of_ghosts(A, indptr, taken)
    outside = (others < first) | (others >= first + own)
    known, at = Columns.of(partition, rank, np.concatenate([B.ghosts, others[outside]]))
    theirs = others - first + known.below
    theirs[outside] = at[B.ghosts.size :]
    kind = index_dtype(max(known.count, int(numbers.size) + theirs.size))
    entries = int(numbers.size)
    numbers = numbers.astype(kind, copy=False)
    columns = known.positions(executor, numbers, at[: B.ghosts.size])
    if lengths.size:
        columns, data = _joined(executor, columns, theirs), _joined(executor, data, values)
        ends = entries + np.cumsum(lengths)
        indptr = _joined(executor, indptr.astype(kind, copy=False), ends)
    stacked = LocalCsr._from_arrays(
        executor.as_member(None),
        (int(indptr.size) - 1, known.count),
        like(executor, data, B.data),
        stored(executor, columns, kind),
        stored(executor, indptr, kind),
    )
    return known, stacked


def _joined(executor: Executor, own: Array, others: HostArray) -> Any:
    """Return a member's own numbers, and after them the numbers that the host has."""
    more = like(executor, others.astype(own.dtype, copy=False), own)
    return namespace(executor, own).concatenate([own, more])
