"""Seeded generators of matrices: the same arguments make the same matrix."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.errors import InvalidArgument

Csr = sp.csr_array
SEED = 20260101

#: R-MAT's probabilities of the four quadrants, as in Graph500.
RMAT = (0.57, 0.19, 0.19, 0.05)

#: This share of a block graph's edges stays within a community, and degrees fall with this power.
WITHIN, DEGREE_POWER = 0.8, 0.6


def compressed(matrix: Any) -> Csr:
    """Return sorted CSR with 32-bit indices where they suffice."""
    made = sp.csr_array(matrix)
    made.sum_duplicates()
    if max(made.nnz, *made.shape) <= np.iinfo(np.int32).max:
        made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
    return made


def _line(n: int) -> Any:
    """Return the neighbours on a line of n points, each point its own too."""
    return sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))


def _star(n: int, dimensions: int) -> Csr:
    """Return the Laplacian that couples a point to its neighbours along the axes."""
    laplacian: Any = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return compressed(reduce(lambda a, b: sp.kronsum(a, b), [laplacian] * dimensions))


def _box(n: int, dimensions: int) -> Csr:
    """Return the operator that couples a point to all its neighbours, diagonal ones too."""
    neighbours = reduce(lambda a, b: sp.csr_array(sp.kron(a, b)), [_line(n)] * dimensions)
    return compressed(3.0**dimensions * sp.eye_array(n**dimensions) - neighbours)


def stencil5(n: int) -> Csr:
    """Return Poisson's equation on n x n points."""
    return _star(n, 2)


def stencil7(n: int) -> Csr:
    """Return Poisson's equation on n x n x n points."""
    return _star(n, 3)


def stencil9(n: int) -> Csr:
    """Return bilinear elements on n x n points."""
    return _box(n, 2)


def stencil27(n: int) -> Csr:
    """Return trilinear elements on n x n x n points."""
    return _box(n, 3)


def fem(n: int) -> Csr:
    """Return the 27-point stencil with three unknowns on each of n x n x n points."""
    coupling = np.array([[2.0, 0.5, 0.25], [0.5, 2.0, 0.5], [0.25, 0.5, 2.0]])
    return compressed(sp.kron(stencil27(n), coupling))


def circuit(n: int) -> Csr:
    """Return a circuit: n nodes with a few wires each, and four rails that touch a tenth."""
    rng = np.random.default_rng(SEED)
    wires = rng.integers(0, n, (2, 2 * n))
    rails = [np.full(n // 10 + 1, rail) for rail in rng.integers(0, n, 4)]
    i = np.concatenate([wires[0], *rails])
    j = np.concatenate([wires[1], rng.integers(0, n, i.size - wires.shape[1])])
    g = sp.coo_array((rng.uniform(0.1, 1.0, i.size), (i, j)), shape=(n, n)).tocsr()
    g = g + g.T
    return compressed(sp.diags_array(g.sum(axis=1) + 0.01) - g)


def rmat(scale: int, entries: int) -> Csr:
    """Return a power-law graph of 2^scale nodes (R-MAT) with this number of distinct edges."""
    return recursive(scale, entries, RMAT, SEED)


def recursive(
    scale: int, entries: int, quadrants: tuple[float, float, float, float], seed: int
) -> Csr:
    """Return a graph with edges in quadrants of quadrants with these probabilities."""
    rng = np.random.default_rng(seed)
    _, b, c, d = quadrants
    keys = np.empty(0, np.int64)
    while keys.size < entries:
        drawn = np.zeros((2, entries), np.int64)
        for _ in range(scale):
            u = rng.random(entries)
            drawn[0] = 2 * drawn[0] + (u < c + d)  # the lower quadrants
            drawn[1] = 2 * drawn[1] + ((u < d) | (u >= 1 - b))  # the right ones
        keys = _distinct(np.concatenate([keys, (drawn[0] << scale) + drawn[1]]))
        if entries > 1 << (2 * scale):
            raise InvalidArgument(f"rmat: 2^{scale} nodes have no {entries} distinct edges")
    keys = np.sort(rng.permutation(keys)[:entries])
    rows, columns = keys >> scale, keys & ((1 << scale) - 1)
    n = 1 << scale
    return compressed(sp.coo_array((rng.random(entries), (rows, columns)), shape=(n, n)))


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Return numbers in order, each once.

    NumPy's own way through a hash table took 8 s for four million on the host of an H200.
    """
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])]


def uniform(rows: int, columns: int, entries: int) -> Csr:
    """Return about ``entries`` entries anywhere with equal chance."""
    rng = np.random.default_rng(SEED)
    where = (rng.integers(0, rows, entries), rng.integers(0, columns, entries))
    return compressed(sp.coo_array((rng.random(entries), where), shape=(rows, columns)))


def blocks(nodes: int, communities: int, entries: int) -> Csr:
    """Return a degree-corrected block graph: power-law degrees, most edges within communities.

    Its communities are numbered consecutively, as by a partitioner; about ``entries`` entries.
    """
    rng = np.random.default_rng(SEED)
    weight = (1.0 + np.arange(nodes)) ** -DEGREE_POWER
    reached = np.concatenate([[0.0], np.cumsum(rng.permutation(weight))])
    bounds = np.linspace(0, nodes, communities + 1).astype(np.int64)
    i = np.searchsorted(reached, rng.random(entries) * reached[-1], side="right") - 1
    home = np.searchsorted(bounds, i, side="right") - 1
    away = rng.integers(0, communities, entries)
    there = np.where(rng.random(entries) < WITHIN, home, away)
    low, high = reached[bounds[there]], reached[bounds[there + 1]]
    j = np.searchsorted(reached, low + rng.random(entries) * (high - low), side="right") - 1
    where = (i, np.minimum(j, nodes - 1))
    return compressed(sp.coo_array((rng.random(entries), where), shape=(nodes, nodes)))


def pruned(rows: int, columns: int, percent: int) -> Csr:
    """Return a layer of a network with this percentage of its smallest weights set to zero.

    Rows and columns have scales of their own and the threshold is global, so lengths vary.
    """
    rng = np.random.default_rng(SEED)
    weights = rng.standard_normal((rows, columns))
    weights *= rng.lognormal(0.0, 0.4, (rows, 1)) * rng.lognormal(0.0, 0.4, (1, columns))
    weights[np.abs(weights) < np.percentile(np.abs(weights), percent)] = 0.0
    return compressed(weights)


def weights(rows: int, columns: int, percent: int) -> Csr:
    """Return weights with this percentage of zeros, anywhere with equal chance."""
    rng = np.random.default_rng(SEED)
    parts = []
    for start in range(0, rows, 1024):
        block = rng.standard_normal((min(1024, rows - start), columns), np.float32)
        block[100 * rng.random(block.shape, np.float32) < percent] = 0.0
        parts.append(sp.csr_array(block))
    return compressed(sp.vstack(parts, format="csr"))


def hypersparse(rows: int, entries: int) -> Csr:
    """Return far fewer entries than rows: most rows are empty."""
    return uniform(rows, rows, entries)
