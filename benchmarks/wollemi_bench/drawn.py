"""Families that a seed draws from: shapes that no rule was made for.

The last number of a case is its seed: ``lognormal:200000,20,3``.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .generators import Csr, compressed, recursive, stencil7

#: Quadrants of an R-MAT graph that is flatter than Graph500's.
FLAT = (0.45, 0.22, 0.22, 0.11)


def dense_blocks(count: int, size: int, seed: int) -> Csr:
    """Return ``count`` dense blocks of one size on the diagonal."""
    rng = np.random.default_rng(seed)
    starts = np.arange(count, dtype=np.int64).repeat(size * size) * size
    inner = np.tile(np.arange(size, dtype=np.int64), count * size)
    rows = np.arange(count * size, dtype=np.int64)
    made = (rng.random(starts.size), starts + inner, np.append(rows * size, rows.size * size))
    return compressed(sp.csr_array(made, shape=(rows.size, rows.size)))


def lognormal(rows: int, mean: int, seed: int) -> Csr:
    """Return rows of lognormal length (sigma 1) with columns anywhere."""
    rng = np.random.default_rng(seed)
    return _anywhere(rows, rng.lognormal(np.log(mean) - 0.5, 1.0, rows), rng)


def two_sorts(rows: int, length: int, seed: int) -> Csr:
    """Return short rows among which every tenth, drawn, is ten times as long."""
    rng = np.random.default_rng(seed)
    return _anywhere(rows, np.where(rng.random(rows) < 0.1, 10 * length, length), rng)


def _anywhere(rows: int, lengths: np.ndarray, rng: np.random.Generator) -> Csr:
    lengths = np.clip(np.round(lengths), 0, rows).astype(np.int64)
    where = (np.arange(rows).repeat(lengths), rng.integers(0, rows, lengths.sum()))
    return compressed(sp.coo_array((rng.random(where[0].size), where), shape=(rows, rows)))


def flat_rmat(scale: int, entries: int, seed: int) -> Csr:
    """Return a graph of 2^scale nodes with degrees that vary less than Graph500's."""
    return recursive(scale, entries, FLAT, seed)


def tetrahedra(points: int, seed: int) -> Csr:
    """Return the graph Laplacian, plus one, of a Delaunay triangulation of points in a cube."""
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(seed)
    where = rng.random((points, 3))
    cells = Delaunay(where[np.lexsort(np.floor(10 * where).T)]).simplices
    i, j = (cells[:, [0, 0, 0, 1, 1, 2]].ravel(), cells[:, [1, 2, 3, 2, 3, 3]].ravel())
    edges = sp.coo_array((np.ones(i.size), (i, j)), shape=(points, points)).tocsr()
    edges = edges + edges.T
    edges.data[:] = 1.0
    return compressed(sp.diags_array(edges.sum(axis=1) + 1.0) - edges)


def shuffled(n: int, seed: int) -> Csr:
    """Return Poisson's equation on n x n x n points in an order that was drawn."""
    order = np.random.default_rng(seed).permutation(n**3)
    return compressed(stencil7(n)[order][:, order])
