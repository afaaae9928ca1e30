"""The structure of a square pattern: band, levels of a search in breadth, blocks of nodes.

It depends on the pattern alone and is kept when values change. The host computes it: it decides
about factorizations, which the host makes, and is asked for where one may be worth its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formats import Csr, Matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Dimension of a pattern from which on levels say little of fill and iterations: circuits and
#: networks have few levels, and grids in space have 2.8.
UNRELIABLE = 3.2

#: Sizes of node blocks that are looked for, the largest first.
BLOCK_SIZES = (6, 4, 3, 2)

#: The filled part of node blocks from which on they count as blocks. Scalar stencils fill half of
#: blocks of two rows.
FILLED = 0.75

#: The widest band whose factorization in LAPACK goes row by row: wider ones make products of small
#: blocks, whose threads wait for one another on a busy machine.
NARROW = 64

#: Nodes of which the blocks are looked at.
SAMPLED = 64

#: Levels of a search in breadth that are counted; a pattern with more is nearly a line.
MOST_LEVELS = 4000


@dataclass(frozen=True)
class Structure:
    """A few numbers about a square pattern.

    Attributes
    ----------
    rows, entries : int
        How many.
    lower, upper : int
        The largest distances of entries below and above from the diagonal.
    levels : int
        Levels of a search in breadth from a row at the edge of the pattern; 0 if there is none.
    reach : float
        Rows of an average level.
    dimension : float
        How the number of reached rows grows with the level: 2 for grids in the plane, 3 in space.
    block_size : int
        Unknowns of a node, 1 without blocks.
    """

    rows: int
    entries: int
    lower: int
    upper: int
    levels: int = 0
    reach: float = 0.0
    dimension: float = 1.0
    block_size: int = 1

    @property
    def is_triangular(self) -> bool:
        """Whether all entries are on one side of the diagonal."""
        return self.lower == 0 or self.upper == 0

    @property
    def row_length(self) -> float:
        """Entries of an average row."""
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
    indptr, indices = (
        np.asarray(a) for a in A.executor.to_host_together(rows.indptr, rows.indices)
    )
    n = A.shape[0]
    if n == 0 or indices.size == 0:
        return Structure(n, int(indices.size), 0, 0)
    lower, upper = _band(indptr, indices)
    if max(lower, upper) <= NARROW:  # nothing is better than a factorization of the band
        reach = float(max(lower, upper, 1))
        levels, dimension = int(n / reach), 1.0
    else:
        levels, reach, dimension = _levels(indptr, indices, hermitian)
    return Structure(
        n, int(indices.size), lower, upper, levels, reach, dimension, _block_size(indptr, indices)
    )


def _band(indptr: NDArray[Any], indices: NDArray[Any]) -> tuple[int, int]:
    """Return the largest distances from the diagonal, below and above."""
    begun = np.flatnonzero(np.diff(indptr))
    starts = indptr[begun]
    least = np.minimum.reduceat(indices, starts)
    most = np.maximum.reduceat(indices, starts)
    return max(int((begun - least).max()), 0), max(int((most - begun).max()), 0)


def _levels(
    indptr: NDArray[Any], indices: NDArray[Any], hermitian: bool
) -> tuple[int, float, float]:
    """Return the levels from a row at the edge, their average size and how they grow."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n = indptr.size - 1
    graph = csr_array((np.ones(indices.size), indices, indptr), shape=(n, n))
    graph = _without_hubs(graph, indptr)
    start, best = 0, np.zeros(0, np.int64)
    for _ in range(3):
        order, before = breadth_first_order(graph, start, directed=hermitian)
        starts = _starts(order, before)
        if order.size < n // 2 and best.size == 0:  # a small component: search in the largest one
            start = _in_largest(graph)
            best = starts
            continue
        if starts.size <= best.size and best.size:
            break
        best, start = starts, int(order[-1])
    reached = int(best[-1]) if best.size else 0
    count = max(best.size - 1, 1)
    return count, reached / count, _dimension(best)


def _without_hubs(graph: Any, indptr: NDArray[Any]) -> Any:
    """Return the graph without rows of very many entries, which an elimination takes last."""
    n = indptr.size - 1
    lengths = np.diff(indptr)
    hubs = lengths > max(16.0, 10.0 * np.sqrt(n))
    if not hubs.any() or hubs.all():
        return graph
    keep = np.flatnonzero(~hubs)
    return graph[keep][:, keep]


def _in_largest(graph: Any) -> int:
    """Return a row of the largest component."""
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(graph, directed=False)
    return int(np.argmax(labels == np.argmax(np.bincount(labels))))


def _starts(order: NDArray[Any], before: NDArray[Any]) -> NDArray[Any]:
    """Return where each level begins in the order of a search, and the end of the last one."""
    place = np.zeros(before.size, np.int64)
    place[order] = np.arange(order.size)
    of_parent = place[before[order[1:]]]
    starts = [0, 1]
    while starts[-1] < order.size and len(starts) < MOST_LEVELS:
        following = int(np.searchsorted(of_parent, starts[-1])) + 1
        if following <= starts[-1]:
            break
        starts.append(following)
    if starts[-1] < order.size:  # more levels than are counted, of the size of those before
        share = order.size / starts[-1]
        return (np.asarray(starts) * share).astype(np.int64)
    return np.asarray(starts)


def _dimension(starts: NDArray[Any]) -> float:
    """Return the exponent by which the rows reached grow with the level."""
    if starts.size < 6:
        return 3.0
    sizes = np.diff(starts)
    wide = int(np.argmax(sizes >= 0.7 * sizes.max()))
    outer = max(min(wide, starts.size - 2), 4)
    inner = outer // 2
    return float(np.clip(np.log(starts[outer] / starts[inner]) / np.log(outer / inner), 1.0, 4.0))


def _block_size(indptr: NDArray[Any], indices: NDArray[Any]) -> int:
    """Return how many rows belong to a node: the largest size of which the blocks are filled."""
    n = indptr.size - 1
    for size in BLOCK_SIZES:
        if n % size or n < 8 * size:
            continue
        filled = _filled(indptr, indices, size, 0)
        # shifted blocks are as full where a pattern is a dense band
        if filled >= FILLED and _filled(indptr, indices, size, 1) < 0.9 * filled:
            return size
    return 1


def _filled(indptr: NDArray[Any], indices: NDArray[Any], size: int, shift: int) -> float:
    """Return the filled part of the blocks of a sample of nodes."""
    nodes = (indptr.size - 1) // size - 1
    entries, places = 0, 0
    for node in np.unique(np.linspace(0, nodes - 1, min(SAMPLED, nodes)).astype(np.int64)):
        begin = int(node) * size + shift
        columns = indices[indptr[begin] : indptr[begin + size]]
        entries += columns.size
        places += size * size * np.unique((columns + size - shift) // size).size
    return entries / max(places, 1)
