"""Matrices with their rows and columns in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ExecutorMismatch, InvalidArgument, ShapeMismatch
from ..operations import structure
from . import base
from .csr import Csr
from .permutation import Permutation

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix


def permuted(A: Csr, rows: Array, columns: Array) -> tuple[Csr, Array]:
    """Return ``B`` with ``B_ij = A_(rows_i, columns_j)``, sorted, and the positions of its entries.

    Parameters
    ----------
    A : Csr, shape (m, n)
        The matrix.
    rows, columns : array of integers, shape (m,) and (n,)
        Permutations, on the executor of the matrix.

    Returns
    -------
    B : Csr
        The permuted matrix.
        ``B.data == A.data[places]``.
    """
    xp, dtype = A.executor.xp, A.index_dtype
    lengths = (A.indptr[1:] - A.indptr[:-1])[rows]
    indptr = xp.concatenate([xp.zeros(1, dtype=dtype), xp.cumsum(lengths, dtype=dtype)])
    entries = xp.arange(A.nnz, dtype=np.int64)
    row = xp.searchsorted(indptr[1:], entries, side="right")
    places = entries - indptr[row] + A.indptr[rows[row]]
    inverse = xp.zeros(A.shape[1], dtype=dtype)
    inverse[columns] = xp.arange(A.shape[1], dtype=dtype)
    zeros = A.executor.zeros((A.nnz,), np.float32)
    unsorted = Csr._from_arrays(A.executor, A.shape, zeros, inverse[A.indices[places]], indptr)
    indices, _, order = A.executor.run(structure.csr_sort, unsorted)
    places = places[order]
    made = Csr._from_arrays(A.executor, A.shape, A.data[places], indices, indptr)
    return made, places


def indices_of(permutation: Any, A: Matrix, length: int, name: str) -> Array:
    """Return the indices of a permutation where the matrix is.

    Raises
    ------
    ShapeMismatch
        If it is not as long as it has to be.
    """
    if permutation is None:
        return A.executor.xp.arange(length, dtype=np.int64)
    if not isinstance(permutation, Permutation):
        try:
            permutation = Permutation(permutation, executor=A.executor)
        except ExecutorMismatch:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{name}: {error}") from None
    if permutation.shape[0] != length:
        raise ShapeMismatch(
            f"{name}: expected a permutation of {length}, got one of {permutation.shape[0]}"
        )
    return permutation.to(A.executor).indices


def permute(A: Matrix, p: Any, q: Any) -> Matrix:
    """Return ``P A Q^T`` in the format of ``A``; see :meth:`Matrix.permute`."""
    rows = indices_of(p, A, A.shape[0], "p")
    square = q is None and p is not None and A.shape[0] == A.shape[1]
    columns = rows if square else indices_of(q, A, A.shape[1], "q")
    made, _ = permuted(A.asformat("csr"), rows, columns)
    made._follows = A._follows
    found: Matrix = made.asformat(A.format)
    return found


base.permuted.provide(permute)
