"""Triangles of matrices, and lists of their nonzero entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formats.exact import row_numbers
from ..formats.rowwise import canonical_rows
from ..formats.selection import nonzeros
from .given import as_matrix, finished

if TYPE_CHECKING:
    from ..executor import Array, Executor


def tril(
    A: Any, k: int = 0, format: str | None = None, *, executor: Executor | str | None = None
) -> Any:
    """Return the entries on and below the ``k``-th diagonal above the main one.

    Parameters
    ----------
    A : matrix of any library, or array of two dimensions
        The matrix.
    k : int
        The last diagonal of the result; 0 is the main diagonal, 1 the one above it.
    format : str, optional
        The format of the result; ``csr`` by default.
    executor : Executor or str, optional
        Executor of the result; by default the executor of ``A``.

    Returns
    -------
    Matrix

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.tril([[1.0, 2.0], [3.0, 4.0]], k=-1).to_dense()
    array([[0., 0.],
           [3., 0.]])
    """
    matrix = as_matrix(A, "tril", executor)
    return finished(matrix.tril(k), format, None, matrix)


def triu(
    A: Any, k: int = 0, format: str | None = None, *, executor: Executor | str | None = None
) -> Any:
    """Return the entries on and above the ``k``-th diagonal; see :func:`tril`.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.triu([[1.0, 2.0], [3.0, 4.0]]).to_dense()
    array([[1., 2.],
           [0., 4.]])
    """
    matrix = as_matrix(A, "triu", executor)
    return finished(matrix.triu(k), format, None, matrix)


def find(A: Any, *, executor: Executor | str | None = None) -> tuple[Array, Array, Array]:
    """Return the rows, columns and values of the nonzero entries.

    Parameters
    ----------
    A : matrix of any library, or array of two dimensions
        The matrix; duplicates are summed first.
    executor : Executor or str, optional
        Executor of the arrays; by default the executor of ``A``.

    Returns
    -------
    tuple of native arrays, shape (nnz,)
        The arrays, row by row with ascending columns.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.find([[0.0, 2.0], [3.0, 0.0]])
    (array([0, 1], dtype=int32), array([1, 0], dtype=int32), array([2., 3.]))
    """
    csr = nonzeros(canonical_rows(as_matrix(A, "find", executor)))
    copies = (csr.executor.copy(array) for array in (csr.indices, csr.data))
    return row_numbers(csr), *copies
