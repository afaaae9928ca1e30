"""Coarse rows and interpolation of a shared matrix, as on one executor.

Members know the strong couplings of their own rows, and the rows of others that depend on these.
They exchange keys and states of the rows at their borders, so that every member decides as one
executor would. Arrays of rows have the member's own rows first, then its ghosts, then further rows
of other members that depend on its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.distributed.assembly import halos_of
from ....core.distributed.halo import Ghosts, Halo, fill_ghosts
from ....core.distributed.index_arrays import distinct_of_sorted, index_array, stacked, stored
from ....core.distributed.partition import Partition
from ....core.distributed.products import rows_needed, shared_rows
from ....core.distributed.transposes import entries_of_others
from ....core.formats import Csr
from ....core.formats.arithmetic import matmul
from ....core.formats.rowwise import filled, row_bounds
from ....core.operations import coarsen, scan
from . import classical

if TYPE_CHECKING:
    from ....core.distributed.matrix import Csr as SharedCsr
    from ....core.executor import Array

HostArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SharedCoarseRows:
    """The coarse rows of all members, as far as one member knows them.

    Attributes
    ----------
    state : array of int32, shape (rows,)
        1 for coarse rows, -1 for fine ones: for the member's rows, then for its ghosts.
    number : array, shape (rows + 1,)
        Number of coarse rows before each of these rows.
    count : int
        Number of coarse rows among these rows.
    partition : Partition
        The distribution of the coarse rows.
    ghosts : array of int64
        The new indices of the coarse rows among the ghosts, in ascending order.
    """

    state: Array
    number: Array
    count: int
    partition: Partition
    ghosts: HostArray


def strong_part(A: SharedCsr, theta: float) -> Csr:
    """Return the entries by which rows of a member depend strongly on rows of all members."""
    return classical.strong_part(A.extended, theta)


def coarse_rows(A: SharedCsr, S: Csr) -> SharedCoarseRows:
    """Choose coarse rows by parallel modified independent sets (PMIS); all members must call it.

    A row waits until adjacent rows with larger keys are decided, and becomes fine as soon as it
    knows of an adjacent coarse row. Hence decisions do not depend on the order in which members
    receive each other's decisions.

    Parameters
    ----------
    A : distributed.Csr
        The matrix.
    S : Csr
        The strong part of the member's rows.
    """
    executor = A.executor
    links: Any = executor.links
    run, n = S.executor.run, S.shape[0]
    others, further = _dependent_rows(A, S)
    known = S.shape[1] + (0 if further is None else further.ghosts)
    rows = row_bounds(S)
    dependent = tuple(bound[:n] for bound in row_bounds(others))
    key = executor.allocate((known,), np.int64)
    state, spare = (executor.zeros((known,), np.int32) for _ in range(2))
    undecided = executor.zeros((1,), np.int64)

    def ghosts_of(numbers: Array) -> list[Ghosts]:
        halos = [(A.halo, n)] + ([] if further is None else [(further, S.shape[1])])
        return [Ghosts(executor, halo, numbers, n, first) for halo, first in halos]

    def tell(ghosts: list[Ghosts]) -> None:
        for one in ghosts:
            one.fill()

    run(coarsen.rank, *dependent, A.first_row, key[:n], state[:n], undecided)
    tell(ghosts_of(key))
    tell(ghosts_of(state))
    chosen = ghosts_of(spare)
    for at in range(classical.MOST_ROUNDS):
        if at % classical.ROUNDS == 0:
            left = int(executor.to_host(undecided)[0])
            if not links.any(left > 0):
                break
        run(coarsen.select, *rows, S.indices, *dependent, others.indices, key, state, spare[:n])
        tell(chosen)
        run(coarsen.reject, *rows, S.indices, spare, state[:n], undecided)
        if known > n:
            executor.copy_into(state[n:], spare[n:])
    fill_ghosts(executor, A.halo, state, n, n)
    return _numbered(A, S, state[: S.shape[1]])


def _dependent_rows(A: SharedCsr, S: Csr) -> tuple[Csr, Halo | None]:
    """Return the rows that depend on each row of a member, and the halo of further rows.

    The halo is None if members have no such rows.
    """
    executor = A.executor
    links: Any = executor.links
    if A.halo.idle:
        return S.transposed_pattern()[0], None
    theirs = entries_of_others(executor, A.partition, A.column_partition, A.ghosts, S)
    ghosts = A.ghosts
    at = np.searchsorted(ghosts, theirs.rows)
    is_ghost = np.zeros(at.size, bool)
    if ghosts.size:
        is_ghost = ghosts[np.minimum(at, ghosts.size - 1)] == theirs.rows
    beside = distinct_of_sorted(executor, theirs.rows[~is_ghost])
    further = None
    if links.any(bool(beside.size)):
        ((further, _),) = halos_of(executor, [(A.partition, beside, 0)])
    at = np.where(is_ghost, at, ghosts.size + np.searchsorted(beside, theirs.rows))
    order = np.argsort(at, kind="stable")
    lengths = np.bincount(at, minlength=ghosts.size + beside.size)
    none = np.zeros(0, np.int64)
    indptr = stacked(executor, none, index_array(executor, S.indptr), S.nnz + np.cumsum(lengths))
    indices = stacked(executor, none, index_array(executor, S.indices), theirs.columns[order])
    rows = Csr._from_arrays(
        S.executor,
        (S.shape[0] + int(lengths.size), S.shape[1]),
        S.executor.zeros((S.nnz + theirs.rows.size,), np.float32),
        stored(executor, indices, S.index_dtype),
        stored(executor, indptr, S.index_dtype),
    )
    return rows.transposed_pattern()[0], further


def _numbered(A: SharedCsr, S: Csr, state: Array) -> SharedCoarseRows:
    """Assign numbers to the coarse rows of all members."""
    executor, n = A.executor, S.shape[0]
    links: Any = executor.links
    kind, rows = S.index_dtype, int(state.size)
    flags, total = executor.allocate((rows,), kind), executor.allocate((1,), np.int64)
    S.executor.run(coarsen.chosen, state, flags, total)
    number = executor.allocate((rows + 1,), kind)
    S.executor.run(scan.pointers, flags, number)
    local_count, count = (int(a[0]) for a in executor.transfer(number[n : n + 1], total).read())
    partition = Partition(np.concatenate([[0], np.cumsum(links.all(local_count))]))
    ghosts = np.zeros(0, np.int64)
    if not A.halo.idle:
        places = executor.copy(number[:rows])
        fill_ghosts(executor, A.halo, places, n, n)
        chosen, places = executor.transfer(flags[n:], places[n:]).read()
        chosen_ghosts = np.flatnonzero(chosen)
        owners = A.column_partition.owner(A.ghosts[chosen_ghosts])
        ghosts = np.asarray(places)[chosen_ghosts].astype(np.int64) + partition.offsets[owners]
    return SharedCoarseRows(state, number, count, partition, ghosts)


def interpolation(A: SharedCsr, S: Csr, coarse: SharedCoarseRows, width: int) -> SharedCsr:
    """Return the interpolation from coarse rows, as on one executor; all members must call."""
    executor, rows, n = A.executor, A.extended, S.shape[0]
    run, kind = S.executor.run, S.index_dtype
    pattern = (*row_bounds(S), S.indices, S.data, coarse.state, coarse.number)
    near = filled(S, (n, coarse.count), coarsen.count_nearest, coarsen.nearest, *pattern)
    pointers = near.indptr
    if not A.halo.idle:
        lengths = executor.allocate((S.shape[1],), kind)
        executor.copy_into(lengths[:n], near.indptr[1:] - near.indptr[:-1])
        fill_ghosts(executor, A.halo, lengths, n, n)
        pointers = executor.allocate((S.shape[1] + 1,), kind)
        run(scan.pointers, lengths, pointers)
    pattern_of_both = (
        *row_bounds(rows),
        rows.indices,
        rows.data,
        *row_bounds(S),
        S.indices,
        coarse.state[:n],
        pointers,
    )
    weights = filled(rows, rows.shape, coarsen.count_weights, coarsen.weights, *pattern_of_both)
    return _product(A, weights, near, (coarse.partition, coarse.ghosts), width)


def product(A: SharedCsr, B: SharedCsr, width: int) -> SharedCsr:
    """Return the product of two interpolations, with the largest entries of each row."""
    return _product(A, A.extended, B.extended, (B.column_partition, B.ghosts), width)


def _product(
    A: SharedCsr, left: Csr, right: Csr, columns: tuple[Partition, HostArray], width: int
) -> SharedCsr:
    """Multiply a member's rows, with the columns of ``A``, by rows of all members.

    ``columns`` has the distribution of the right factor's columns, and the ghosts.
    """
    known, rows = rows_needed(A, columns[0], right, columns[1])
    truncated = classical.truncated(matmul(left, rows), width)
    return shared_rows(A.executor, (A.partition, columns[0]), truncated, known, A.halo.idle)
