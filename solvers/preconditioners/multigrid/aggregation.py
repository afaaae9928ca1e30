"""Aggregates, tentative and smoothed interpolation, by operations of an executor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....core.formats import Csr
from ....core.formats.arithmetic import add, matmul
from ....core.formats.rowwise import filled, row_bounds
from ....core.operations import coarsen, facts, rows, scan, vector
from ...spectrum import power_estimate
from .classical import MOST_ROUNDS, ROUNDS

if TYPE_CHECKING:
    from ....core.executor import Array

#: Rounds in which nodes without an adjacent root join the aggregate of an adjacent node.
JOINING = 3

#: The factor of the smoothing step, divided by the bound of the spectrum (Vanek, Mandel, Brezina).
SMOOTHING = 4.0 / 3.0

#: The operations of aggregation and interpolation.
RUNS = (
    "coarsen.count_coupled", "coarsen.coupled", "coarsen.spread", "coarsen.decide", "coarsen.join",
    "coarsen.open_keys", "coarsen.roots", "coarsen.label", "coarsen.unknowns",
    "coarsen.count_basis", "coarsen.basis", "coarsen.orthonormalize", "rows.examine", "rows.scale",
    "csr.transpose", "csr.matmul",
)  # fmt: skip


def node_matrix(A: Csr, size: int) -> Csr:
    """Return the Frobenius norms of the blocks of ``size`` unknowns; ``A`` itself for 1."""
    if size == 1:
        return A
    n, executor = A.shape[0] // size, A.executor
    blocks = (A.indptr, A.indices, A.data, size)
    lengths = executor.allocate((n,), A.index_dtype)
    total = executor.allocate((1,), np.int64)
    executor.run(coarsen.count_nodes, *blocks, lengths, total)
    indptr = executor.allocate((n + 1,), A.index_dtype)
    executor.run(scan.pointers, lengths, indptr)
    entries = int(executor.to_host(total)[0])
    indices, data = (executor.allocate((entries,), d) for d in (A.index_dtype, A.dtype))
    executor.run(coarsen.nodes, *blocks, lengths, indptr, indices, data)
    return Csr._from_arrays(executor, (n, n), data, indices, indptr)


def coupled_part(C: Csr, theta: float) -> Csr:
    """Return the off-diagonal entries that are large relative to both diagonal values."""
    arguments = (*row_bounds(C), C.indices, C.data, C.diagonal(), theta)
    return filled(C, C.shape, coarsen.count_coupled, coarsen.coupled, *arguments)


def aggregates(S: Csr) -> tuple[Array, int]:
    """Return the aggregate of each node, -1 for isolated nodes, and the number of aggregates.

    Roots are a maximal independent set of distance two; every other node joins the aggregate of its
    most strongly coupled adjacent node.

    References
    ----------
    N. Bell, S. Dalton, L. N. Olson, Exposing fine-grained parallelism in algebraic multigrid
    methods, SIAM J. Sci. Comput. 34 (2012), algorithms 5 and 6; the random numbers are a hash here.
    """
    executor, n = S.executor, S.shape[0]
    pattern = (*row_bounds(S), S.indices)
    undecided = executor.zeros((1,), np.int64)
    key, once, twice = (executor.allocate((n,), np.int64) for _ in range(3))
    executor.run(coarsen.open_keys, *row_bounds(S), key, undecided)
    for at in range(MOST_ROUNDS):
        if at % ROUNDS == 0 and int(executor.to_host(undecided)[0]) == 0:
            break
        executor.run(coarsen.spread, *pattern, key, once)
        executor.run(coarsen.spread, *pattern, once, twice)
        executor.run(coarsen.decide, key, twice, once, undecided)
        key, once = once, key
    flags, number = executor.allocate((n,), np.int64), executor.allocate((n + 1,), np.int64)
    total = executor.allocate((1,), np.int64)
    executor.run(coarsen.roots, key, flags, total)
    executor.run(scan.pointers, flags, number)
    label, following = (executor.allocate((n,), np.int64) for _ in range(2))
    executor.run(coarsen.label, flags, number, label)
    left = executor.allocate((1,), np.int64)
    for _ in range(JOINING):
        executor.run(coarsen.join, *pattern, S.data, label, following, left)
        label, following = following, label
    return label, int(executor.to_host(total)[0])


def tentative(label: Array, count: int, near: Array, size: int, like: Csr) -> tuple[Csr, Array]:
    """Return interpolation that is exact for the near null space, and the coarse null space.

    Parameters
    ----------
    label : array of int64, shape (nodes,)
        The aggregate of each node, or -1.
    count : int
        Number of aggregates.
    near : array, shape (n, m)
        Vectors that the matrix nearly maps to zero.
    size : int
        Unknowns per node.
    like : Csr
        A matrix with the dtypes of the result.

    Returns
    -------
    T : Csr, shape (n, count * m)
        The interpolation, with orthonormal columns.
    coarse : array, shape (count * m, m)
        The coarse near null space: ``near = T coarse`` for nodes with an aggregate.
    """
    executor, columns = like.executor, int(near.shape[1])
    members = _members(label, count, like)
    basis = executor.zeros((near.size,), like.dtype)
    coarse = executor.zeros((count * columns * columns,), like.dtype)
    executor.run(
        coarsen.orthonormalize,
        members.indptr[:-1],
        members.indptr[1:],
        members.indices,
        size,
        columns,
        near.reshape(-1),
        basis,
        coarse,
    )
    shape = (int(near.shape[0]), count * columns)
    unknowns = executor.allocate((shape[0],), np.int64)
    executor.run(coarsen.unknowns, label, size, unknowns)
    T = filled(like, shape, coarsen.count_basis, coarsen.basis, unknowns, columns, basis)
    return T, coarse.reshape(count * columns, columns)


def _members(label: Array, count: int, like: Csr) -> Csr:
    """Return the nodes of each aggregate as the rows of a pattern."""
    executor, nodes = like.executor, int(label.size)
    ones = executor.allocate((nodes,), like.dtype)
    executor.run(vector.fill, ones.reshape(nodes, 1), 1.0)
    by_node = filled(like, (nodes, count), coarsen.count_basis, coarsen.basis, label, 1, ones)
    return by_node.transposed_pattern()[0]


def smoothed(A: Csr, T: Csr) -> Csr:
    """Return ``T - omega D^-1 A T``: one Jacobi step on the interpolation.

    ``omega`` is 4/3 divided by the largest eigenvalue of ``D^-1 A``, estimated by the power method.
    """
    executor, n = A.executor, A.shape[0]
    largest = power_estimate(A)
    W = matmul(A, T)
    factors = inverse_of(A, SMOOTHING / largest if largest > 0 else 0.0)
    data = executor.allocate((W.nnz,), W.dtype)
    executor.run(rows.scale, *row_bounds(W), W.indices, W.data, factors, 1, 0, data)
    scaled = Csr._from_arrays(executor, (n, T.shape[1]), data, W.indices, W.indptr)
    return add(T, scaled, 1.0, -1.0)


def inverse_of(A: Csr, factor: float) -> Array:
    """Return ``factor`` divided by the diagonal; 0 where the diagonal is 0."""
    executor, n = A.executor, A.shape[0]
    inverse = executor.allocate((n, 1), A.dtype)
    counts = (executor.allocate((1,), np.int64) for _ in range(2))
    executor.run(facts.diagonal, A.diagonal().reshape(n, 1), inverse, 0.0, *counts)
    executor.run(vector.axpby, inverse, inverse, factor, 0.0)
    return inverse.reshape(n)
