"""Transfers of a whole matrix: from all members to some of them, and from the first to all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..formats import Csr as LocalCsr
from ..formats.rowwise import is_known_distinct
from ..links import Move
from .assembly import Blocks, halos_of
from .halo import index_dtype
from .index_arrays import host, keeps_whole, like, namespace, numbered_by_table, stacked, stored
from .matrix import Csr as SharedCsr
from .partition import Partition

if TYPE_CHECKING:
    from ..executor import Executor
    from .matrix import Csr

HostArray = np.ndarray[Any, Any]


def collected(A: Csr, ranks: Collection[int]) -> LocalCsr | None:
    """Return the whole matrix on some members, and None on the others; collective.

    If the links support it, rows are copied from device to device. If the partition renumbers rows,
    they are copied through the hosts.
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
    rows_of_all, entries_of_all = counts[:, 0], counts[:, 1]
    lengths, columns, data = _joined(
        A, ranks, [(rows_of_all, (lengths,)), (entries_of_all, (columns, data))]
    )
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
    """Return the columns of the entries in the whole matrix."""
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


def _joined(
    A: Csr, ranks: Collection[int], parts: Sequence[tuple[HostArray, Sequence[Any]]]
) -> list[Any]:
    """Return the concatenated arrays of all members, in the order of ranks, where requested.

    ``parts`` contains arrays, each with the numbers of elements on all members.
    """
    executor, links = A.executor, A.executor.links
    assert links is not None
    rank = links.rank
    moves = []
    for counts, own in parts:
        mine = int(counts[rank])
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
        moves.append(Move(own, sends, receives))
    result = []
    for (counts, own), found in zip(parts, links.swap(moves), strict=True):
        cut = int(counts[:rank].sum())
        result += [
            stacked(executor, theirs[:cut], array, theirs[cut:])
            for array, theirs in zip(own, found, strict=True)
        ]
    return result


def _pointers(executor: Executor, lengths: Any) -> Any:
    """Return the row pointers for rows of these lengths."""
    xp = namespace(executor, lengths)
    pointers = xp.zeros(int(lengths.size) + 1, lengths.dtype)
    pointers[1:] = xp.cumsum(lengths)
    return pointers


class Whole(NamedTuple):
    """A matrix that only the first member has.

    Attributes
    ----------
    rows, columns : array of int64
        The first row and column of each member, followed by the number of rows and columns.
    matrix : Csr
        The matrix; its rows are in the order of the members.
    """

    rows: HostArray
    columns: HostArray
    matrix: LocalCsr


class _Described(NamedTuple):
    """Data about a matrix of the first member, for the other members.

    Attributes
    ----------
    rows, columns : array of int64
        As in :class:`Whole`.
    ends : list of int
        The first entry of each member's rows, followed by the number of entries.
    kind, dtype : dtype
        The dtypes of the indices and the values.
    distinct : bool
        Whether it is known that there are no duplicates.
    """

    rows: HostArray
    columns: HostArray
    ends: list[int]
    kind: np.dtype[Any]
    dtype: np.dtype[Any]
    distinct: bool


