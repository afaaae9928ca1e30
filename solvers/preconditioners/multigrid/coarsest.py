"""The solver of the coarsest level: a dense inverse, or any other solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import InvalidArgument, InvalidMatrix
from ....core.formats import Csr, Dense, Matrix
from ....core.linop import LinOp
from ....core.settings import Settings
from ..chebyshev import Chebyshev

#: Upper bound of the rows of a coarsest level with a dense inverse: the inverse of 4096 rows has 16
#: M values and takes seconds.
LARGEST_DENSE = 4096


#: Up to this number of rows, the inverse of a coarsest level is dense without a search for
#: components.
ROWS_WITHOUT_SEARCH = 1024

#: From FEW_ROWS up to ROWS_WITHOUT_SEARCH rows, the inverse is computed with blocks of BLOCK rows:
#: BLAS multiplies blocks up to this size with one thread.
FEW_ROWS, BLOCK = 80, 64

#: Largest permitted residual of an inverse by blocks, in units of the rounding error that its
#: condition number explains.
STABLE = 1.0

#: Upper bound of the average entries in a row of the inverses of all components.
ENTRIES_OF_ROW = 64

#: Degree of the polynomial that replaces the inverse of a large level.
DEGREE = 4


def coarsest_solver(A: Matrix, choice: Any) -> LinOp:
    """Return the operator that solves on the coarsest level.

    Parameters
    ----------
    A : Matrix
        The matrix of the coarsest level.
    choice : {"dense"} or Settings or callable
        The value of ``coarsest=``: the dense inverse, settings of a solver or a preconditioner, or
        a function of ``A`` that creates one.
    """
    if choice == "dense":
        return dense_inverse(A)
    if isinstance(choice, Settings):
        solver = choice.on(A)
    elif callable(choice) and not isinstance(choice, LinOp):
        solver = choice(A)
    else:
        solver = choice
    if not isinstance(solver, LinOp) or solver.shape != A.shape:
        raise InvalidArgument(
            'coarsest: expected "dense", settings such as Direct(), or a function of the '
            f"{A.shape[0]}x{A.shape[0]} matrix that makes a solver; got {choice!r}"
        )
    return solver


def inverse_of_large(A: Matrix) -> LinOp:
    """Return the solver of a large level that could not be coarsened.

    Such a matrix has no strong couplings: it is diagonal, a mass matrix, or has many small
    components. Small components are inverted; otherwise, a polynomial in the matrix replaces the
    inverse.
    """
    S = A.asformat("csr").without_duplicates()
    host = S.to_scipy()
    if not np.all(np.isfinite(host.data)):
        raise InvalidMatrix("the coarsest level has NaN or Inf")
    label = _components(host)
    sizes = np.bincount(label)
    if int(np.sum(sizes.astype(np.int64) ** 2)) <= ENTRIES_OF_ROW * A.shape[0]:
        return components_inverse(S, host, label, sizes)
    return Chebyshev(A, degree=DEGREE)


def is_diagonal(indptr: np.ndarray[Any, Any], indices: np.ndarray[Any, Any]) -> bool:
    """Return whether a square matrix, given by its rows on the host, is diagonal."""
    return np.array_equal(np.repeat(np.arange(indptr.size - 1), np.diff(indptr)), indices)


def _components(host: Any) -> np.ndarray[Any, Any]:
    """Return the component of each row."""
    if is_diagonal(host.indptr, host.indices):
        return np.arange(host.shape[0])
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(host, directed=False)[1])


def components_inverse(
    S: Csr, host: Any, label: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]
) -> Csr:
    """Return the inverses of all components of a matrix, as one sparse matrix.

    Parameters
    ----------
    S : Csr, shape (n, n)
        The matrix.
    host : csr_array
        The same matrix on the host.
    label : array of int, shape (n,)
        The component of each row.
    sizes : array of int, shape (components,)
        Number of rows of each component.
    """
    from scipy.sparse import coo_array  # SciPy is not loaded by the first solve

    n = S.shape[0]
    order = np.argsort(label, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    place = np.empty(n, np.int64)
    place[order] = np.arange(n) - starts[label[order]]
    rows = np.repeat(np.arange(n), np.diff(host.indptr))
    entries: list[tuple[Any, Any, Any]] = []
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        number = np.full(sizes.size, -1)
        number[which] = np.arange(which.size)
        is_kept = number[label[rows]] >= 0
        blocks = np.zeros((which.size, size, size), host.dtype)
        at = number[label[rows[is_kept]]], place[rows[is_kept]], place[host.indices[is_kept]]
        np.add.at(blocks, at, host.data[is_kept])
        inverses = inverted_all(blocks)
        members = order[starts[which][:, None] + np.arange(size)]
        shape = inverses.shape
        entries.append(
            (
                inverses.reshape(-1),
                np.broadcast_to(members[:, :, None], shape).reshape(-1),
                np.broadcast_to(members[:, None, :], shape).reshape(-1),
            )
        )
    data, row, column = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    inverse = coo_array((data.astype(S.dtype), (row, column)), shape=S.shape).tocsr()
    inverse.sort_indices()
    return Csr(inverse, executor=S.executor)


def inverted_all(blocks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the inverses of matrices of one size; pseudo-inverses of singular ones."""
    if blocks.shape[1] == 1:
        with np.errstate(divide="ignore"):
            return np.where(blocks != 0, 1 / np.where(blocks != 0, blocks, 1), 0)
    return np.stack([inverted(block) for block in blocks])


