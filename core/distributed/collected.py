"""The whole matrix on some members of a group, from the rows of all, and the way back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formats import Csr as LocalCsr
from .halo import index_dtype
from .index_arrays import host, keeps_whole, like, namespace, stacked, stored
from .products import Columns, shared_rows

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .matrix import Csr
    from .partition import Partition

HostArray = np.ndarray[Any, Any]


def collected(A: Csr, ranks: Collection[int]) -> LocalCsr | None:
    """Return the whole matrix on the executors of some members, else None; all must ask.

    Rows are copied from device to device where links do. A partition that gives rows other numbers
    takes the way over the hosts.
    """
    executor = A.executor
    alone, links = executor.as_member(None), executor.links
    assert links is not None
    is_asked = links.rank in ranks
    if A.partition.numbers is not None or A.column_partition.numbers is not None:
        whole = A.to_first() if set(ranks) == {0} else A.to_local()
        return LocalCsr(whole, executor=alone) if is_asked else None
    rows = A.extended
    indptr, numbers, data = rows.indptr, rows.indices, rows.data
    if not keeps_whole(executor):
        indptr, numbers, data = (host(executor, a) for a in (indptr, numbers, data))
    counts = np.array(links.all((A.local_rows, A.local_nnz)))
    kind = index_dtype(max(A.shape[1], int(counts[:, 1].sum())))
    columns = _numbers_of_all(A, numbers).astype(kind, copy=False)
    lengths = (indptr[1:] - indptr[:-1]).astype(kind, copy=False)
    lengths = _joined(A, counts[:, 0], ranks, lengths)[0]
    columns, data = _joined(A, counts[:, 1], ranks, columns, data)
    if not is_asked:
        return None
    pointers = _pointers(executor, lengths)
    return LocalCsr._from_arrays(
        alone,
        A.shape,
        like(executor, data, A.data) if keeps_whole(executor) else alone.from_host(data),
        stored(executor, columns, kind),
        stored(executor, pointers, kind),
    )


def _numbers_of_all(A: Csr, numbers: Any) -> Any:
    """Return the columns of entries in the whole matrix."""
    executor, partition = A.executor, A.column_partition
    assert executor.links is not None
    first, own = int(partition.offsets[executor.links.rank]), partition.count(executor.links.rank)
    columns = numbers.astype(np.int64) + first
    if A.ghosts.size:
        xp = namespace(executor, columns)
        away = xp.flatnonzero(columns >= first + own)
        table = like(executor, A.ghosts, columns)
        columns[away] = table[columns[away] - (first + own)]
    return columns


def _joined(A: Csr, counts: HostArray, ranks: Collection[int], *own: Array) -> list[Any]:
    """Return arrays of all members, one after the other in the order of ranks, where asked for."""
    executor, links = A.executor, A.executor.links
    assert links is not None
    rank, mine = links.rank, int(counts[links.rank])
    sends = [(other, 0, mine) for other in ranks if other != rank]
    receives = []
    if rank in ranks:
        others = np.where(np.arange(links.size) == rank, 0, counts)
        ends = np.cumsum(others)
        receives = [
            (other, int(ends[other] - others[other]), int(ends[other]))
            for other in range(links.size)
            if other != rank
        ]
    found = links.swap(own, sends, receives)
    cut = int(counts[:rank].sum())
    return [
        stacked(executor, theirs[:cut], array, theirs[cut:])
        for array, theirs in zip(own, found, strict=True)
    ]


def _pointers(executor: Executor, lengths: Any) -> Any:
    """Return where rows of these lengths begin."""
    xp = namespace(executor, lengths)
    pointers = xp.zeros(int(lengths.size) + 1, lengths.dtype)
    pointers[1:] = xp.cumsum(lengths)
    return pointers


def handed_out(
    executor: Executor, partition: Partition, columns: Partition, whole: LocalCsr | None
) -> Csr:
    """Return this member's part of a matrix that the first member has; all must ask.

    Rows are copied from device to device where links do.

    Parameters
    ----------
    executor : Executor
        Of the member.
    partition, columns : Partition
        Who has which rows, and which columns; neither gives them other numbers.
    whole : Csr, or None
        The matrix on the first member, None on the others.
    """
    links = executor.links
    assert links is not None
    rank, rows = links.rank, partition.count(links.rank)
    own = _Rows.of(executor, partition, whole)
    ends, kind, dtype = links.all(None if own is None else own.described)[0]
    if own is None:
        own = _Rows.none(executor, kind, dtype)
    offsets = partition.offsets.tolist()
    lengths = own.part(executor, offsets, own.lengths)[0]
    found, values = own.part(executor, ends, own.indices, own.data)
    first, count = int(columns.offsets[rank]), columns.count(rank)
    xp = namespace(executor, found)
    outside = xp.flatnonzero((found < first) | (found >= first + count))
    known, at = Columns.of(executor, columns, rank, found[outside].astype(np.int64))
    found = found - (first - known.below)
    found[outside] = at.astype(kind, copy=False)
    alone = executor.as_member(None)
    part = LocalCsr._from_arrays(
        alone,
        (rows, known.count),
        alone.from_host(values) if isinstance(values, np.ndarray) else values,
        stored(executor, found, kind),
        stored(executor, _pointers(executor, lengths), kind),
    )
    return shared_rows(executor, (partition, columns), part, known, False)


@dataclass(frozen=True)
class _Rows:
    """The arrays of a matrix that the first member has; on the others they are empty.

    Attributes
    ----------
    ends : list of int
        The first entry of the rows of each member, and the number of entries.
    lengths, indices, data : arrays
        Of the matrix.
    """

    ends: list[int]
    lengths: Any
    indices: Any
    data: Any

    @classmethod
    def of(cls, executor: Executor, partition: Partition, whole: LocalCsr | None) -> _Rows | None:
        """Return the arrays of a matrix, where the links read them."""
        if whole is None:
            return None
        indptr, indices, data = whole.indptr, whole.indices, whole.data
        if not keeps_whole(executor):
            indptr, indices, data = (host(executor, a) for a in (indptr, indices, data))
        ends = host(executor, indptr[like(executor, partition.offsets, indptr)]).tolist()
        return cls(ends, indptr[1:] - indptr[:-1], indices, data)

    @classmethod
    def none(cls, executor: Executor, kind: np.dtype[Any], dtype: np.dtype[Any]) -> _Rows:
        """Return empty arrays."""
        make = executor.allocate if keeps_whole(executor) else np.empty
        indices, data = make((0,), kind), make((0,), dtype)
        return cls([], indices, indices, data)

    @property
    def described(self) -> tuple[list[int], np.dtype[Any], np.dtype[Any]]:
        """The ends, and the dtypes of indices and values."""
        return self.ends, np.dtype(self.indices.dtype), np.dtype(self.data.dtype)

    def part(self, executor: Executor, ends: list[int], *arrays: Any) -> list[Any]:
        """Return this member's part of arrays of the first member, as arrays of its own."""
        links = executor.links
        assert links is not None
        if links.rank == 0:
            parts = [(r, ends[r], ends[r + 1]) for r in range(1, links.size)]
            links.swap(arrays, [part for part in parts if part[1] < part[2]], [])
            return [array[: ends[1]].copy() for array in arrays]
        count = ends[links.rank + 1] - ends[links.rank]
        return links.swap(arrays, [], [(0, 0, count)] if count else [])
