"""Permutations of the rows and columns of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ExecutorMismatch, InvalidArgument, ShapeMismatch
from . import base
from .csr import Csr
from .permutation import Permutation
from .rowwise import of_pattern
from .selection import sorted_once, take_rows

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix


def permuted(A: Csr, rows: Array, columns: Array) -> tuple[Csr, Array]:
    """Return ``B`` with ``B_ij = A_(rows_i, columns_j)``, sorted, and the source of its entries.

    Parameters
    ----------
    A : Csr, shape (m, n)
        The matrix.
    rows, columns : array of integers, shape (m,) and (n,)
        Permutations on the executor of the matrix.

    Returns
    -------
    B : Csr
        The permuted matrix.
    places : array of int64, shape (nnz,)
        Positions such that ``B.data == A.data[places]``.
    """
    numbers = A.executor.xp.arange(A.nnz, dtype=np.float64)
    made = _in_order(of_pattern(A, numbers), rows, columns)
    places = made.data.astype(np.int64)
    return of_pattern(made, A.data[places]), places


def _in_order(A: Csr, rows: Array, columns: Array) -> Csr:
    """Return the permuted matrix with sorted rows; its values may have any dtype."""
    xp = A.executor.xp
    taken = take_rows(A, rows)
    inverse = xp.empty(A.shape[1], A.index_dtype)
    inverse[columns] = xp.arange(A.shape[1], dtype=A.index_dtype)
    indices = inverse[taken.indices]
    return sorted_once(Csr._from_arrays(A.executor, A.shape, taken.data, indices, taken.indptr))


def indices_of(permutation: Any, A: Matrix, length: int, name: str) -> Array:
    """Return the indices of a permutation on the executor of the matrix.

    Raises
    ------
    ShapeMismatch
        If the permutation has a wrong length.
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
    made = _in_order(A.asformat("csr"), rows, columns)
    made._follows = A._follows
    result: Matrix = made.asformat(A.format)
    return result


base.permuted.provide(permute)
