"""Rows of one matrix for the ghosts of another matrix, sent by the members that own them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..formats import Csr as LocalCsr
from ..links import Move
from .halo import fill_ghosts
from .index_arrays import host, index_array, keeps_whole, like, values_here
from .overlap import GhostRows, rows_of_ghosts

if TYPE_CHECKING:
    from ..executor import Array
    from .matrix import Csr

HostArray = np.ndarray[Any, Any]


def ghost_rows(A: Csr, rows: LocalCsr, ghosts: HostArray, first: int, local_rows: int) -> GhostRows:
    """Return rows for the ghosts of a matrix, from the members that own them; collective.

    Parameters
    ----------
    A : Csr
        The matrix with the ghosts.
    rows : Csr
        The member's rows of another matrix: its own columns from 0 on, then ghosts.
    ghosts : array of int64
        The new numbers of the ghosts in ``rows``.
    first, own : int
        The new number of the member's first column in ``rows``, and the number of its columns.
    """
    if keeps_whole(A.executor):
        return _on_device(A, rows, ghosts, first, local_rows)
    executor = A.executor
    numbers, data = index_array(executor, rows.indices), values_here(executor, rows.data)

    def taken(entries: HostArray) -> tuple[HostArray, HostArray]:
        found = numbers[entries].astype(np.int64)
        places, outside = found + first, found >= local_rows
        places[outside] = ghosts[found[outside] - local_rows]
        return places, data[entries]

    return rows_of_ghosts(A, index_array(executor, rows.indptr), taken)


def _on_device(A: Csr, rows: LocalCsr, ghosts: HostArray, first: int, local_rows: int) -> GhostRows:
    """Collect the rows on the device, and copy them from device to device."""
    executor, halo = A.executor, A.halo
    links, xp = cast(Any, executor.links), executor.xp
    count = rows.shape[0]
    lengths = executor.allocate((count + halo.ghosts,), np.int32)
    lengths[:count] = rows.indptr[1:] - rows.indptr[:-1]
    fill_ghosts(executor, halo, lengths, count, count)
    counts = lengths[halo.send_index]
    mine, theirs = (host(executor, a).astype(np.int64) for a in (counts, lengths[count:]))
    ends, their_ends = (np.concatenate([[0], np.cumsum(a)]) for a in (mine, theirs))
    columns: Array = executor.allocate((0,), np.int64)
    values: Array = executor.allocate((0,), rows.dtype)
    if ends[-1]:
        place = xp.arange(int(ends[-1]), dtype=np.int64)
        row = xp.searchsorted(like(executor, ends[1:], place), place, side="right")
        begins = rows.indptr[halo.send_index] - like(executor, ends[:-1], place)
        entries = place + begins[row]
        columns = rows.indices[entries].astype(np.int64) + first
        if ghosts.size:
            away = xp.flatnonzero(columns >= first + local_rows)
            columns[away] = like(executor, ghosts, place)[columns[away] - (first + local_rows)]
        values = rows.data[entries]
    sends = [(rank, int(ends[a]), int(ends[b])) for rank, a, b in halo.sends]
    receives = [(rank, int(their_ends[a]), int(their_ends[b])) for rank, a, b in halo.receives]
    ((columns, values),) = links.swap([Move((columns, values), sends, receives)])
    return GhostRows(theirs, columns, values)
