"""Coarse rows and interpolation of classical algebraic multigrid, by operations of an executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.formats import Csr
from ....core.formats.arithmetic import matmul
from ....core.formats.rowwise import filled, row_bounds
from ....core.operations import coarsen, scan

if TYPE_CHECKING:
    from ....core.executor import Array
    from ....core.formats import Matrix

#: Entries of a row of the interpolation that are kept, for short rows of the matrix and for rows
#: with this mean number of entries.
WIDTH, WIDTH_OF_LONG_ROWS = 4, 6
LONG_ROWS = 18

#: Rounds between two looks at how many rows are undecided: a look makes a device wait. Few
#: hierarchies need more than eight rounds.
ROUNDS = 4

#: Rounds after which all rows of any matrix are decided: a round decides one at least, and in
#: practice most.
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
        Without duplicates.
    theta : float
        Between 0 and 1: an entry is strong if it is at least this part of the largest coupling of
        its row.
    """
    arguments = (*row_bounds(A), A.indices, A.data, theta)
    return filled(A, A.shape, coarsen.count_strong, coarsen.strong, *arguments)


def coarse_rows(S: Csr) -> tuple[Array, Array, int]:
    """Choose coarse rows by parallel modified independent sets (PMIS).

    Parameters
    ----------
    S : Csr
        The strong part of the matrix.

    Returns
    -------
    state : array of int32, shape (n,)
        1 for coarse rows, -1 for fine ones.
    number : array, shape (n + 1,)
        How many coarse rows there are before each row.
    count : int
        How many there are.

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
    undecided = executor.zeros((1,), np.int64)
    executor.run(coarsen.rank, *others, 0, key, state, undecided)
    for at in range(MOST_ROUNDS):
        if at % ROUNDS == 0 and int(executor.to_host(undecided)[0]) == 0:
            break
        executor.run(
            coarsen.select, *rows, S.indices, *others, transposed.indices, key, state, spare
        )
        executor.run(coarsen.reject, *rows, S.indices, spare, state, undecided)
    flags = executor.allocate((n,), S.index_dtype)
    total = executor.allocate((1,), np.int64)
    executor.run(coarsen.chosen, state, flags, total)
    number = executor.allocate((n + 1,), S.index_dtype)
    executor.run(scan.pointers, flags, number)
    return state, number, int(executor.to_host(total)[0])


def interpolation(A: Csr, S: Csr, state: Array, number: Array, count: int, width: int) -> Csr:
    """Return the interpolation from coarse rows, the MM-ext of the reference.

    A fine row takes from the coarse rows that it depends on strongly, and, through fine ones, from
    the coarse rows that these depend on: ``-D^-1 (A_FF + D_beta) D_beta^-1 A_FC``, one product of
    sparse matrices. The largest ``width`` entries of a row are kept and scaled to its sum.

    References
    ----------
    R. Li, B. Sjogreen, U. M. Yang, A new class of AMG interpolation methods based on matrix-matrix
    multiplications, SIAM J. Sci. Comput. 43 (2021), section 3.
    """
    pattern = (*row_bounds(S), S.indices, S.data, state, number)
    near = filled(S, (S.shape[0], count), coarsen.count_nearest, coarsen.nearest, *pattern)
    pattern_of_both = (
        *row_bounds(A),
        A.indices,
        A.data,
        *row_bounds(S),
        S.indices,
        state,
        near.indptr,
    )
    weights = filled(A, A.shape, coarsen.count_weights, coarsen.weights, *pattern_of_both)
    return truncated(matmul(weights, near), width)


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
    executor = P.executor
    begin, end = row_bounds(P)
    lengths = executor.allocate((P.shape[0],), P.index_dtype)
    total = executor.allocate((1,), np.int64)
    executor.run(coarsen.count_largest, begin, end, P.data, width, lengths, total)
    if int(executor.to_host(total)[0]) == P.nnz:
        return P
    arguments: tuple[Any, ...] = (begin, end, P.indices, P.data, width)
    return filled(P, P.shape, coarsen.count_largest, coarsen.largest, *arguments)
