"""The linear systems of derivatives: their patterns, and the sources of their values.

Each value is a sum of given numbers at known positions, so that a solve has derivatives with
respect to all of these numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.errors import InvalidMatrix, ShapeMismatch
from ...core.formats import Csr
from ...core.store import Key
from .terms import Indices, pattern_on


class AssembledPattern(NamedTuple):
    """A pattern, and for each number the entry that it is added to.

    Attributes
    ----------
    pattern : Csr
        The pattern, sorted.
    positions : array of int64
        Number ``i`` is added to entry ``positions[i]``.
    """

    pattern: Csr
    positions: Indices


_BORDERED: Key[AssembledPattern] = Key("bordered by an eigenvector")
_AUGMENTED: Key[AssembledPattern] = Key("augmented by its residual")
_JORDAN: Key[AssembledPattern] = Key("with its transpose beside the diagonal")
_MIRROR: Key[Indices] = Key("entries at mirrored positions")


def _coordinates(A: Csr) -> tuple[Indices, Indices]:
    indptr, indices = (np.asarray(A.executor.to_host(x), np.int64) for x in (A.indptr, A.indices))
    return np.repeat(np.arange(A.shape[0]), np.diff(indptr)), indices


def _assembled(A: Csr, size: int, *parts: tuple[Indices, Indices]) -> AssembledPattern:
    rows = np.concatenate([part[0] for part in parts])
    columns = np.concatenate([part[1] for part in parts])
    keys, positions = np.unique(rows * size + columns, return_inverse=True)
    entry_rows, entry_columns = np.divmod(keys, max(size, 1))
    indptr = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(entry_rows, minlength=size), out=indptr[1:])
    pattern = pattern_on(A.executor, (size, size), indptr, entry_columns)
    return AssembledPattern(pattern, positions.reshape(-1))


def bordered(A: Csr) -> AssembledPattern:
    """Return ``[[A - l I, s v], [s v^T, 0]]``: of the values of A, n of -l, n of s v twice.

    It is the Jacobian matrix of ``(A - l I) v = 0`` and ``s (v^T v - 1) / 2 = 0`` for ``v`` and
    ``-l / s``: symmetric, and regular for a simple ``l``. Its eigenvalues are the nonzero ones of
    ``A - l I``, and ``s`` and ``-s``. With ``s`` in the range of the former's moduli, it is as well
    conditioned as the eigenvector.
    """

    def make() -> AssembledPattern:
        n = A.shape[0]
        every, last = np.arange(n), np.full(n, n)
        return _assembled(A, n + 1, _coordinates(A), (every, every), (every, last), (last, every))

    return A._pattern.get(_BORDERED, make)


def augmented(A: Csr) -> AssembledPattern:
    """Return ``[[I, A], [A^T, -d I]]``: of m ones, the values of A twice, and n of -d."""

    def make() -> AssembledPattern:
        m, n = A.shape
        rows, columns = _coordinates(A)
        first, second = np.arange(m), np.arange(m, m + n)
        return _assembled(
            A, m + n, (first, first), (rows, columns + m), (columns + m, rows), (second, second)
        )

    return A._pattern.get(_AUGMENTED, make)


def jordan(A: Csr) -> AssembledPattern:
    """Return ``[[0, A], [A^T, 0]]``: of the values of A twice.

    Its eigenvalues are plus and minus the singular values of A, its eigenvectors ``(u, v)``.
    """

    def make() -> AssembledPattern:
        m, n = A.shape
        rows, columns = _coordinates(A)
        return _assembled(A, m + n, (rows, columns + m), (columns + m, rows))

    return A._pattern.get(_JORDAN, make)


def mirror(A: Csr) -> Indices:
    """Return the entry at ``(j, i)`` for each entry at ``(i, j)``.

    Raises
    ------
    ShapeMismatch, InvalidMatrix
        If the pattern is not symmetric, or has duplicates.
    """

    def make() -> Indices:
        n = A.shape[0]
        rows, columns = _coordinates(A)
        keys = rows * n + columns
        order = np.argsort(keys, kind="stable")
        ordered, mirrored = keys[order], columns * n + rows
        positions = np.minimum(np.searchsorted(ordered, mirrored), max(keys.size - 1, 0))
        if not np.array_equal(ordered[positions], mirrored) or np.any(ordered[1:] == ordered[:-1]):
            raise InvalidMatrix(
                "A: expected a symmetric pattern without two entries of one position; add the "
                "missing entries as zeros, and call A.sum_duplicates()"
            )
        entry: Indices = order[positions]
        return entry

    if A.shape[0] != A.shape[1]:
        raise ShapeMismatch(f"A: expected a square matrix, got shape {A.shape}")
    return A._pattern.get(_MIRROR, make)
