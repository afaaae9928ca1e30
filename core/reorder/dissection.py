"""Nested dissection."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..distinct import distinct
from ..errors import ExecutorUnavailable, InvalidArgument
from ..formats import Permutation
from .pattern import as_permutation, pattern, square_matrix

#: Parts with fewer rows are not divided further: their order is the one of the search levels.
SMALLEST = 16


def nested_dissection(A: Any, method: str = "auto") -> Permutation:
    """Return a nested dissection order of a square matrix, with separators last.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix; the order is computed for the pattern of ``A + A^T``.
    method : {"auto", "metis", "levels"}
        METIS (package ``pymetis``), which finds smaller separators, or middle levels of
        breadth-first searches. By default METIS if it is installed.

    Returns
    -------
    Permutation
        The order; ``A.permute(p)`` is the reordered matrix.

    Raises
    ------
    InvalidArgument
        If the method does not exist.
    ExecutorUnavailable
        If METIS is requested but not installed.

    References
    ----------
    A. George and J. W. H. Liu, An automatic nested dissection algorithm for irregular finite
    element problems, SIAM J. Numer. Anal. 15 (1978); G. Karypis and V. Kumar, SIAM J. Sci. Comput.
    20 (1998), for METIS.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.eye(5) + np.eye(5, k=1) + np.eye(5, k=-1))
    >>> sorted(wl.reorder.nested_dissection(A).indices.tolist())
    [0, 1, 2, 3, 4]
    """
    matrix = square_matrix(A, "nested_dissection")
    if method not in ("auto", "metis", "levels"):
        raise InvalidArgument(f"method: expected auto, metis or levels, got {method!r}")
    metis = None if method == "levels" else _metis()
    if metis is None and method == "metis":
        raise ExecutorUnavailable("nested_dissection: METIS is not here: pip install pymetis")
    both = pattern(matrix)
    both.setdiag(0)
    both.eliminate_zeros()
    if metis is not None and matrix.shape[0]:
        order, _ = metis.nested_dissection(metis.CSRAdjacency(both.indptr, both.indices))
        return as_permutation(np.asarray(order), matrix)
    return as_permutation(_by_levels(both.indptr, both.indices), matrix)


def _metis() -> Any:
    try:
        import pymetis
    except ImportError:
        return None
    return pymetis


def _by_levels(indptr: Any, indices: Any) -> np.ndarray[Any, Any]:
    """Return the order: parts that the middle level of a search separates, then that level."""
    n = indptr.size - 1
    order = np.empty(n, np.int64)
    end = n
    member = np.zeros(n, np.int64)  # number of the part that contains each row
    parts, number = [np.arange(n)], 0
    while parts:
        part = parts.pop()
        number += 1
        member[part] = number
        if part.size == 0:
            continue
        levels = _levels(indptr, indices, member, number, part)
        reached = np.concatenate(levels)
        if reached.size < part.size:  # the part has several components
            inside = np.zeros(n, bool)
            inside[reached] = True
            parts += [part[~inside[part]], reached]
            continue
        if part.size <= SMALLEST or len(levels) < 3:
            order[end - part.size : end] = reached[::-1]
            end -= part.size
            continue
        sizes = np.cumsum([level.size for level in levels])
        middle = int(np.clip(np.searchsorted(sizes, part.size / 2), 1, len(levels) - 2))
        separator = levels[middle]
        order[end - separator.size : end] = separator
        end -= separator.size
        parts += [np.concatenate(levels[:middle]), np.concatenate(levels[middle + 1 :])]
    return order


def _levels(
    indptr: Any, indices: Any, member: Any, number: int, part: np.ndarray[Any, Any]
) -> list[np.ndarray[Any, Any]]:
    """Return breadth-first search levels from a row that is far from other rows."""
    start = part[0]
    best: list[np.ndarray[Any, Any]] = []
    for _ in range(3):
        levels = _search(indptr, indices, member, number, start)
        if len(levels) <= len(best):
            break
        best = levels
        last = levels[-1]
        start = last[np.argmin(indptr[last + 1] - indptr[last])]
    return best


def _search(
    indptr: Any, indices: Any, member: Any, number: int, start: int
) -> list[np.ndarray[Any, Any]]:
    level = np.array([start])
    levels = []
    marked = member == number
    marked[start] = False
    while level.size:
        levels.append(level)
        lengths = indptr[level + 1] - indptr[level]
        at = np.repeat(indptr[level] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        following = distinct(indices[at + np.arange(lengths.sum())])
        level = following[marked[following]]
        marked[level] = False
    return levels
