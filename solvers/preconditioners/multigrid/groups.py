"""Levels that a group of executors shares, and levels that every member has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ....core.distributed.assembly import assembled
from ....core.distributed.collected import Whole, collected, handed_out
from ....core.distributed.gathered import Gathered
from ....core.distributed.index_arrays import host, keeps_whole
from ....core.distributed.matrix import Csr as SharedCsr
from ....core.distributed.partition import Partition
from ....core.errors import InvalidArgument, ShapeMismatch
from ....core.formats import Csr, Diagonal
from ....core.formats.arithmetic import add
from ..jacobi import count_without_inverse
from .levels import LevelMatrices

if TYPE_CHECKING:
    from ....core.linop import LinOp

HostArray = np.ndarray[Any, Any]

#: Where hosts exchange, gather a level with at most this many rows on every member. Its cycle takes
#: some 0.1 ms on one member; if shared, each of its products would wait for the others.
ROWS_ON_HOSTS = 8192

#: Where devices exchange, gather a level with at most this many entries on every member. A product
#: reads them in about 6 microseconds from the cache of a device; a quarter of them with an exchange
#: takes 7.
ENTRIES_ON_DEVICES = 1 << 22

#: Where devices exchange, the first member alone builds the levels below a level with at most this
#: many entries. For a level, four members of one process take 0.3 s and four ranks 0.15 s. One GPU
#: takes 0.02 s and 1.3 ms for each million entries (``benchmarks/results/groups-h100.json``).
ENTRIES_OF_ONE = 100_000_000


def lumped(A: Any) -> Csr:
    """Return a member's block, with its couplings to other members added to the diagonal.

    Row sums are preserved, so that interpolation within the block reproduces constants where the
    matrix has rows that sum to zero.
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
    """Return the interpolation of all members, each with its own coarse rows only."""
    links = A.executor.links
    counts = links.all(P.shape[1])
    coarse = Partition(np.concatenate([[0], np.cumsum(counts)]))
    result: SharedCsr = A._of_own_columns(A.partition, coarse, P, P.data)
    return result


def without_empty_rows(matrices: Sequence[SharedCsr]) -> list[SharedCsr]:
    """Return the matrices of coarse levels with 1 where a diagonal is 0; themselves if none is.

    If near null vectors are dependent within an aggregate, nothing is interpolated from some
    unknowns, and their rows are empty. All members must call this, for all levels together.
    """
    if not matrices:
        return []
    executor = matrices[0].executor
    links, alone = cast(Any, executor.links), executor.as_member(None)
    replaced = [alone.zeros((1,), np.int64) for _ in matrices]
    for A, count in zip(matrices, replaced, strict=True):
        if A.local_rows:  # by an operation: CuPy takes seconds to compile its own reduction
            count_without_inverse(A.extended, count)
    counts = [int(number[0]) for number in alone.transfer(*replaced).read()]
    of_all = np.sum(links.all(counts), axis=0)
    return [
        _with_full_diagonal(A) if count else A for A, count in zip(matrices, of_all, strict=True)
    ]


def _with_full_diagonal(A: SharedCsr) -> SharedCsr:
    """Return a matrix with 1 where its diagonal is 0; all members must call this."""
    links: Any = A.executor.links
    missing = host(A.executor, A.diagonal()) == 0
    stored = A._global_rows()
    rows = np.flatnonzero(missing)
    own_columns = A.partition.rows(links.rank)[rows]
    at = stored.indptr[rows + 1]
    before = np.concatenate([[0], np.cumsum(missing)])
    return assembled(
        A.executor,
        A.partition,
        A.column_partition,
        stored.indptr + before,
        np.insert(stored.columns, at, own_columns),
        np.insert(stored.values, at, np.ones(rows.size, stored.values.dtype)),
    )


def is_gathered(A: SharedCsr) -> bool:
    """Return whether a level is so small that a gathered copy is faster than exchanges."""
    if keeps_whole(A.executor):
        return A.nnz <= ENTRIES_ON_DEVICES
    return A.shape[0] <= ROWS_ON_HOSTS


def is_made_by_first(A: SharedCsr) -> bool:
    """Return whether one member builds the next levels faster than all members together."""
    numbered = A.partition.numbers is not None
    return keeps_whole(A.executor) and not numbered and A.nnz <= ENTRIES_OF_ONE


class WholeLevel(NamedTuple):
    """A level that one member has built.

    Attributes
    ----------
    P, R : Csr
        The interpolation from the level, and the restriction to it.
    A : Csr
        Its matrix.
    offsets : array of int64
        The first row of each member, and the number of rows.
    """

    P: Csr
    R: Csr
    A: Csr
    offsets: HostArray


class OfFirst(NamedTuple):
    """A matrix that the first member has distributed.

    Attributes
    ----------
    shared : distributed.Csr
        The matrix.
    whole : Csr or None
        All its rows on the first member, None on the others.
    """

    shared: SharedCsr
    whole: Csr | None


def handed_out_levels(
    A: SharedCsr, levels: list[WholeLevel]
) -> tuple[list[LevelMatrices], SharedCsr]:
    """Distribute the levels that the first member has built, by rows; all members must call.

    Parameters
    ----------
    A : distributed.Csr
        The matrix of the level above.
    levels : list of WholeLevel
        The levels, on the first member; empty on the others.

    Returns
    -------
    levels : list of LevelMatrices
        All levels except the last.
    A : distributed.Csr
        The matrix of the last level.
    """
    rows, wholes = A.partition.offsets, []
    for level in levels:
        below = level.offsets
        wholes += [
            Whole(rows, below, level.P),
            Whole(below, rows, level.R),
            Whole(below, below, level.A),
        ]
        rows = below
    shared = handed_out(A.executor, wholes)
    shared_levels: list[LevelMatrices] = []
    for P, R, coarse in zip(shared[::3], shared[1::3], shared[2::3], strict=True):
        of_level: Any = (A, P, R)  # matrices of a group, with the methods that levels call
        shared_levels.append(LevelMatrices(*of_level))
        A = coarse
    return shared_levels, A


def gathered(
    A: SharedCsr, dtype: np.dtype[Any], make: Callable[[Csr], Any], first: OfFirst | None
) -> Gathered:
    """Return an operator for the whole matrix, which every member applies to gathered vectors.

    In a group of one process, the first member builds it, and the others get copies.

    Parameters
    ----------
    A : distributed.Csr
        The matrix.
    dtype : dtype
        The dtype of the operator.
    make : callable
        Creates the operator for the whole matrix.
    first : OfFirst or None
        A matrix that the first member has distributed; if it is ``A``, no rows are collected.
    """
    executor, links = A.executor, cast(Any, A.executor.links)

    def made_of(whole: Csr) -> LinOp:
        operator: LinOp = make(whole).astype(dtype)
        executor.synchronize()
        return operator

    inner: LinOp | None = None
    if links.one_process:
        known = first is not None and first.shared is A
        whole = first.whole if known and first is not None else collected(A, (0,))
        inner = None if whole is None else made_of(whole)
        of_first: LinOp = links.all(inner)[0]
        if of_first.resident:
            copied = of_first.to(executor)
            links.all(None)  # all copies are complete before the first member continues
            return Gathered(A, copied)
    whole = collected(A, range(links.size))
    assert whole is not None
    inner = made_of(whole) if inner is None else inner
    # an operator driven by the host computes its own sums: it stays with a separate executor
    return Gathered(A, inner.to(executor) if inner.resident else inner)


def check_nodes(A: Any, size: int) -> None:
    """Raise InvalidArgument if a node with several unknowns is split between members."""
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