def handed_out(executor: Executor, wholes: Sequence[Whole]) -> list[Csr]:
    """Return this member's parts of matrices that the first member has; collective.

    Rows are copied from device to device. Three messages suffice for all matrices.

    Parameters
    ----------
    executor : Executor
        The member's executor; its links are work on its device.
    wholes : sequence of Whole
        The matrices on the first member; empty on the others.
    """
    links: Any = executor.links
    rank, alone = links.rank, executor.as_member(None)
    told: list[_Described] = links.all(_described(executor, wholes) if wholes else [])[0]
    parts = _parts(executor, told, wholes)
    numbered = []
    for one, (_, indices, _) in zip(told, parts, strict=True):
        first, last = (int(at) for at in one.columns[rank : rank + 2])
        numbered.append(
            numbered_by_table(executor, indices, first, last - first, int(one.columns[-1]))
        )
    ghosts = _on_host(executor, [ghosts for _, ghosts in numbered])
    known: dict[bytes, Partition] = {}

    def partition(offsets: HostArray) -> Partition:
        return known.setdefault(offsets.tobytes(), Partition(offsets))

    halos = halos_of(
        executor,
        [
            (partition(one.columns), found, int(indices.size))
            for one, found, (_, indices, _) in zip(told, ghosts, parts, strict=True)
        ],
    )
    made = []
    for at, one in enumerate(told):
        (pointers, _, data), (numbers, _), (halo, nnz) = parts[at], numbered[at], halos[at]
        blocks = Blocks(
            executor, partition(one.columns), pointers, numbers, ghosts[at], nnz, halo, one.distinct
        )
        values = alone.from_host(data) if isinstance(data, np.ndarray) else data
        made.append(
            SharedCsr(executor, partition(one.rows), partition(one.columns), blocks, values)
        )
    return made


def _described(executor: Executor, wholes: Sequence[Whole]) -> list[_Described]:
    """Return the data about the first member's matrices, after one wait for its device."""
    ends = [
        one.matrix.indptr[like(executor, one.rows, one.matrix.indptr)].astype(np.int64, copy=False)
        for one in wholes
    ]
    return [
        _Described(
            one.rows, one.columns, found.tolist(), np.dtype(one.matrix.indices.dtype),
            np.dtype(one.matrix.data.dtype), is_known_distinct(one.matrix),
        )
        for one, found in zip(wholes, _on_host(executor, ends), strict=True)
    ]  # fmt: skip


def _parts(
    executor: Executor, descriptions: Sequence[_Described], wholes: Sequence[Whole]
) -> list[tuple[Any, Any, Any]]:
    """Return row pointers, columns and values of this member's rows in new arrays."""
    links: Any = executor.links
    rank, others = links.rank, range(1, links.size)
    moves: list[Move] = []
    for at, one in enumerate(descriptions):
        if rank == 0:
            pointers, columns, data = (wholes[at].matrix._native_arrays()[i] for i in (2, 1, 0))
            rows, ends = one.rows.tolist(), one.ends
            moves.append(Move((pointers,), [(r, rows[r], rows[r + 1] + 1) for r in others], []))
            sends = [(r, ends[r], ends[r + 1]) for r in others if ends[r] < ends[r + 1]]
            moves.append(Move((columns, data), sends, []))
            continue
        rows, ends = one.rows[rank : rank + 2].tolist(), one.ends[rank : rank + 2]
        kind, count = one.kind, ends[1] - ends[0]
        empty = executor.allocate((0,), kind), executor.allocate((0,), one.dtype)
        moves.append(Move(empty[:1], [], [(0, 0, rows[1] + 1 - rows[0])]))
        moves.append(Move(empty, [], [(0, 0, count)] if count else []))
    found = links.swap(moves)
    result = []
    for at, one in enumerate(descriptions):
        if rank == 0:
            (pointers,), (columns, data) = moves[2 * at].arrays, moves[2 * at + 1].arrays
            count = one.ends[1]
            own = pointers[: int(one.rows[1]) + 1], columns[:count], data[:count]
            result.append(tuple(array.copy() for array in own))
            continue
        (pointers,), (columns, data) = found[2 * at : 2 * at + 2]
        result.append((pointers - one.ends[rank], columns, data))
    return result


def _on_host(executor: Executor, arrays: Sequence[Any]) -> list[HostArray]:
    """Return arrays on the host after one wait for the device."""
    away = [array for array in arrays if not isinstance(array, np.ndarray) and array.size]
    read = iter(executor.transfer(*away).read() if away else ())
    result = []
    for array in arrays:
        here = array if isinstance(array, np.ndarray) else next(read) if array.size else ()
        result.append(np.asarray(here, np.int64))
    return result
