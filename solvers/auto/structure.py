"""The structure of a square pattern: bandwidth, breadth-first search levels, blocks of nodes.

The structure depends on the pattern alone and is kept when values change. The host computes it,
since it serves to estimate factorizations, which the host computes. It is requested only if such an
estimate may be worth its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formats import Csr, Matrix
from ...core.formats.triangular import host_of
from ...core.operations import ordering
from ..direct.substitution import triangular_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.executor import Executor

#: From this dimension of a pattern on, its levels do not predict fill-in and iterations: circuits
#: and networks have few levels. 3D grids have dimension 2.8.
UNRELIABLE = 3.2

#: Candidate sizes of node blocks, the largest first.
BLOCK_SIZES = (6, 4, 3, 2)

#: Node blocks count as such if at least this fraction of them is filled. Scalar stencils fill half
#: of blocks of two rows.
FILLED = 0.75

#: The widest band that LAPACK factorizes row by row. Wider bands use products of small blocks, with
#: threads that wait for one another on a busy machine.
NARROW = 64

#: Number of sampled nodes for the test of blocks.
SAMPLED = 64


@dataclass(frozen=True)
class Structure:
    """Characteristic numbers of a square pattern.

    Attributes
    ----------
    rows, entries : int
        Number of rows, and of entries.
    lower, upper : int
        The lower and the upper bandwidth.
    levels : int
        Levels of a breadth-first search from a row at the edge of the pattern; 0 without a search.
    reach : float
        Average number of rows in a level.
    dimension : float
        Exponent by which the number of reached rows grows with the level: 2 for 2D grids, 3 for 3D
        grids.
    block_size : int
        Unknowns per node, 1 without blocks.
    is_triangular : bool
        Whether a permutation of rows and columns makes the matrix triangular.
    """

    rows: int
    entries: int
    lower: int
    upper: int
    levels: int = 0
    reach: float = 0.0
    dimension: float = 1.0
    block_size: int = 1
    is_triangular: bool = False

    @property
    def row_length(self) -> float:
        """Average number of entries in a row."""
        return self.entries / max(self.rows, 1)


def find_structure(A: Matrix, *, hermitian: bool) -> Structure:
    """Return the structure of a square matrix.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any format.
    hermitian : bool
        Whether its pattern is known to be symmetric.
    """
    rows: Csr = A.asformat("csr")
    indptr, indices = (np.asarray(a) for a in A.executor.transfer(rows.indptr, rows.indices).read())
    n = A.shape[0]
    if n == 0 or indices.size == 0:
        return Structure(n, int(indices.size), 0, 0)
    lower, upper = _band(indptr, indices)
    if is_triangular(A, hermitian=hermitian):
        return Structure(n, int(indices.size), lower, upper, n, 1.0, is_triangular=True)
    if max(lower, upper) <= NARROW:  # nothing is better than a factorization of the band
        reach = float(max(lower, upper, 1))
        levels, dimension = int(n / reach), 1.0
    else:
        levels, reach, dimension = _levels(A.executor, indptr, indices, hermitian)
    return Structure(
        n, int(indices.size), lower, upper, levels, reach, dimension, _block_size(indptr, indices)
    )


def is_triangular(A: Matrix, *, hermitian: bool) -> bool:
    """Return whether a permutation of rows and columns makes a square matrix triangular."""
    if hermitian or 2 * A.nnz > A.shape[0] * (A.shape[0] + 1):
        return False
    rows: Csr = A.asformat("csr").to(host_of(A.executor, ordering.substitution))
    if np.diff(np.asarray(rows.indptr)).min(initial=2) != 1:  # a row of one entry comes first
        return False
    return triangular_order(rows.without_duplicates()) is not None


def _band(indptr: NDArray[Any], indices: NDArray[Any]) -> tuple[int, int]:
    """Return the lower and the upper bandwidth."""
    begun = np.flatnonzero(np.diff(indptr))
    starts = indptr[begun]
    least = np.minimum.reduceat(indices, starts)
    most = np.maximum.reduceat(indices, starts)
    return max(int((begun - least).max()), 0), max(int((most - begun).max()), 0)


def _levels(
    executor: Executor, indptr: NDArray[Any], indices: NDArray[Any], hermitian: bool
) -> tuple[int, float, float]:
    """Return the number of levels from a row at the edge, their average size and dimension."""
    n = indptr.size - 1
    left_out = np.diff(indptr) > max(16.0, 10.0 * np.sqrt(n))
    if left_out.all():
        left_out[:] = False
    if not hermitian:
        indptr, indices = both_ways(indptr, indices)
    host = host_of(executor, ordering.search)
    unreached = np.where(left_out, -2, -1).astype(indptr.dtype)
    start, best = int(np.argmin(left_out)), np.zeros(0, np.int64)
    for _ in range(3):
        level = unreached.copy()
        host.run(ordering.search, indptr, indices, start, level)
        sizes = np.bincount(level[level >= 0])
        if int(sizes.sum()) < n // 2 and best.size == 0:  # a small component
            start = _in_largest(indptr, indices, left_out)
            best = sizes
            continue
        if sizes.size <= best.size:
            break
        best, start = sizes, int(np.flatnonzero(level == sizes.size - 1)[-1])
    count = max(best.size - 1, 1)
    return count, int(best.sum()) / count, _dimension(np.concatenate([[0], np.cumsum(best)]))


def both_ways(indptr: NDArray[Any], indices: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the pattern of a matrix plus its transpose."""
    from scipy.sparse import csr_array

    n = indptr.size - 1
    graph = csr_array((np.ones(indices.size, np.int8), indices, indptr), shape=(n, n))
    both = graph.astype(bool) + graph.T.astype(bool)
    return both.indptr.astype(indptr.dtype), both.indices.astype(indices.dtype)


