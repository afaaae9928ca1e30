"""Families that a seed draws from: shapes that no rule was made for.

The last number of a case is its seed: ``lognormal:200000,20,3``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from .generators import SEED, Csr, compressed, recursive, stencil7

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


def names_of_collection(count: int, divisor: int = 1) -> list[str]:
    """Return the names of seeded matrices of eight families, with sizes from one seed.

    Sizes are drawn such that each factor of ten is as likely as the next one.

    Parameters
    ----------
    count : int
        The number of matrices.
    divisor : int
        Of the sizes.
    """
    rng = np.random.default_rng(SEED)

    def size(least: int, most: int) -> int:
        return max(8, round(np.exp(rng.uniform(np.log(least), np.log(most))) / divisor))

    def graph(most: int, fewer: int = 0) -> str:
        nodes = max(4, round(rng.integers(12, most) - np.log2(divisor)))
        entries = min(size(100_000, 6_000_000), 2**nodes * min(64, 2**nodes // 8))
        return f"{nodes},{entries - fewer}"

    def side() -> int:
        return max(4, round(rng.integers(12, 80) / divisor ** (1 / 3)))

    def uniform() -> str:
        rows, columns, entries = size(3_000, 500_000), size(3_000, 500_000), size(50_000, 6_000_000)
        return f"uniform:{rows},{columns},{min(30 * rows, entries)}"

    families: tuple[Callable[[int], str], ...] = (
        lambda seed: f"lognormal:{size(3_000, 300_000)},{rng.integers(4, 60)},{seed}",
        lambda seed: f"two-sorts:{size(3_000, 300_000)},{rng.integers(2, 25)},{seed}",
        lambda seed: f"dense-blocks:{size(20, 2_000)},{rng.integers(8, 100)},{seed}",
        lambda seed: f"flat-rmat:{graph(19)},{seed}",
        lambda seed: f"tetrahedra:{size(3_000, 200_000)},{seed}",
        lambda seed: f"shuffled:{side()},{seed}",
        lambda seed: f"rmat:{graph(20, seed)}",  # has no seed: its number of entries differs
        lambda seed: uniform(),
    )
    return [families[k % len(families)](1 + k // len(families)) for k in range(count)]
