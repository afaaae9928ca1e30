"""The common input of all orders: the symmetric pattern of a matrix on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeMismatch
from ..formats import Csr, Matrix, Permutation
from ..formats.entries import with_entries
from ..operator_conversions import as_linop


def square_matrix(A: Any, caller: str) -> Matrix:
    """Return a square matrix.

    Raises
    ------
    InvalidArgument, ShapeMismatch
        If ``A`` has no entries, or is not square.
    """
    matrix = with_entries(as_linop(A), caller)
    if matrix.shape[0] != matrix.shape[1]:
        rows, columns = matrix.shape
        raise ShapeMismatch(f"{caller} needs a square matrix, got {rows}x{columns}")
    return matrix


def pattern(A: Matrix) -> Any:
    """Return the pattern of ``A + A^T`` with ones as values, as a SciPy matrix by rows."""
    from scipy.sparse import csr_array

    S: Csr = A.asformat("csr")
    indptr, indices = (np.asarray(S.executor.to_host(a)) for a in (S.indptr, S.indices))
    ones = csr_array((np.ones(indices.size, np.int8), indices, indptr), shape=S.shape)
    both = csr_array(ones.astype(bool) + ones.T.astype(bool)).astype(np.float64)
    both.sum_duplicates()
    return both


def as_permutation(order: np.ndarray[Any, Any], A: Matrix) -> Permutation:
    """Return an order as a permutation on the executor of the matrix."""
    result = Permutation(np.asarray(order, np.int64), dtype=A.dtype, executor=A.executor)
    result._follows = A._follows
    return result