def _in_largest(indptr: NDArray[Any], indices: NDArray[Any], left_out: NDArray[Any]) -> int:
    """Return a row of the largest component among the rows that are not left out."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = indptr.size - 1
    graph = csr_array((np.ones(indices.size, np.int8), indices, indptr), shape=(n, n))
    keep = np.flatnonzero(~left_out)
    if keep.size < n:
        graph = graph[keep][:, keep]
    _, labels = connected_components(graph, directed=False)
    return int(keep[np.argmax(labels == np.argmax(np.bincount(labels)))])


def _dimension(starts: NDArray[Any]) -> float:
    """Return the exponent by which the number of reached rows grows with the level."""
    if starts.size < 6:
        return 3.0
    sizes = np.diff(starts)
    wide = int(np.argmax(sizes >= 0.7 * sizes.max()))
    outer = max(min(wide, starts.size - 2), 4)
    inner = outer // 2
    return float(np.clip(np.log(starts[outer] / starts[inner]) / np.log(outer / inner), 1.0, 4.0))


def _block_size(indptr: NDArray[Any], indices: NDArray[Any]) -> int:
    """Return the rows per node: the largest block size with filled blocks."""
    n = indptr.size - 1
    for size in BLOCK_SIZES:
        if n % size or n < 8 * size:
            continue
        filled = _filled(indptr, indices, size, 0)
        # in a dense band, shifted blocks are filled as well
        if filled >= FILLED and _filled(indptr, indices, size, 1) < 0.9 * filled:
            return size
    return 1


def _filled(indptr: NDArray[Any], indices: NDArray[Any], size: int, shift: int) -> float:
    """Return the filled fraction of the blocks of sampled nodes."""
    nodes = (indptr.size - 1) // size - 1
    sample = np.unique(np.linspace(0, nodes - 1, min(SAMPLED, nodes)).astype(np.int64))
    begin = indptr[sample * size + shift].astype(np.int64)
    counts = indptr[sample * size + shift + size] - begin
    total = int(counts.sum())
    first = np.repeat(begin - np.cumsum(counts) + counts, counts)
    columns = indices[first + np.arange(total)].astype(np.int64)
    owner = np.repeat(np.arange(sample.size), counts)
    blocks = np.unique(owner * (nodes + 2) + (columns + size - shift) // size).size
    return total / max(size * size * blocks, 1)
