"""The reverse Cuthill-McKee order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formats import Permutation
from .pattern import as_permutation, pattern, square_matrix


def rcm(A: Any) -> Permutation:
    """Return the reverse Cuthill-McKee order of a square matrix, for a small bandwidth.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix; the order is computed for the pattern of ``A + A^T``.

    Returns
    -------
    Permutation
        The order; ``A.permute(p)`` is the reordered matrix, and ``p @ x`` a reordered vector.

    Notes
    -----
    SciPy computes it on the host.

    References
    ----------
    E. Cuthill and J. McKee, Reducing the bandwidth of sparse symmetric matrices, Proc. 24th Nat.
    Conf. ACM, 1969; A. George, Computer implementation of the finite element method, 1971.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 2.0]]))
    >>> wl.reorder.rcm(A).indices.tolist()
    [1, 2, 0]
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    matrix = square_matrix(A, "rcm")
    if matrix.shape[0] == 0:
        return as_permutation(np.zeros(0, np.int64), matrix)
    return as_permutation(reverse_cuthill_mckee(pattern(matrix), symmetric_mode=True), matrix)
