"""The block of a member's rows together with its ghosts' rows, and vectors on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..formats import Csr as LocalCsr
from ..operations import vector
from . import halo as exchange
from .halo import index_dtype
from .index_arrays import host, like

if TYPE_CHECKING:
    from ..executor import Array
    from .matrix import Csr

HostArray = np.ndarray[Any, Any]


class GhostRows(NamedTuple):
    """The rows for a member's ghosts, in the order of the ghosts.

    Attributes
    ----------
    lengths : array of the host
        Number of entries of each row.
    columns, values : arrays
        The new numbers of the columns, and the values: on the device if its links copy between
        devices, otherwise on the host.
    """

    lengths: HostArray
    columns: Any
    values: Any


def overlapping_block(A: Csr) -> LocalCsr:
    """Return the square block of a member's rows, followed by its ghosts' rows; collective.

    The members that own the ghosts send their rows. Columns that are neither own columns nor ghosts
    of the member are left out.
    """
    rows = A._global_rows()
    ghosts = rows_of_ghosts(
        A, rows.indptr, lambda entries: (rows.columns[entries], rows.values[entries])
    )
    lengths = np.concatenate([np.diff(rows.indptr), ghosts.lengths])
    columns = np.concatenate([rows.columns, ghosts.columns])
    data = np.concatenate([rows.values, ghosts.values])
    numbers = _numbers(A, columns)
    rows_of = np.repeat(np.arange(lengths.size), lengths)
    kept = numbers >= 0
    counts = np.bincount(rows_of[kept], minlength=lengths.size)
    size = int(lengths.size)
    kind = index_dtype(max(size, int(kept.sum())))
    executor = A.executor.as_member(None)
    return LocalCsr._from_arrays(
        executor,
        (size, size),
        executor.from_host(data[kept]),
        executor.from_host(numbers[kept].astype(kind)),
        executor.from_host(np.concatenate([[0], np.cumsum(counts)]).astype(kind)),
    )


def rows_of_ghosts(
    A: Csr, indptr: Array, entries_at: Callable[[HostArray], tuple[HostArray, HostArray]]
) -> GhostRows:
    """Return the rows for the ghosts of a matrix, from the members that own them; collective.

    Parameters
    ----------
    A : Csr
        The matrix with the ghosts.
    indptr : array
        Row pointers of the member's own rows, on the host or on its executor; their number is the
        length of its part of the vectors to which ``A`` is applied.
    entries_at : callable
        Returns the columns and the values of given entries in these rows.

    Returns
    -------
    GhostRows
        The rows on the host.
    """
    executor, links = A.executor, cast(Any, A.executor.links)
    sent = like(executor, A.halo.send_index, indptr)
    first, last = (host(executor, indptr[at]).astype(np.int64) for at in (sent, sent + 1))
    counts = last - first
    ends = np.cumsum(counts)
    entries = np.repeat(first - (ends - counts), counts) + np.arange(int(counts.sum()))
    columns, data = entries_at(entries)
    starts = np.concatenate([[0], ends])
    asked: list[Any] = [None] * links.size
    for rank, begin, end in A.halo.sends:
        part = slice(int(starts[begin]), int(starts[end]))
        asked[rank] = (counts[begin:end], columns[part], data[part])
    none = (np.zeros(0, np.int64), columns[:0], data[:0])
    found = [none, *(rows for rows in links.alltoall(asked) if rows is not None)]
    lengths, others, values = (np.concatenate([rows[i] for rows in found]) for i in range(3))
    return GhostRows(lengths, others, values)


def _numbers(A: Csr, columns: HostArray) -> HostArray:
    """Return the positions of columns of the whole matrix in the block, -1 if not in it."""
    partition, rank = A.column_partition, A.executor.links.rank  # type: ignore[union-attr]
    places = partition.places(columns)
    first, own = int(partition.offsets[rank]), partition.count(rank)
    ghosts = A.ghosts
    numbers = places - first
    away = (numbers < 0) | (numbers >= own)
    at = np.minimum(np.searchsorted(ghosts, places), max(ghosts.size - 1, 0))
    known = ghosts[at] == places if ghosts.size else np.zeros(places.size, bool)
    return np.where(away, np.where(known, own + at, -1), numbers)


def with_ghosts(A: Csr, x: Array, extended: Array, packed: Array) -> None:
    """Set ``extended`` to a member's rows of a vector, followed by its ghosts."""
    run, halo, rows = A.executor.run, A.halo, A.local_rows
    if not halo.idle and A.executor.links.fuses:  # type: ignore[union-attr]
        run(vector.axpby, x, extended[:rows], 1.0, 0.0)
        run(exchange.push, halo, x, extended[rows:])
        return
    if not halo.idle:
        if halo.packed:
            run(vector.gather, halo.send_index, x, packed, 1.0, 0.0)
        run(exchange.send, halo, packed, extended[rows:])
    run(vector.axpby, x, extended[:rows], 1.0, 0.0)
    if not halo.idle:
        run(exchange.receive, halo, extended[rows:])
