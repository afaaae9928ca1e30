"""Transposes of distributed matrices: entries are sent to the members that own their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..formats import Csr as LocalCsr
from .halo import index_dtype
from .index_arrays import host, index_array, like, namespace, stacked, stored, values_here
from .products import Columns, shared_rows

if TYPE_CHECKING:
    from ..executor import Executor
    from .matrix import Csr
    from .partition import Partition

HostArray = np.ndarray[Any, Any]


class SortedEntries(NamedTuple):
    """Entries of a matrix, sorted by row in ascending order.

    Attributes
    ----------
    rows : array of int64
        The new numbers of the rows.
    columns : array of int64
        Numbers of the columns, all of one member.
    values : array
        The values.
    """

    rows: HostArray
    columns: HostArray
    values: HostArray


def entries_of_others(
    executor: Executor, partition: Partition, columns: Partition, ghosts: HostArray, rows: LocalCsr
) -> SortedEntries:
    """Return the entries of other members' rows in this member's columns; collective.

    Parameters
    ----------
    executor : Executor
        The member's executor.
    partition, columns : Partition
        The partitions of the rows and of the columns.
    ghosts : array of int64
        The new numbers of the ghosts, the columns of other members, in ascending order.
    rows : Csr
        The member's rows: its own columns from 0 on, then ghosts.
    """
    links: Any = executor.links
    own = columns.count(links.rank)
    indptr, numbers = index_array(executor, rows.indptr), index_array(executor, rows.indices)
    xp = namespace(executor, numbers)
    away = xp.flatnonzero(numbers >= own)
    row, ghost, values = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, rows.dtype)
    if away.size:
        found = xp.searchsorted(like(executor, indptr, numbers), away, side="right") - 1
        row, ghost = (host(executor, a).astype(np.int64) for a in (found, numbers[away]))
        data = values_here(executor, rows.data)
        values = host(executor, data[like(executor, away, data)])
    places = ghosts[ghost - own] if ghost.size else ghost
    row = row + partition.offsets[links.rank]
    owners = columns.owner(places)
    sent = [
        (row[mine], places[mine] - first, values[mine])
        for first, mine in zip(
            columns.offsets, (owners == rank for rank in range(links.size)), strict=False
        )
    ]
    received = links.alltoall(sent)
    return SortedEntries(*(np.concatenate([part[i] for part in received]) for i in range(3)))


def transposed(A: Csr, conjugate: bool) -> Csr:
    """Return the transpose, or the adjoint, with rows in the order of the members.

    A member stacks the rows that have entries in its columns, in the order of all rows, and
    transposes them locally; collective.
    """
    executor, links = A.executor, A.executor.links
    assert links is not None
    rank, own = links.rank, A.column_partition.count(links.rank)
    theirs = entries_of_others(executor, A.partition, A.column_partition, A.ghosts, A.extended)
    known, at = Columns.of(executor, A.partition, rank, theirs.rows)
    lengths = np.bincount(at, minlength=known.count)
    above, below = lengths[: known.below], lengths[known.below + known.own_count :]
    cut = int(above.sum())
    block = A.local
    kind = index_dtype(max(known.count, own, block.nnz + theirs.rows.size))
    indptr = stacked(
        executor,
        np.concatenate([[0], np.cumsum(above)[:-1]]) if above.size else np.zeros(0, np.int64),
        index_array(executor, block.indptr).astype(kind, copy=False) + cut,
        cut + block.nnz + np.cumsum(below),
    )
    indices = stacked(
        executor, theirs.columns[:cut], index_array(executor, block.indices), theirs.columns[cut:]
    )
    data = stacked(
        executor, theirs.values[:cut], values_here(executor, block.data), theirs.values[cut:]
    )
    rows = LocalCsr._from_arrays(
        block.executor,
        (known.count, own),
        like(executor, data, block.data),
        stored(executor, indices, kind),
        stored(executor, indptr, kind),
    )
    turned = rows.transpose()
    turned = turned.conj() if conjugate else turned
    return shared_rows(executor, (A.column_partition, A.partition), turned, known, False)
