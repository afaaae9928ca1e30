"""The logarithm of a determinant, and the entries of the inverse that its derivatives are made of.

With ``f = log |det A|``, the derivative for ``A_ij`` is ``(A^-1)_ji`` (Giles 2008, section 2.2.4),
and that of ``(A^-1)_ji`` along ``D`` is ``-(A^-1 D A^-1)_ji``. The inverse at the positions of the
pattern follows from sparse factors by Takahashi's equations (Takahashi, Fagan and Chen 1973;
Erisman and Tinney, *On computing certain elements of the inverse of a sparse matrix*, 1975), in as
many operations as the factorization has. All of it runs on the host, in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidMatrix
from ...core.formats import Csr
from .fill import Fill, filled_pattern
from .takahashi import inverse_on_pattern
from .terms import Indices

Numbers = np.ndarray[Any, np.dtype[np.float64]]

#: Columns of the inverse that are computed together.
BLOCK = 128

#: The residual, relative to the right-hand side, up to which factors without row exchanges are
#: used.
EXACT = 1e-9


class Factored(NamedTuple):
    """A factorization on the host.

    Attributes
    ----------
    lu : scipy.sparse.linalg.SuperLU
        The factors.
    rows, columns : array of int64
        Those of the entries.
    symmetric : bool
        Whether rows and columns have the same order, as Takahashi's equations need.
    """

    lu: Any
    rows: Indices
    columns: Indices
    symmetric: bool


def log_determinant(A: Csr, values: Numbers) -> float:
    """Return ``log |det A|``.

    Raises
    ------
    InvalidMatrix
        If the matrix is singular to working precision.
    """
    diagonal = np.abs(_factored(A, values).lu.U.diagonal())
    if not diagonal.all():
        raise _singular()
    return float(np.log(diagonal).sum())


def inverse_entries(A: Csr, values: Numbers) -> Numbers:
    """Return ``(A^-1)_ji`` for each entry ``(i, j)`` of ``A``.

    Takahashi's equations need factors in one order of rows and columns. Where those are not exact,
    which happens for matrices that are neither definite nor dominated by their diagonals, columns
    of the inverse are computed one block after the other.
    """
    factored = _factored(A, values)
    if not factored.symmetric:
        return _in_blocks(factored, lambda unit: unit)
    order = np.asarray(factored.lu.perm_c, np.int64)
    rows, columns = order[factored.rows], order[factored.columns]
    fill = filled_pattern(A.shape[0], rows, columns)
    return _taken(fill, factored.lu, rows, columns)


def inverse_derivative(A: Csr, values: Numbers, direction: Numbers) -> Numbers:
    """Return ``(A^-1 D A^-1)_ji`` for each entry ``(i, j)`` of ``A``.

    ``D`` has the values ``direction`` on the pattern of ``A``. This takes two solves with as many
    right-hand sides as ``A`` has rows.
    """
    from scipy.sparse import csr_array

    factored = _factored(A, values)
    positions = (factored.rows, factored.columns)
    D = csr_array((direction.astype(np.float64), positions), shape=A.shape)
    return _in_blocks(factored, lambda columns: factored.lu.solve(D @ columns))


def _factored(A: Csr, values: Numbers) -> Factored:
    """Return factors in one order of rows and columns if they are exact, and others if not."""
    from scipy.sparse import csc_array

    on, n = A.executor, A.shape[0]
    indptr, columns = (np.asarray(on.to_host(x), np.int64) for x in (A.indptr, A.indices))
    rows = np.repeat(np.arange(n), np.diff(indptr))
    S = csc_array((values.astype(np.float64), (rows, columns)), shape=A.shape)
    if not np.isfinite(S.data).all():
        raise InvalidMatrix("log_determinant: the values have NaN or infinity")
    lu = _try(S, symmetric=True)
    if lu is not None and np.array_equal(lu.perm_r, lu.perm_c):
        b = np.cos(np.arange(n, dtype=np.float64))
        if n == 0 or np.linalg.norm(b - S @ lu.solve(b)) <= EXACT * np.linalg.norm(b):
            return Factored(lu, rows, columns, True)
    lu = _try(S, symmetric=False)
    if lu is None:
        raise _singular()
    return Factored(lu, rows, columns, False)


def _try(S: Any, symmetric: bool) -> Any:
    from scipy.sparse.linalg import splu

    try:
        return splu(
            S,
            permc_spec="MMD_AT_PLUS_A" if symmetric else "COLAMD",
            diag_pivot_thresh=0.0 if symmetric else 1.0,
            options={"SymmetricMode": symmetric},
        )
    except RuntimeError:  # a pivot of zero
        return None


def _singular() -> InvalidMatrix:
    return InvalidMatrix(
        "log_determinant: the matrix is singular to working precision; add a multiple of the "
        "identity"
    )


def _in_blocks(factored: Factored, apply: Any) -> Numbers:
    """Return entries ``(j, i)`` of ``apply(A^-1 I)`` in blocks of columns."""
    rows, columns = factored.rows, factored.columns
    n = factored.lu.shape[0]
    found = np.empty(rows.size)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        unit = np.zeros((n, end - begin))
        unit[np.arange(begin, end), np.arange(end - begin)] = 1
        block = apply(factored.lu.solve(unit))
        inside = np.flatnonzero((rows >= begin) & (rows < end))
        found[inside] = block[columns[inside], rows[inside] - begin]
    return found


def _taken(fill: Fill, lu: Any, rows: Indices, columns: Indices) -> Numbers:
    """Return the entries of the inverse at ``(columns, rows)`` in the order of the factors."""
    L, U = lu.L.tocoo(), lu.U.tocoo()
    pivots = lu.U.diagonal()
    lower, upper = np.zeros(fill.indices.size), np.zeros(fill.indices.size)
    below, above = L.row > L.col, U.row < U.col
    lower[fill.positions(L.row[below], L.col[below])] = L.data[below]
    upper[fill.positions(U.col[above], U.row[above])] = U.data[above] / pivots[U.row[above]]
    diagonal = 1 / pivots
    inverse_on_pattern(fill, lower, upper, diagonal)
    found = np.empty(rows.size)
    equal, down, up = rows == columns, columns > rows, columns < rows
    found[equal] = diagonal[rows[equal]]
    found[down] = lower[fill.positions(columns[down], rows[down])]
    found[up] = upper[fill.positions(rows[up], columns[up])]
    return found
