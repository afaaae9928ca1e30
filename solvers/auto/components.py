"""Solve each connected component of the pattern as a separate system.

Each component then gets a suitable method, and a singular or indefinite component does not slow
down the others. All small components are solved together by a direct solver: their factors are
small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formats import Csr, Matrix
from ...core.formats.triangular import host_of
from ...core.notes import Topic, is_about, without
from ...core.operands import as_block, like
from ...core.operations import ordering
from ...core.result import AttemptRecord, Result
from ...core.status import Stop
from ..driver.scaling import column_norms, exponents_near_one, times_powers
from .dense import MOST_ROWS
from .structure import both_ways

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

#: A component with more than this fraction of the rows has nearly all of them.
NEARLY_ALL = 0.9

#: Number of components, the largest first, with attempts and notes in the result.
SHOWN = 8


@dataclass(frozen=True)
class Piece:
    """One large component, or all small ones together.

    Attributes
    ----------
    rows : array of int
        The rows of the piece.
    A : Csr
        The matrix of these rows and columns.
    """

    rows: Numbers
    A: Csr


def is_connected(A: Matrix) -> bool:
    """Return whether the pattern of a square matrix is connected, by breadth-first search."""
    rows: Csr = A.asformat("csr")
    indptr, indices = (np.asarray(a) for a in A.executor.transfer(rows.indptr, rows.indices).read())
    host = host_of(A.executor, ordering.search)
    for one_way in (True, False):  # most patterns are symmetric
        if not one_way:
            indptr, indices = both_ways(indptr, indices)
        level = np.full(A.shape[0], -1, indptr.dtype)
        host.run(ordering.search, indptr, indices, 0, level)
        if np.all(level >= 0):
            return True
    return False


def pieces_of(A: Matrix) -> tuple[int, list[Piece]]:
    """Return the number of components, and the pieces: each large one, one of all small ones."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = A.shape[0]
    rows: Csr = A.asformat("csr")
    read = A.executor.transfer(rows.data, rows.indices, rows.indptr).read()
    data, indices, indptr = (np.asarray(a) for a in read)
    S = csr_array((data, indices, indptr), shape=(n, n))
    pattern = csr_array((np.ones(data.size, np.int8), indices, indptr), shape=(n, n))
    count, labels = connected_components(pattern, directed=False)
    sizes = np.bincount(labels, minlength=count)
    small = sizes <= MOST_ROWS
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups = [order[starts[c] : starts[c + 1]] for c in np.flatnonzero(~small)]
    if small.any():
        groups.append(np.flatnonzero(small[labels]))
    groups.sort(key=len, reverse=True)
    return count, [Piece(g, Csr(S[g][:, g], executor=A.executor)) for g in groups]


def solve_components(
    A: Matrix, b: Any, solve: Callable[..., Result], rtol: float, atol: float, gave_up: bool
) -> Result | None:
    """Solve each component by itself.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix.
    b : array, shape (n,) or (n, k)
        Right-hand sides.
    solve : callable
        Called as ``solve(A, b, rtol=, atol=)``.
    rtol, atol : float
        The tolerance.
    gave_up : bool
        Whether the first method was slow: it would be as slow for a component with nearly all rows.

    Returns
    -------
    Result or None
        None if there is one component, or if separate solves would gain nothing.
    """
    if is_connected(A):
        return None
    count, pieces = pieces_of(A)
    if len(pieces) == 1:
        return None  # all are small: a second attempt at the same matrix gains nothing
    if gave_up and pieces[0].rows.size > NEARLY_ALL * A.shape[0]:
        return None
    block = np.asarray(A.executor.to_host(as_block(A.executor, b, A.shape[0], "b")))
    share = (2.0 * len(pieces)) ** -0.5 if atol > 0 else 1.0
    results = [
        solve(
            piece.A,
            np.ascontiguousarray(block[piece.rows]),
            rtol=rtol * (0.5**0.5 if atol > 0 else 1.0),
            atol=atol * share,
        )
        for piece in pieces
    ]
    return _together(A, b, block, pieces, results, count, rtol, atol)


def _together(
    A: Matrix,
    b: Any,
    block: Numbers,
    pieces: list[Piece],
    results: list[Result],
    count: int,
    rtol: float,
    atol: float,
) -> Result:
    """Combine the results of all pieces."""
    parts = [np.asarray(result.x) for result in results]
    x = np.zeros(block.shape, np.result_type(*parts))
    for piece, part in zip(pieces, parts, strict=True):
        x[piece.rows] = part
    # squares of norms, and thresholds, may be out of range: columns are judged near one
    exponents = exponents_near_one(block)
    norms = np.stack([np.atleast_1d(result.residual_norm) for result in results])
    norm = np.hypot.reduce(times_powers(norms, exponents), axis=0)
    norm_b = column_norms(times_powers(block, exponents))
    threshold = np.maximum(rtol * norm_b, times_powers(np.array(atol), exponents))
    stops: list[Stop] = []
    for column in range(block.shape[1]):
        failed = [r.stops[column] for r in results if r.stops[column] != Stop.CONVERGED]
        met = not failed or norm[column] <= threshold[column]
        others = [stop for stop in failed if stop != Stop.LEAST_SQUARES]
        stops.append(Stop.CONVERGED if met else (others or failed)[0])
    norm, norm_b, threshold = (times_powers(v, -exponents) for v in (norm, norm_b, threshold))
    attempts: list[AttemptRecord] = []
    for result in results[:SHOWN]:
        attempts += result.attempts
    one = np.ndim(b) == 1
    history = np.stack([norm_b, norm])
    return Result(
        x=like(A.executor, A.executor.from_host(np.ascontiguousarray(x)), b),
        stops=stops,
        column_iterations=np.max([r.column_iterations for r in results], axis=0),
        residual_norm=float(norm[0]) if one else norm,
        residuals=history[:, 0] if one else history,
        threshold=float(threshold[0]) if one else threshold,
        norm_of_b=float(norm_b[0]) if one else norm_b,
        M=results[0].M,
        is_shortest=_are_shortest(results),
        seconds=sum(result.seconds for result in results),
        solver=results[0].solver,
        executor=A.executor.name,
        notes=_notes(results, count),
        attempts=attempts,
    )


def _are_shortest(results: list[Result]) -> bool:
    """Return whether each piece without a solution has its shortest least squares solution."""
    return all(result.converged or result.is_shortest for result in results)


def _notes(results: list[Result], count: int) -> list[str]:
    """Return the notes on the largest components; a note on the shortest x only if all agree."""
    notes = [f"the pattern has {count} components, which were solved separately"]
    for result in results[:SHOWN]:
        notes += [note for note in result.notes if note not in notes]
    if not all(r.converged or _is_shortest(r) for r in results):  # true of a part of x only
        notes = without(notes, Topic.SHORTEST)
    return notes


def _is_shortest(result: Result) -> bool:
    """Return whether the notes of a result call its solution the shortest one."""
    return any(is_about(note, Topic.SHORTEST) for note in result.notes)
