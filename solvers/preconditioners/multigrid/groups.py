"""Levels that a group of executors shares, and levels that every member has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.distributed.assembly import assembled
from ....core.distributed.gathered import Gathered
from ....core.distributed.matrix import Csr as SharedCsr
from ....core.distributed.partition import Partition
from ....core.errors import InvalidArgument, ShapeMismatch
from ....core.formats import Csr, Diagonal
from ....core.formats.arithmetic import add

if TYPE_CHECKING:
    from ....core.linop import LinOp

#: Rows of a level that is gathered on every member. Its cycle takes some 0.1 ms on one member;
#: shared, each of its products would wait for the others.
GATHERED = 8192


def lumped(A: Any) -> Csr:
    """Return a member's block, with its rows' couplings to other members on the diagonal.

    Rows keep their sums, so that interpolation within the block takes the constant to itself where
    the matrix has rows that add up to zero.
    """
    block: Csr = A.local
    if not A.halo.ghosts:
        return block
    rows: Csr = A.extended
    executor, columns = block.executor, rows.shape[1]
    ghosts = np.zeros((columns, 1), A.dtype)
    ghosts[block.shape[1] :] = 1
    sums = executor.allocate((block.shape[0], 1), A.dtype)
    rows._apply(executor.from_host(ghosts), sums, 1.0, 0.0)
    return add(block, Diagonal._from_arrays(executor, block.shape, sums.reshape(-1)))


def spread(P: Csr, A: Any) -> SharedCsr:
    """Return the interpolation of all members, each of which has its own coarse rows alone."""
    links = A.executor.links
    counts = links.all(P.shape[1])
    coarse = Partition(np.concatenate([[0], np.cumsum(counts)]))
    made: SharedCsr = A._of_own_columns(A.partition, coarse, P, P.data)
    return made


def without_empty_rows(A: SharedCsr) -> SharedCsr:
    """Return the matrix of a coarse level with 1 where its diagonal is 0; itself if it has none.

    Near null vectors that depend on each other within an aggregate leave unknowns that nothing is
    interpolated from: their rows are empty.
    """
    links: Any = A.executor.links
    missing = np.asarray(A.executor.to_host(A.diagonal())) == 0
    if not links.any(bool(missing.any())):
        return A
    indptr, columns, data = A._global_rows()
    rows = np.flatnonzero(missing)
    own = A.partition.rows(links.rank)[rows]
    at = indptr[rows + 1]
    before = np.concatenate([[0], np.cumsum(missing)])
    return assembled(
        A.executor,
        A.partition,
        A.column_partition,
        indptr + before,
        np.insert(columns, at, own),
        np.insert(data, at, np.ones(rows.size, data.dtype)),
    )


def gathered(A: SharedCsr, make: Callable[[Csr], Any]) -> Gathered:
    """Return the result of every member for the whole matrix, as an operator of their parts."""
    alone = A.executor.as_member(None)
    inner: LinOp = make(Csr(A.to_local(), executor=alone))
    # an operator driven by the host has its own sums: it stays with an executor that is alone
    return Gathered(A, inner.to(A.executor) if inner.resident else inner)


def check_nodes(A: Any, size: int) -> None:
    """Raise InvalidArgument where a member has a part of a node of several unknowns."""
    if size > 1 and np.any(A.partition.offsets % size):
        raise InvalidArgument(
            f"block_size: members begin at rows {A.partition.offsets[:-1].tolist()}, and nodes "
            f"have {size} unknowns each: distribute the matrix with offsets that are multiples of "
            f"{size}"
        )


def own_rows(A: Any, near: Any) -> Any:
    """Return this member's rows of the near null space: of a whole one, or of its part."""
    if near.shape[0] == A.shape[0]:
        return A.partition.part(np.asarray(near), A.executor.links.rank)
    if near.shape[0] != A.local_rows:
        raise ShapeMismatch(
            f"near_null: expected {A.shape[0]} rows, or the {A.local_rows} of this member; got "
            f"{near.shape[0]}"
        )
    return near
