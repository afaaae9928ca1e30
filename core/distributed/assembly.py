"""A member's part of a matrix: the blocks that it multiplies, and the rows that it exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..formats import Csr as LocalCsr
from ..formats.rowwise import known_distinct
from ..links import Links
from .halo import Halo, index_dtype
from .index_arrays import (
    distinct,
    host,
    index_array,
    interior,
    keeps_whole,
    like,
    namespace,
    numbered,
    stored,
    values_here,
)
from .partition import Partition

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .matrix import Csr

HostArray = np.ndarray[Any, Any]

INT64 = np.dtype(np.int64)


class Blocks:
    """The pattern of a member's rows, divided into a head, an interior and a tail.

    Rows ``begin:end`` are the interior: all their columns belong to the member. The columns of head
    and tail are renumbered: first the member's own columns that occur there, ``touched``, then the
    ghosts.

    If the links are work on a device stream, the rows are not divided: one kernel multiplies all of
    them, and the next operation on the rows can be fused with it. The columns are the member's own
    columns, then the ghosts.

    Parameters
    ----------
    partition : Partition
        The partition of the columns.
    indptr : array of int64, shape (rows + 1,)
        Row pointers.
    numbers : array of int64
        Column numbers: the member's own columns from 0 on, then its ghosts.
    ghosts : array of int64, or None
        The new numbers of columns that belong to other members, in ascending order. None if the
        rows of all members contain only own columns; the members then exchange one message with
        their entry counts only.
    nnz : int, optional
        Number of entries of all members, if it is known.
    halo : Halo, optional
        The rows to exchange, if the members have agreed on them; requires ``nnz``.
    distinct : bool
        Whether it is known that there are no duplicates.

    Attributes
    ----------
    indptr, indices : arrays of the executor
        The pattern of all rows, with the column numbers of head, interior and tail.
    whole : bool
        Whether the rows are not divided.
    touched : array of the executor
        The member's own columns that occur in head and tail.
    """

    def __init__(
        self,
        executor: Executor,
        partition: Partition,
        indptr: HostArray,
        numbers: HostArray,
        ghosts: HostArray | None,
        nnz: int | None = None,
        halo: Halo | None = None,
        distinct: bool = False,
    ) -> None:
        links = executor.links
        assert links is not None
        self.column_partition, self.rank = partition, links.rank
        self.rows, self.columns = int(indptr.size) - 1, partition.count(links.rank)
        self.whole, self.distinct = keeps_whole(executor), distinct
        self.ghosts = np.zeros(0, np.int64) if ghosts is None else ghosts
        if self.whole:
            self._keep_whole(executor, indptr, numbers)
            inner = None
        else:
            inner = interior(executor, indptr, numbers, self.columns)
            self._cut(executor, indptr, numbers, inner)
        entries = int(numbers.size)
        if halo is not None and nnz is not None:
            self.halo, self.nnz = halo, nnz
        elif ghosts is None:
            self.halo = idle_halo(executor, self.columns)
            self.nnz = sum(links.all(entries)) if nnz is None else nnz
        else:
            ((self.halo, self.nnz),) = halos_of(executor, [(partition, self.ghosts, entries)])
        if inner is not None:
            self.halo.find_interior = lambda: inner
        else:
            self.halo.find_interior = partial(
                interior, executor, self.indptr, self.indices, self.columns
            )

    def _keep_whole(self, executor: Executor, indptr: HostArray, numbers: HostArray) -> None:
        """Store all rows as one block."""
        self.begin, self.end, self.touched_rows = 0, self.rows, 0
        kind = index_dtype(max(self.columns + self.ghosts.size, int(numbers.size)))
        self.indptr = stored(executor, indptr, kind)
        self.indices = stored(executor, numbers, kind)
        self.touched = self.indices[:0]

    def _cut(
        self, executor: Executor, indptr: HostArray, numbers: HostArray, inner: tuple[int, int]
    ) -> None:
        """Divide the rows into head, interior and tail."""
        self.begin, self.end = inner
        if not self.ghosts.size:
            kind = index_dtype(max(self.columns, numbers.size))
            self.indptr, self.indices = (stored(executor, a, kind) for a in (indptr, numbers))
            self.touched, self.touched_rows = executor.from_host(np.zeros(0, kind)), 0
            return
        first, last = int(indptr[self.begin]), int(indptr[self.end])
        outer = np.concatenate([numbers[:first], numbers[last:]]).astype(np.int64)
        own = outer < self.columns
        touched, at = distinct(executor, outer[own])
        outer[~own] += touched.size - self.columns
        outer[own] = at
        kind = index_dtype(max(self.columns, touched.size + self.ghosts.size, numbers.size))
        indices = np.empty(numbers.size, kind)
        indices[:first], indices[last:] = outer[:first], outer[first:]
        indices[first:last] = numbers[first:last]
        self.indptr = executor.from_host(indptr.astype(kind))
        self.indices = executor.from_host(indices)
        self.touched = executor.from_host(touched.astype(index_dtype(self.columns)))
        self.touched_rows = int(touched.size)

    def matrices(self, executor: Executor, data: Array) -> list[LocalCsr | None]:
        """Return head, interior and tail as matrices of views, or None where there are no rows.

        Rows that are not divided are the second of the three.
        """
        if self.whole:
            return [None, self.extended(executor, data) if self.rows else None, None]
        outer = self.touched_rows + self.halo.ghosts
        ranges = [
            (0, self.begin, outer),
            (self.begin, self.end, self.columns),
            (self.end, self.rows, outer),
        ]
        return [self._rows(executor, data, *found) for found in ranges]

    def _rows(
        self, executor: Executor, data: Array, begin: int, end: int, columns: int
    ) -> LocalCsr | None:
        if begin == end:
            return None
        first, last = self._cuts[begin], self._cuts[end]
        indptr = self.indptr[begin : end + 1]
        return LocalCsr._from_arrays(
            executor,
            (end - begin, columns),
            data[first:last],
            self.indices[first:last],
            indptr - indptr[0] if first else indptr,
        )

    @cached_property
    def _cuts(self) -> dict[int, int]:
        cuts = {0, self.begin, self.end, self.rows}
        return {at: int(self.indptr[at]) for at in cuts}

    def numbers_here(self, executor: Executor) -> tuple[Any, Any]:
        """Return the result of :meth:`numbers`, where long index arrays are processed."""
        if self.whole:
            return index_array(executor, self.indptr), index_array(executor, self.indices)
        return self.numbers(
            executor, index_dtype(max(self.columns + self.ghosts.size, self.entries))
        )

    @property
    def entries(self) -> int:
        """The number of entries in the member's rows."""
        return int(self.indices.size)

    def numbers(
        self, executor: Executor, dtype: np.dtype[Any] = INT64
    ) -> tuple[HostArray, HostArray]:
        """Return row pointers and column numbers: own columns from 0 on, then ghosts."""
        indptr = np.asarray(executor.to_host(self.indptr)).astype(dtype)
        columns = np.array(executor.to_host(self.indices), dtype)
        if self.whole:
            return indptr, columns
        touched = np.asarray(executor.to_host(self.touched)).astype(dtype)
        ghosts = np.arange(self.columns, self.columns + self.ghosts.size, dtype=dtype)
        named = np.concatenate([touched, ghosts])
        for part in self._outer(indptr):
            columns[part] = named[columns[part]]
        return indptr, columns

    def _outer(self, indptr: HostArray) -> tuple[slice, slice]:
        """Return the slices of the entries of the head and of the tail."""
        first, last = (int(indptr[at]) for at in (self.begin, self.end))
        return slice(0, first), slice(last, self.entries)

    def places(self, executor: Executor) -> tuple[HostArray, HostArray]:
        """Return row pointers, and the new numbers of columns in the whole matrix."""
        indptr, numbers = self.numbers(executor)
        first = int(self.column_partition.offsets[self.rank])
        away = numbers >= self.columns
        made = numbers + first
        made[away] = self.ghosts[numbers[away] - self.columns]
        return indptr, made

    def global_columns(self, executor: Executor) -> tuple[HostArray, HostArray]:
        """Return row pointers, and the columns of the entries in the whole matrix."""
        indptr, places = self.places(executor)
        numbers = self.column_partition.numbers
        return indptr, places if numbers is None else numbers[places]

    def extended(self, executor: Executor, data: Array) -> LocalCsr:
        """Return all rows as a matrix with the member's own columns, then its ghosts."""
        made = self._extended(executor, data)
        return known_distinct(made) if self.distinct else made

    def _extended(self, executor: Executor, data: Array) -> LocalCsr:
        columns = self.columns + self.ghosts.size
        if self.whole or self.end - self.begin == self.rows:
            shape = (self.rows, columns)
            return LocalCsr._from_arrays(executor, shape, data, self.indices, self.indptr)
        indptr, numbers = (executor.from_host(a) for a in self.numbers_here(executor))
        return LocalCsr._from_arrays(executor, (self.rows, columns), data, numbers, indptr)

    def local(self, executor: Executor, data: Array) -> LocalCsr:
        """Return the block of the member's own columns."""
        if not self.ghosts.size and self.end - self.begin == self.rows:  # no ghosts
            shape = (self.rows, self.columns)
            return LocalCsr._from_arrays(executor, shape, data, self.indices, self.indptr)
        indptr, columns = self.numbers_here(executor)
        if not self.whole:
            return self._local_of_cut(executor, indptr, columns, host(executor, data))
        xp = namespace(executor, columns)
        own = columns < self.columns
        kept, before = columns[own], xp.zeros(int(columns.size) + 1, np.int64)
        before[1:] = xp.cumsum(own)
        values = data
        if kept.size < columns.size:
            found = values_here(executor, data)
            values = like(executor, found[like(executor, own, found)], data)
        kind = index_dtype(max(self.columns, int(kept.size)))
        starts = before[like(executor, indptr, before)]
        return LocalCsr._from_arrays(
            executor,
            (self.rows, self.columns),
            values,
            stored(executor, kept, kind),
            stored(executor, starts, kind),
        )

    def _local_of_cut(
        self, executor: Executor, indptr: HostArray, columns: HostArray, data: HostArray
    ) -> LocalCsr:
        """Return the block of own columns: only head and tail contain ghosts."""
        head, tail = self._outer(indptr)
        inner = slice(head.stop, tail.start)
        own = [columns[part] < self.columns for part in (head, tail)]
        left_out = [np.concatenate([[0], np.cumsum(~kept)]) for kept in own]
        starts = indptr.astype(np.int64)
        starts[: self.begin + 1] -= left_out[0][starts[: self.begin + 1]]
        starts[self.end + 1 :] -= left_out[1][starts[self.end + 1 :] - tail.start]
        starts[self.begin + 1 :] -= left_out[0][-1]

        def kept_on_executor(entries: HostArray) -> Array:
            parts = entries[head][own[0]], entries[inner], entries[tail][own[1]]
            return executor.from_host(np.concatenate(parts))

        return LocalCsr._from_arrays(
            executor,
            (self.rows, self.columns),
            kept_on_executor(data),
            kept_on_executor(columns),
            executor.from_host(starts.astype(indptr.dtype)),
        )


