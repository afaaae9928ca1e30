"""Matchings of rows and columns with the maximum product of entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import real_dtype
from ..errors import InvalidMatrix
from ..formats import Csr, Diagonal, Permutation
from ..formats.triangular import host_of
from ..operations import ordering
from .pattern import as_permutation, square_matrix


@dataclass(frozen=True)
class Matching:
    """Matched rows and columns, and scalings that make matched entries 1 in modulus.

    All entries of ``R A C`` have a modulus of at most 1, and ``(R A C).permute(p, range(n))`` has
    its matched entries, of modulus 1, on the diagonal.

    Attributes
    ----------
    rows : Permutation
        The permutation of the rows: row ``j`` of the permuted matrix is matched with column ``j``.
    row_scale, column_scale : Diagonal
        The scalings ``R`` and ``C``.
    matched : int
        Number of matched rows; it is n unless the matrix is structurally singular. Unmatched rows
        and columns are paired arbitrarily.
    """

    rows: Permutation
    row_scale: Diagonal
    column_scale: Diagonal
    matched: int


def matching(A: Any) -> Matching:
    """Match rows and columns so that the product of the matched entries is maximum.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix; stored zeros count as missing entries.

    Returns
    -------
    Matching
        The permutation of the rows, and the scalings.

    Raises
    ------
    InvalidMatrix
        If the matrix contains NaN or infinity.

    Notes
    -----
    It is computed on the host, with memory proportional to the number of entries.

    References
    ----------
    I. S. Duff and J. Koster, On algorithms for permuting large entries to the diagonal of a sparse
    matrix, SIAM J. Matrix Anal. Appl. 22 (2001).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[0.0, 2.0], [5.0, 1.0]]))
    >>> found = wl.reorder.matching(A)
    >>> B = A.permute(found.rows, range(2))
    >>> B.to_dense()
    array([[5., 1.],
           [0., 2.]])
    """
    matrix = square_matrix(A, "matching")
    executor, n = matrix.executor, matrix.shape[0]
    S: Csr = matrix.asformat("csr").without_duplicates()
    data, indices, indptr = (np.asarray(executor.to_host(a)) for a in (S.data, S.indices, S.indptr))
    if not np.all(np.isfinite(data)):
        raise InvalidMatrix("matching: the matrix has NaN or Inf")
    size = np.abs(data.astype(np.complex128 if data.dtype.kind == "c" else np.float64))
    there = size > 0
    row = np.repeat(np.arange(n), np.diff(indptr))[there]
    indices = np.ascontiguousarray(indices[there])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(S.index_dtype)
    size = size[there]
    largest = np.zeros(n)
    np.maximum.at(largest, indices, size)
    cost = np.log(largest[indices]) - np.log(size)
    column = np.empty(n, S.index_dtype)
    u, v = np.empty(n), np.empty(n)
    at = host_of(executor, ordering.matching)
    at.run(ordering.matching, indptr, indices, cost, column, u, v)
    matched = column >= 0
    order = np.full(n, -1, np.int64)
    order[column[matched]] = np.flatnonzero(matched)
    order[order < 0] = np.flatnonzero(~matched)
    largest[largest == 0] = 1.0
    with np.errstate(over="ignore", under="ignore"):
        of_rows, of_columns = np.exp(u), np.exp(v) / largest
    return Matching(
        as_permutation(order, matrix),
        _diagonal(of_rows, matrix),
        _diagonal(of_columns, matrix),
        matched=int(matched.sum()),
    )


def _diagonal(scale: np.ndarray[Any, Any], A: Any) -> Diagonal:
    limits = np.finfo(real_dtype(A.dtype))
    held = np.clip(scale, limits.tiny, limits.max).astype(A.dtype)
    return Diagonal(held, executor=A.executor)
