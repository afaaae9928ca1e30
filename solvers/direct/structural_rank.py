"""The structural rank of a pattern: the largest rank of any matrix with this pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import InvalidMatrix
from ...core.store import Key

if TYPE_CHECKING:
    from ...core.formats import Csr

_RANK: Key[int] = Key("structural rank")


def structural_rank(A: Csr) -> int:
    """Return the size of the largest matching of rows and columns; kept with the pattern.

    Parameters
    ----------
    A : Csr, shape (n, n)
        The matrix; explicit zeros count as entries.

    References
    ----------
    I. S. Duff, K. Kaya and B. Ucar, Design, implementation, and analysis of maximum transversal
    algorithms, ACM Trans. Math. Softw. 38 (2011).
    """
    return A._pattern.get(_RANK, lambda: _matched(A))


def _matched(A: Csr) -> int:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import structural_rank

    n = A.shape[0]
    indptr, indices = (np.asarray(A.executor.to_host(a)) for a in (A.indptr, A.indices))
    rows = np.repeat(np.arange(n, dtype=indices.dtype), np.diff(indptr))
    there = np.zeros(n, bool)
    there[rows[rows == indices]] = True
    if there.all():  # the diagonal is a matching
        return n
    ones = np.ones(indices.size, np.int8)
    pattern = csr_array((ones, indices, indptr), shape=A.shape)
    # SciPy's search took 34 s instead of 1 ms where rows had their columns in descending order
    pattern.has_sorted_indices = False
    return int(structural_rank(pattern.sorted_indices()))


def require_structural_rank(A: Csr) -> None:
    """Raise if every matrix with this pattern is singular.

    Raises
    ------
    InvalidMatrix
        If the structural rank is less than the number of rows.
    """
    n, rank = A.shape[0], structural_rank(A)
    if rank < n:
        raise InvalidMatrix(
            f"Direct: the matrix is structurally singular: its {n} rows have at most rank {rank}, "
            "for any values; use wl.solvers.Lsmr for a least squares solution"
        )
