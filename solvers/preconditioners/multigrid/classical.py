"""Coarse rows and interpolation of classical algebraic multigrid, by operations of an executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.formats import Csr
from ....core.formats.arithmetic import matmul
from ....core.formats.rowwise import (
    Counted,
    Counting,
    counted,
    counting,
    filled,
    filled_in,
    in_order_of,
    row_bounds,
)
from ....core.operations import coarsen, scan

if TYPE_CHECKING:
    from ....core.executor import Array
    from ....core.formats import Matrix

#: Entries that are kept in a row of the interpolation, for short rows of the matrix, and for rows
#: with this mean number of entries.
WIDTH, WIDTH_OF_LONG_ROWS = 4, 6
LONG_ROWS = 18

#: Read the number of undecided rows after FIRST_ROUNDS rounds, then after every ROUNDS rounds: each
#: read makes a device wait. Few hierarchies need more than eight rounds.
FIRST_ROUNDS, ROUNDS = 8, 4

#: Upper bound of the rounds: each round decides at least one row, and in practice most.
MOST_ROUNDS = 1_000

#: The operations of :func:`strong_part`, :func:`coarse_rows` and :func:`interpolation`.
RUNS = (
    "coarsen.count_strong", "coarsen.strong", "coarsen.rank", "coarsen.select", "coarsen.reject",
    "coarsen.chosen", "coarsen.count_nearest", "coarsen.nearest", "coarsen.count_weights",
    "coarsen.weights", "coarsen.count_largest", "coarsen.largest", "rows.examine", "csr.transpose",
    "csr.matmul",
)  # fmt: skip


def strong_part(A: Csr, theta: float) -> Csr:
    """Return the entries by which rows depend strongly on others.

    Parameters
    ----------
    A : Csr
        Sorted, without duplicates.
    theta : float
        Between 0 and 1: an entry is strong if it is at least this fraction of the largest coupling
        in its row.
    """
    arguments = (*row_bounds(A), A.indices, A.data, theta)
    return in_order_of(filled(A, A.shape, coarsen.count_strong, coarsen.strong, *arguments), A)


class CoarseRows(NamedTuple):
    """The coarse rows of a matrix.

    Attributes
    ----------
    number : array, shape (n + 1,)
        How many coarse rows there are before each row.
    columns : int
        How many there are.
    nearest, weights : Counted
        The rows of the factors of the interpolation: the host waits for their numbers of entries
        and for the number of coarse rows once.
    """

    number: Array
    columns: int
    nearest: Counted
    weights: Counted


def coarse_rows(A: Csr, S: Csr) -> CoarseRows:
    """Choose coarse rows by parallel modified independent sets (PMIS).

    Parameters
    ----------
    A : Csr
        The matrix.
    S : Csr
        Its strong part.

    References
    ----------
    H. De Sterck, U. M. Yang, J. J. Heys, Reducing complexity in parallel algebraic multigrid
    preconditioners, SIAM J. Matrix Anal. Appl. 27 (2006), algorithm 1; the random numbers are a
    hash of the row here.
    """
    executor, n = S.executor, S.shape[0]
    transposed, _ = S.transposed_pattern()
    rows, others = row_bounds(S), row_bounds(transposed)
    key = executor.allocate((n,), np.int64)
    state, spare = (executor.allocate((n,), np.int32) for _ in range(2))
    undecided, total = (executor.allocate((1,), np.int64) for _ in range(2))
    executor.run(coarsen.rank, *others, 0, key, state, undecided)
    flags, number = (executor.allocate((size,), S.index_dtype) for size in (n, n + 1))
    for at in range(MOST_ROUNDS):
        for _ in range(ROUNDS if at else FIRST_ROUNDS):
            executor.run(
                coarsen.select, *rows, S.indices, *others, transposed.indices, key, state, spare
            )
            executor.run(coarsen.reject, *rows, S.indices, spare, state, undecided)
        executor.run(coarsen.chosen, state, flags, total)
        executor.run(scan.pointers, flags, number)
        near, both = rows_of_factors(A, S, state, number)
        counts = executor.transfer(undecided, total, near.total, both.total).read()
        left, count, *entries = (int(one[0]) for one in counts)
        if left == 0:
            break
    return CoarseRows(number, count, near.read(entries[0]), both.read(entries[1]))


def rows_of_factors(A: Csr, S: Csr, state: Array, number: Array) -> tuple[Counting, Counting]:
    """Return the rows of both factors of the interpolation, by the states of rows and columns.

    Parameters
    ----------
    A, S : Csr, shape (n, n)
        The matrix and its strong part.
    state : array of int32, shape (n,)
        1 for coarse rows, -1 for fine ones.
    number : array, shape (n + 1,)
        How many coarse rows there are before each row.
    """
    n, strong = S.shape[0], (*row_bounds(S), S.indices)
    pattern: tuple[Any, ...] = (*strong, S.data, state, number)
    near = counting(S, n, coarsen.count_nearest, coarsen.nearest, *pattern)
    pattern = (*row_bounds(A), A.indices, A.data, *strong, state, near.indptr)
    return near, counting(A, n, coarsen.count_weights, coarsen.weights, *pattern)


def interpolation(A: Csr, S: Csr, coarse: CoarseRows, width: int) -> Csr:
    """Return the interpolation from coarse rows, the MM-ext of the reference.

    A fine row takes from the coarse rows that it depends on strongly, and, through fine ones, from
    the coarse rows that these depend on: ``-D^-1 (A_FF + D_beta) D_beta^-1 A_FC``, one product of
    sparse matrices. The largest ``width`` entries of a row are kept and scaled to its sum.

    References
    ----------
    R. Li, B. Sjogreen, U. M. Yang, A new class of AMG interpolation methods based on matrix-matrix
    multiplications, SIAM J. Sci. Comput. 43 (2021), section 3.
    """
    near = filled_in(S, (S.shape[0], coarse.columns), coarse.nearest, coarsen.nearest)
    weights = filled_in(A, A.shape, coarse.weights, coarsen.weights)
    return truncated(matmul(weights, in_order_of(near, S)), width)


def interpolation_width(A: Matrix) -> int:
    """Return how many entries of a row of the interpolations are kept, on every level.

    Where rows are long, few of them become coarse ones: then two entries more save a quarter of
    the iterations and add a few hundredths of the matrix's entries to the levels. Where rows are
    short, they would add a third (``benchmarks/results/multigrid-omp-2-threads.md``).
    """
    return WIDTH_OF_LONG_ROWS if A.nnz >= LONG_ROWS * A.shape[0] else WIDTH


def truncated(P: Csr, width: int) -> Csr:
    """Return the largest entries of each row, scaled to its sum."""
    if width <= 0:
        return P
    arguments = (*row_bounds(P), P.indices, P.data, width)
    rows = counted(P, P.shape[0], coarsen.count_largest, coarsen.largest, *arguments)
    if rows.entries == P.nnz:
        return P
    return in_order_of(filled_in(P, P.shape, rows, coarsen.largest), P)