def halos_of(
    executor: Executor, requests: Sequence[tuple[Partition, HostArray, int]]
) -> list[tuple[Halo, int]]:
    """Agree with the other members on the rows to exchange, in one message.

    Parameters
    ----------
    executor : Executor
        The member's executor.
    requests : sequence of (Partition, array, int)
        For each halo: the partition of the rows, the new numbers of the ghosts in ascending order,
        and a number to sum over the members, such as the number of entries.

    Returns
    -------
    list of (Halo, int)
        The halos, each with the sum over all members.
    """
    links = executor.links
    assert links is not None
    mine = []
    for partition, ghosts, entries in requests:
        offsets = partition.offsets
        cuts = np.searchsorted(ghosts, offsets)
        wanted = [
            ghosts[a:b] - first for (a, b), first in zip(pairwise(cuts), offsets, strict=False)
        ]
        mine.append((wanted, bool(ghosts.size), entries))
    told = links.alltoall(
        [
            [(wanted[rank], needs, entries) for wanted, needs, entries in mine]
            for rank in range(links.size)
        ]
    )
    result = []
    for at, ((partition, _, _), (wanted, _, _)) in enumerate(zip(requests, mine, strict=True)):
        theirs = [of_rank[at] for of_rank in told]
        counts = [rows.size for rows in wanted]
        made = Halo(executor, [rows for rows, _, _ in theirs], counts, partition.count(links.rank))
        made.idle = not any(needs for _, needs, _ in theirs)
        result.append((made, sum(entries for _, _, entries in theirs)))
    return result


