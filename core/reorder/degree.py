"""Minimum degree orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formats import Permutation
from .pattern import as_permutation, pattern, square_matrix


def amd(A: Any) -> Permutation:
    """Return a minimum degree order of a square matrix, for little fill-in of its factors.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix; the order is computed for the pattern of ``A + A^T``.

    Returns
    -------
    Permutation
        The order; ``A.permute(p)`` is the reordered matrix.

    Notes
    -----
    SciPy's SuperLU computes it on the host with multiple minimum degree, the order that approximate
    minimum degree approximates.

    References
    ----------
    J. W. H. Liu, Modification of the minimum-degree algorithm by multiple elimination, ACM Trans.
    Math. Softw. 11 (1985); P. R. Amestoy, T. A. Davis and I. S. Duff, SIAM J. Matrix Anal. Appl. 17
    (1996).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> arrow = np.eye(4); arrow[0] = arrow[:, 0] = 1.0
    >>> bool(wl.reorder.amd(wl.Csr(arrow)).indices[0] == 0)     # the full row comes late
    False
    """
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import spilu

    matrix = square_matrix(A, "amd")
    n = matrix.shape[0]
    if n == 0:
        return as_permutation(np.zeros(0, np.int64), matrix)
    # A factorization that drops everything computes the order of the pattern without fill-in. The
    # large diagonal provides a pivot in every column.
    both = csc_array(pattern(matrix) + (2.0 * n + 1.0) * eye_array(n))
    lu = spilu(both, drop_tol=1.0, fill_factor=1.0, permc_spec="MMD_AT_PLUS_A")
    return as_permutation(np.argsort(lu.perm_c), matrix)
