"""Sparse matrix products as sums of products of two values, which have derivatives.

With ``C = A B``, every entry of ``C`` is a sum of terms ``a b``, so that the sum of ``a b c`` over
all terms is linear in the values of ``A``, of ``B`` and of ``C``. Its derivative with respect to
one of them is a contraction of the other two over the same terms: derivatives of every order are
again contractions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...core.errors import ShapeMismatch
from ...core.executor import Array
from ...core.formats import Csr
from ...core.operations import rows
from ...core.store import Store

#: The indices of the three matrices of a product.
A_VALUES, B_VALUES, C_VALUES = 0, 1, 2

#: The indices of the other two matrices, for each.
OTHERS = ((1, 2), (0, 2), (0, 1))

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


class Contraction(NamedTuple):
    """The terms sorted by the entries of one matrix.

    Attributes
    ----------
    pattern : Csr, shape (entries, entries of the second other matrix)
        Row ``e`` has an entry for each term of entry ``e``. Its column is the entry of the second
        one of the other two matrices.
    first : native array, shape (terms,)
        The entry of the first one of the other two matrices in each term, with the dtype of the
        indices.
    """

    pattern: Csr
    first: Array

    def add_up(self, x: Array, y: Array, sums: Array) -> None:
        """Add up the products of both other matrices' values, given as native vectors."""
        A = self.pattern
        begin, end = A.indptr[:-1], A.indptr[1:]
        A.executor.run(rows.contract, begin, end, self.first, A.indices, x, y, sums)


class Terms(NamedTuple):
    """The terms of ``C = A B``, or of ``C = A^T B``.

    Attributes
    ----------
    product : Csr
        The pattern of ``C``, sorted.
    of : tuple of three Contraction
        The terms, sorted by the entries of ``A``, ``B`` and ``C``.
    """

    product: Csr
    of: tuple[Contraction, Contraction, Contraction]


_Known = WeakKeyDictionary[Store, WeakKeyDictionary[Store, Terms]]

_known: _Known = WeakKeyDictionary()
_known_of_transposes: _Known = WeakKeyDictionary()


def terms_of(A: Csr, B: Csr) -> Terms:
    """Return the terms of ``A B``, computed once for two patterns.

    Raises
    ------
    ShapeMismatch
        If the columns of ``A`` are not the rows of ``B``.
    """
    if A.shape[1] != B.shape[0]:
        raise ShapeMismatch(
            f"A of shape {A.shape} and B of shape {B.shape} have no product: the columns of A are "
            "the rows of B"
        )
    return _cached_terms(_known, A, B, lambda: _find_terms(A, B))


def terms_of_transpose(A: Csr, B: Csr) -> Terms:
    """Return the terms of ``A^T B``, computed once; values of ``A`` keep their order.

    Raises
    ------
    ShapeMismatch
        If the rows of ``A`` are not the rows of ``B``.
    """
    if A.shape[0] != B.shape[0]:
        raise ShapeMismatch(
            f"A of shape {A.shape} and B of shape {B.shape} have no product A^T B: they have the "
            "same number of rows"
        )

    def find() -> Terms:
        transposed, order = A.transposed_pattern()
        return _find_terms(transposed, B, np.asarray(A.executor.to_host(order)))

    return _cached_terms(_known_of_transposes, A, B, find)


def _cached_terms(known: _Known, A: Csr, B: Csr, find: Callable[[], Terms]) -> Terms:
    """Return the terms of two patterns; the first call computes them."""
    of_first = known.setdefault(A._pattern, WeakKeyDictionary())
    if B._pattern not in of_first:
        of_first[B._pattern] = find()
    return of_first[B._pattern]


def _find_terms(A: Csr, B: Csr, order: Indices | None = None) -> Terms:
    """Return the terms; ``order`` has the positions of the entries of ``A`` among its values."""
    on = A.executor
    a_indptr, a_columns, b_indptr, b_columns = (
        np.asarray(M.executor.to_host(array), np.int64)
        for M in (A, B)
        for array in (M.indptr, M.indices)
    )
    lengths = np.diff(b_indptr)[a_columns]
    begins = np.cumsum(lengths) - lengths
    of_a = np.repeat(np.arange(a_columns.size), lengths)
    of_b = np.arange(of_a.size) + np.repeat(b_indptr[a_columns] - begins, lengths)
    of_rows = np.repeat(np.arange(A.shape[0]), np.diff(a_indptr))[of_a]
    columns = b_columns[of_b]
    positions, of_c = np.unique(of_rows * B.shape[1] + columns, return_inverse=True)
    entry_rows, entry_columns = np.divmod(positions, max(B.shape[1], 1))
    indptr = np.zeros(A.shape[0] + 1, np.int64)
    np.cumsum(np.bincount(entry_rows, minlength=A.shape[0]), out=indptr[1:])
    product = pattern_on(on, (A.shape[0], B.shape[1]), indptr, entry_columns)
    entries = (of_a if order is None else order[of_a], of_b, of_c.reshape(-1))
    sizes = (a_columns.size, b_columns.size, positions.size)
    lists = [_sorted_by(on, entries, sizes, which) for which in range(3)]
    return Terms(product, (lists[0], lists[1], lists[2]))


def _sorted_by(
    on: object, entries: tuple[Indices, ...], sizes: tuple[int, ...], which: int
) -> Contraction:
    order = np.argsort(entries[which], kind="stable")
    indptr = np.zeros(sizes[which] + 1, np.int64)
    np.cumsum(np.bincount(entries[which], minlength=sizes[which]), out=indptr[1:])
    first, second = (entries[other][order] for other in OTHERS[which])
    pattern = pattern_on(on, (sizes[which], sizes[OTHERS[which][1]]), indptr, second)
    targets = pattern.executor.from_host(first.astype(pattern.indices.dtype))
    return Contraction(pattern, targets)


def pattern_on(on: object, shape: tuple[int, int], indptr: Indices, indices: Indices) -> Csr:
    """Return a pattern from the host, with zero values, on an executor."""
    narrow = max(indices.size, *shape) <= np.iinfo(np.int32).max
    index = np.int32 if narrow else np.int64
    arrays = (
        np.zeros(indices.size, np.float32), indices.astype(index), indptr.astype(index),
    )  # fmt: skip
    return Csr(arrays, shape=shape, executor=on)  # type: ignore[arg-type]
