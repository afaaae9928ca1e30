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
from .index_arrays import here, host, like, namespace, numbered, stored, values_here
from .overlap import rows_of_ghosts

if TYPE_CHECKING:
    from .matrix import Csr

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
    from .matrix import Csr as SharedCsr

    executor = A.executor
    indptr, found = here(executor, product.indptr), here(executor, product.indices)
    numbers = found - known.below
    away = (numbers < 0) | (numbers >= known.own)
    others = found[away]
    xp = namespace(executor, found)
    beside = xp.where(others < known.below, others, others - known.own)
    used = numbered(executor, away, beside, known.own, numbers)
    blocks = Blocks(executor, B.column_partition, indptr, numbers, known.beside[used])
    return SharedCsr(executor, A.partition, B.column_partition, blocks, product.data)


@dataclass(frozen=True)
class _Known:
    """The columns of a product on a member, in the order of their new numbers.

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

    def at(self, places: HostArray) -> HostArray:
        """Return where columns of other members stand."""
        found = np.searchsorted(self.beside, places)
        return np.where(found < self.below, found, found + self.own)


def _rows_needed(A: Csr, B: Csr) -> tuple[_Known, LocalCsr]:
    """Return the rows of ``B`` for the columns of ``A.extended``, and which columns they have.

    Columns are in the order of their new numbers, so that rows of the product are sorted by them.
    """
    executor, partition = A.executor, B.column_partition
    rank = executor.links.rank  # type: ignore[union-attr]
    first, own = int(partition.offsets[rank]), partition.count(rank)
    indptr, numbers = B._blocks.numbers_here(executor)
    data = values_here(executor, B.data)
    pointers = host(executor, indptr)

    def taken(entries: HostArray) -> tuple[HostArray, HostArray]:
        at = like(executor, entries, numbers)
        found = host(executor, numbers[at]).astype(np.int64)
        places, outside = found + first, found >= own
        places[outside] = B.ghosts[found[outside] - own]
        return places, host(executor, data[like(executor, entries, data)])

    lengths, others, values = rows_of_ghosts(A, pointers, taken)
    outside = (others < first) | (others >= first + own)
    beside = np.union1d(B.ghosts, others[outside])
    known = _Known(beside, int(np.searchsorted(beside, first)), own)
    mine = numbers + known.below
    if B.ghosts.size:
        away = numbers >= own
        where = like(executor, known.at(B.ghosts).astype(mine.dtype), mine)
        mine[away] = where[numbers[away] - own]
    theirs = others - first + known.below
    theirs[outside] = known.at(others[outside])
    alone, xp = executor.as_member(None), namespace(executor, mine)
    size = int(mine.size) + theirs.size
    kind = index_dtype(max(beside.size + own, size))
    columns = xp.concatenate([mine.astype(kind), like(executor, theirs.astype(kind), mine)])
    ends = np.concatenate([pointers, pointers[-1] + np.cumsum(lengths)])
    if values.size:
        data = namespace(executor, data).concatenate([data, like(executor, values, data)])
    stacked = LocalCsr._from_arrays(
        alone,
        (ends.size - 1, beside.size + own),
        like(executor, data, B.data),
        stored(executor, columns, kind),
        stored(executor, ends, kind),
    )
    return known, stacked