def dense_inverse(A: Matrix) -> Dense:
    """Return the inverse of a small matrix, or its pseudo-inverse if it is singular.

    The host computes it in double precision: all executors get bitwise the same inverse.

    Raises
    ------
    InvalidArgument
        If the matrix is too large.
    InvalidMatrix
        If it has values that are not finite.
    """
    n = A.shape[0]
    if n > LARGEST_DENSE:
        raise InvalidArgument(
            f"the coarsest level has {n} rows, and a dense inverse at most {LARGEST_DENSE}: add "
            "levels, or choose a solver for it, such as coarsest=wl.solvers.Direct()"
        )
    inverse = inverted(_dense_on_host(A.asformat("csr")))
    return Dense._from_arrays(
        A.executor, A.shape, A.executor.from_host(np.ascontiguousarray(inverse.astype(A.dtype)))
    )


def _dense_on_host(S: Csr) -> np.ndarray[Any, Any]:
    """Return a matrix as an array of the host, without SciPy: a first solve would load it here."""
    n = S.shape[0]
    data, indices, indptr = S._host_arrays()
    dense = np.zeros(n * n, S.dtype)
    row = np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr))
    np.add.at(dense, row * n + indices, data)
    return dense.reshape(n, n)


def inverted(S: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the inverse or pseudo-inverse, computed with a diagonal that is scaled to 1.

    A matrix with a condition number beyond its dtype counts as singular, for instance a Neumann
    problem.
    """
    if S.shape[0] == 0:
        return S
    if not np.all(np.isfinite(S)):
        raise InvalidMatrix("the coarsest level has NaN or Inf")
    eps = np.finfo(S.dtype).eps
    wide = S.astype(np.complex128 if S.dtype.kind == "c" else np.float64)
    d = np.abs(np.diagonal(wide))
    scale = 1.0 / np.sqrt(np.where(d > 0, d, 1.0))
    scaled = scale[:, None] * wide * scale
    limit = 10 * S.shape[0] * float(eps)
    try:
        inverse, size = _inverse_and_condition(scaled)
        fit = np.isfinite(size) and size * limit < 1
    except np.linalg.LinAlgError:
        fit = False
    if not fit:
        inverse = np.linalg.pinv(scaled, rcond=limit, hermitian=bool(_is_hermitian(scaled, eps)))
    return np.asarray(scale[:, None] * inverse * scale)


def _inverse_and_condition(S: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Return the inverse, and the product of the infinity norms of inverse and matrix."""
    norm = np.abs(S).sum(axis=1).max()
    if FEW_ROWS <= S.shape[0] <= ROWS_WITHOUT_SEARCH:
        try:
            inverse, residual = _inverse_by_blocks(S)
        except np.linalg.LinAlgError:
            residual = np.inf
        else:
            size = float(norm * np.abs(inverse).sum(axis=1).max())
            if residual <= STABLE * np.finfo(S.dtype).eps * size:
                return inverse, size
    inverse = np.linalg.inv(S)
    return inverse, float(norm * np.abs(inverse).sum(axis=1).max())


def _inverse_by_blocks(S: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Return the inverse by Gauss-Jordan elimination of blocks, and its largest residual.

    Rows are exchanged only within the diagonal blocks; a large residual shows that this was not
    enough. The calling thread computes products of blocks of this size. LAPACK's inverse of some
    hundred rows uses all threads of BLAS, which wait for each other: with other work on the cores,
    256 rows take 100 times as long.

    G. H. Golub, C. F. Van Loan, Matrix Computations, 4th ed., 2013, section 3.2.11.
    """
    n, b = S.shape[0], BLOCK
    count = -(-n // b)
    padded = np.eye(count * b, dtype=S.dtype)
    padded[:n, :n] = S
    diagonal_blocks = np.ascontiguousarray(padded.reshape(count, b, count, b).swapaxes(1, 2))
    blocks = diagonal_blocks.copy()
    with np.errstate(all="ignore"):  # a matrix that needs other pivots has a large residual
        for k in range(count):
            pivot = np.linalg.inv(blocks[k, k])
            row, column = pivot @ blocks[k], blocks[:, k].copy()
            column[k] = 0
            blocks -= column[:, None] @ row[None]
            blocks[:, k] = -(column @ pivot)
            blocks[k], blocks[k, k] = row, pivot
        residual = np.zeros_like(blocks)
        for k in range(count):
            residual += diagonal_blocks[:, k][:, None] @ blocks[k][None]
        residual[range(count), range(count)] -= np.eye(b)
        largest = float(np.abs(residual).max())
    inverse = blocks.swapaxes(1, 2).reshape(count * b, count * b)[:n, :n]
    return np.ascontiguousarray(inverse), largest if np.isfinite(largest) else np.inf


def _is_hermitian(S: np.ndarray[Any, Any], eps: float) -> Any:
    return np.abs(S - S.conj().T).max() <= 64 * eps * np.abs(S).max()
