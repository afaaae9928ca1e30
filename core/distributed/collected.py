"""The whole matrix on some members of a group, from the rows of all."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formats import Csr as LocalCsr
from .halo import index_dtype
from .index_arrays import host, keeps_whole, like, namespace, stacked, stored

if TYPE_CHECKING:
    from ..executor import Array
    from .matrix import Csr

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
    xp = namespace(executor, lengths)
    pointers = xp.zeros(int(lengths.size) + 1, kind)
    pointers[1:] = xp.cumsum(lengths)
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
