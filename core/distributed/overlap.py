"""The block of a member's rows and those that they touch, and vectors on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..formats import Csr as LocalCsr
from ..operations import vector
from . import halo as exchange
from .halo import index_dtype

if TYPE_CHECKING:
    from ..executor import Array
    from .matrix import Csr

HostArray = np.ndarray[Any, Any]


def overlapping_block(A: Csr) -> LocalCsr:
    """Return the square block of a member's rows, and after them its ghosts' rows, by themselves.

    The rows of ghosts come from the members that have them; all members must ask. Columns that are
    neither the member's nor ghosts of it are left out.
    """
    links: Any = A.executor.links
    own = A.host_rows()
    send_rows = np.asarray(A.executor.to_host(A.halo.send_index)).astype(np.int64)
    asked: list[Any] = [None] * links.size
    for rank, begin, end in A.halo.sends:
        rows = own[send_rows[begin:end]]
        asked[rank] = (np.diff(rows.indptr), rows.indices, rows.data)
    found = [rows for rows in links.alltoall(asked) if rows is not None]
    lengths = np.concatenate([np.diff(own.indptr), *(rows[0] for rows in found)])
    columns = np.concatenate([own.indices, *(rows[1] for rows in found)]).astype(np.int64)
    data = np.concatenate([own.data, *(rows[2] for rows in found)])
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


def _numbers(A: Csr, columns: HostArray) -> HostArray:
    """Return the numbers that columns of the whole matrix have in the block, -1 for the others."""
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
    """Set ``extended`` to a member's rows of a vector, and after them its ghosts."""
    run, halo, rows = A.executor.run, A.halo, A.local_rows
    if not halo.idle:
        if halo.packed:
            run(vector.gather, halo.send_index, x, packed, 1.0, 0.0)
        run(exchange.send, halo, packed, extended[rows:])
    run(vector.axpby, x, extended[:rows], 1.0, 0.0)
    if not halo.idle:
        run(exchange.receive, halo, extended[rows:])