def idle_halo(executor: Executor, columns: int) -> Halo:
    """Return the halo for matrices in which every member has only own columns."""
    links = executor.links
    assert links is not None
    result = Halo(executor, [np.zeros(0, np.int64)] * links.size, [0] * links.size, columns)
    result.idle = True
    return result


def assembled(
    executor: Executor,
    partition: Partition,
    column_partition: Partition,
    indptr: HostArray,
    indices: HostArray,
    data: HostArray,
) -> Csr:
    """Return the matrix of a member's rows, given the columns of the whole matrix.

    Arrays on the member's device stay there if its rows are not divided.
    """
    links = executor.links
    assert links is not None
    stays = (keeps_whole(executor) or links.alone) and column_partition.numbers is None
    if not stays:
        indptr, indices, data = (host(executor, array) for array in (indptr, indices, data))
    if isinstance(data, np.ndarray):
        data = executor.from_host(np.ascontiguousarray(data))
    values = executor.copy(data)
    places = column_partition.places(indices)
    return of_places(executor, partition, column_partition, indptr, places, values)


def of_places(
    executor: Executor,
    partition: Partition,
    column_partition: Partition,
    indptr: HostArray,
    places: HostArray,
    data: Array,
) -> Csr:
    """Return the matrix of a member's rows, given the new numbers of the columns."""
    from .matrix import Csr

    links = executor.links
    assert links is not None
    first, columns = int(column_partition.offsets[links.rank]), column_partition.count(links.rank)
    numbers = places - first
    away = namespace(executor, numbers).flatnonzero((numbers < 0) | (numbers >= columns))
    ghosts = numbered(executor, away, places[away], columns, numbers)
    blocks = Blocks(executor, column_partition, indptr, numbers, ghosts)
    return Csr(executor, partition, column_partition, blocks, data)


class HostRows(NamedTuple):
    """A member's rows on the host, with the columns of the whole matrix."""

    indptr: HostArray
    columns: HostArray
    values: HostArray


def transposed_rows(
    links: Links,
    partition: Partition,
    column_partition: Partition,
    own_rows: HostRows,
) -> HostRows:
    """Return a member's rows of the transpose.

    Entries are sent to the owner of their column. The entries of each row of the transpose are in
    the order of the original rows.
    """
    rows = partition.rows(links.rank)[
        np.repeat(np.arange(own_rows.indptr.size - 1), np.diff(own_rows.indptr))
    ]
    places = column_partition.places(own_rows.columns)
    owners = column_partition.owner(places)
    sent = [
        (places[mine], rows[mine], own_rows.values[mine])
        for mine in (owners == rank for rank in range(links.size))
    ]
    received = links.alltoall(sent)
    places, columns, values = (np.concatenate([part[i] for part in received]) for i in range(3))
    local = places - column_partition.offsets[links.rank]
    order = np.lexsort((columns, local))
    counts = np.bincount(local, minlength=column_partition.count(links.rank))
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return HostRows(pointers, columns[order], values[order])
