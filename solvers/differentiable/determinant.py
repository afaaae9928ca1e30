"""The logarithm of a determinant, and the entries of the inverse in its derivatives.

With ``f = log |det A|``, the derivative with respect to ``A_ij`` is ``(A^-1)_ji`` (Giles 2008,
section 2.2.4), and the derivative of ``(A^-1)_ji`` along ``D`` is ``-(A^-1 D A^-1)_ji``. The
inverse at the positions of the pattern follows from sparse factors by Takahashi's equations
(Takahashi, Fagan and Chen 1973; Erisman and Tinney, *On computing certain elements of the inverse
of a sparse matrix*, 1975), with as many operations as the factorization, or twice as many without
symmetry. All computations run on the host, in float64. The factors of the last values are stored
with the pattern, for derivatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidMatrix
from ...core.formats import Csr
from ...core.formats.triangular import host_of
from ...core.operations import inverse
from ...core.store import Key
from .terms import Indices

Numbers = np.ndarray[Any, np.dtype[np.float64]]

#: Number of columns of the inverse that are computed together.
BLOCK = 128

#: Tolerances of the solves for the gradient of an estimate: the error of its random probes is
#: larger by orders of magnitude.
ESTIMATED = {"float64": 1e-6, "float32": 1e-5}

#: Use factors without row exchanges if their residual, relative to the right-hand side, is at most
#: this value.
EXACT = 1e-9


class Factored(NamedTuple):
    """A factorization on the host.

    Attributes
    ----------
    values : array, shape (nnz,)
        The values of the matrix.
    lu : scipy.sparse.linalg.SuperLU
        The factors.
    rows, columns : array of int32 or int64
        Row and column indices of the entries.
    one_order : bool
        Whether rows and columns have the same order, as Takahashi's equations need.
    symmetric : bool
        Whether the matrix is symmetric.
    """

    values: Numbers
    lu: Any
    rows: Indices
    columns: Indices
    one_order: bool
    symmetric: bool


class _Last:
    """The last factorization of a pattern."""

    factored: Factored | None = None


_LAST: Key[_Last] = Key("factors for the logarithm of the determinant")


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

    Takahashi's equations need factors with one permutation of rows and columns. These are inexact
    for some matrices that are neither definite nor diagonally dominant; columns of the inverse are
    then computed block by block.
    """
    factored = _factored(A, values)
    entries = _selected(A, factored) if factored.one_order else None
    return _in_blocks(factored, lambda unit: unit) if entries is None else entries


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
    """Return factors of a matrix with these values: the last ones, if they match."""
    last = A._pattern.get(_LAST, _Last)
    known = last.factored
    values = values.astype(np.float64)
    if known is None or not np.array_equal(known.values, values):
        known = last.factored = _factorize(A, values)
    return known


def _factorize(A: Csr, values: Numbers) -> Factored:
    """Return factors with one permutation of rows and columns if they are exact, else others."""
    from scipy.sparse import csc_array

    on, n = A.executor, A.shape[0]
    indptr, columns = (np.asarray(on.to_host(x)) for x in (A.indptr, A.indices))
    rows = np.repeat(np.arange(n, dtype=columns.dtype), np.diff(indptr))
    if not np.isfinite(values).all():
        raise InvalidMatrix("log_determinant: the values have NaN or infinity")
    S = csc_array((values, (rows, columns)), shape=A.shape)
    lu = _try(S, symmetric=True)
    if lu is not None and np.array_equal(lu.perm_r, lu.perm_c):
        b = np.cos(np.arange(n, dtype=np.float64))
        if n == 0 or np.linalg.norm(b - S @ lu.solve(b)) <= EXACT * np.linalg.norm(b):
            return Factored(values, lu, rows, columns, True, _is_symmetric(A, values))
    lu = _try(S, symmetric=False)
    if lu is None:
        raise _singular()
    return Factored(values, lu, rows, columns, False, False)


def _is_symmetric(A: Csr, values: Numbers) -> bool:
    transposed, order = A.transposed_pattern()
    on = A.executor
    same = all(
        np.array_equal(on.to_host(getattr(A, name)), on.to_host(getattr(transposed, name)))
        for name in ("indptr", "indices")
    )
    return same and np.array_equal(values[np.asarray(on.to_host(order))], values)


def _try(S: Any, symmetric: bool) -> Any:
    from scipy.sparse.linalg import splu

    try:
        return splu(
            S,
            permc_spec="MMD_AT_PLUS_A" if symmetric else "COLAMD",
            diag_pivot_thresh=0.0 if symmetric else 1.0,
            options={"SymmetricMode": symmetric},
        )
    except RuntimeError:  # a zero pivot
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
    entries = np.empty(rows.size)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        unit = np.zeros((n, end - begin))
        unit[np.arange(begin, end), np.arange(end - begin)] = 1
        block = apply(factored.lu.solve(unit))
        inside = np.flatnonzero((rows >= begin) & (rows < end))
        entries[inside] = block[columns[inside], rows[inside] - begin]
    return entries


def _selected(A: Csr, factored: Factored) -> Numbers | None:
    """Return the entries of the inverse at mirrored positions, by Takahashi's equations.

    None if rounding errors left entries of the factors at positions that elimination does not fill.
    """
    host, lu = host_of(A.executor, inverse.selected), factored.lu
    order = np.asarray(lu.perm_c, np.int32)
    lower, upper = lu.L.tocsc(), lu.U.tocsr()
    of_lower, of_upper = (
        (x.indptr.astype(np.int32, copy=False), x.indices.astype(np.int32, copy=False), x.data)
        for x in (lower, upper)
    )
    entries, outside = np.empty(factored.values.size), np.zeros(1, np.int64)
    positions = order[factored.columns], order[factored.rows]
    symmetric = int(factored.symmetric)
    host.run(inverse.selected, *positions, *of_lower, *of_upper, symmetric, entries, outside)
    return None if outside[0] else entries
