"""Search for wanted eigenvectors that are orthogonal to a block of converged vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import tall
from .block_basis import BlockBasis, wide

if TYPE_CHECKING:
    from ...core.executor import Array

Numbers = np.ndarray[Any, Any]

#: Number of products with A in a long search. In a space of at most this dimension, the search is
#: exact.
STEPS = 24


def better_vector(
    basis: BlockBasis, k: int, bound: float, steps: int, *, largest: bool, seed: int
) -> Array | None:
    """Return a vector with a wanted Rayleigh quotient that is orthogonal to ``k`` vectors.

    Parameters
    ----------
    basis : BlockBasis
        The basis; its first ``k`` vectors have converged.
    k : int
        Number of converged vectors.
    bound : float
        Bound of the Rayleigh quotient: it must be below, or above if the largest values are wanted.
    steps : int
        Upper bound of the products with A.
    largest : bool
        Whether the largest eigenvalues are wanted.
    seed : int
        Seed of the random initial vector.

    Returns
    -------
    array, shape (n, 1), or None
        The vector; None if the search finds none.

    Notes
    -----
    The search minimizes the quotient over a growing basis of residuals, without restarts. If ``B``
    is the identity, this is the Lanczos method.
    """
    pencil, executor, n = basis.pencil, basis.executor, basis.n
    steps = min(steps, basis.dimension)
    grown = BlockBasis(pencil, k + steps)
    grown.Y, grown.BY = basis.Y, basis.BY
    tall.copy(executor, basis.S[:, :k], grown.S[:, :k])
    if grown.orthonormalize(0, k) < k:
        return None
    first = tall.random_block(executor, n, 1, basis.dtype, (max(seed, 0), k, basis.dimension))
    tall.copy(executor, first, grown.S[:, k : k + 1])
    images = executor.zeros((n, steps), basis.dtype)
    G = np.zeros((0, 0))
    for count in range(1, steps + 1):
        if grown.orthonormalize(k + count - 1, 1) == 0:
            return None
        V, BV = (block[:, k : k + count] for block in (grown.S, grown.BS))
        tall.apply(pencil.A, V[:, count - 1 :], images[:, count - 1 : count])
        column = wide(tall.gram(executor, V, images[:, count - 1 : count]))
        if not np.all(np.isfinite(column)):
            return None
        G = np.block([[G, column[:-1]], [column[:-1].conj().T, column[-1:].real]])
        values, vectors = np.linalg.eigh(G)
        chosen = -1 if largest else 0
        value, c = float(values[chosen]), vectors[:, [chosen]]
        if value > bound if largest else value < bound:
            found = executor.zeros((n, 1), basis.dtype)
            tall.times(executor, V, c, found)
            return found
        if count < steps:
            residual = grown.S[:, k + count : k + count + 1]  # zero so far
            tall.times(executor, images[:, :count], c, residual)
            tall.times(executor, BV, value * c, residual, -1.0)
    return None
