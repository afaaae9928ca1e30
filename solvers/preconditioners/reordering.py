"""Permutation and scaling of systems before their factorization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import InvalidArgument
from ...core.formats import Csr
from ...core.formats.permuting import permuted
from ...core.formats.rowwise import known_canonical, row_bounds
from ...core.operations import rows as row_operations
from ...core.operations import vector
from ...core.reorder import ORDERS, matching

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

#: Names of arrays that move with the executor.
_ARRAYS = ("rows", "columns", "back", "left", "right")


class Reordering:
    """The system ``B = (R A C)[rows][:, columns]``, ``R`` and ``C`` diagonal.

    Parameters
    ----------
    S : Csr, shape (n, n)
        The matrix, with sorted rows without duplicates.
    match : bool
        Whether rows are permuted and both sides scaled by a matching of maximum product: the
        diagonal has modulus 1, and no entry is larger.
    order : str, optional
        The name of a symmetric permutation in :data:`ORDERS`, which follows the matching.

    Attributes
    ----------
    notes : list of str
        Notes on the permutations and scalings.
    """

    rows: Array
    columns: Array
    back: Array
    left: Array
    right: Array

    #: Whether the scaling may differ from ones.
    scales = True

    def __init__(self, S: Csr, match: bool, order: str | None) -> None:
        self.executor, n = S.executor, S.shape[0]
        self.scales = match
        dtype, real = S.index_dtype, real_dtype(S.dtype)
        rows = columns = np.arange(n, dtype=dtype)
        left, right = np.ones(n, real), np.ones(n, real)
        self.notes = []
        if match:
            matched = matching(S)
            rows = self._host(matched.rows.indices)
            left = self._host(matched.row_scale.data).real
            right = self._host(matched.column_scale.data).real
            self.notes.append(
                "match: rows are permuted and scaled for a diagonal of the largest product"
            )
            if matched.matched < n:
                self.notes.append(
                    f"match: the matrix is structurally singular: {n - matched.matched} rows have "
                    "no column"
                )
        if order is not None:
            permutation = self._host(ORDERS[order](S.permute(rows, columns)).indices)
            rows, columns = rows[permutation], permutation
            self.notes.append(f"order: {order}")
        back = np.empty(n, dtype)
        back[columns] = np.arange(n, dtype=dtype)
        place = self.executor.from_host
        self.rows, self.columns, self.back = (
            place(np.ascontiguousarray(a, dtype)) for a in (rows, columns, back)
        )
        self.left = place(left[rows].astype(S.dtype))
        self.right = place(right[columns].astype(S.dtype))
        self._places: tuple[Csr, Array] | None = None

    def _host(self, array: Array) -> np.ndarray[Any, Any]:
        return np.asarray(self.executor.to_host(array))

    def matrix(self, S: Csr) -> Csr:
        """Return ``B`` for a matrix with the pattern of ``S``."""
        run = self.executor.run
        if self._places is None or self._places[0].nnz != S.nnz:
            reordered, places = permuted(S, self.rows, self.columns)
            self._places = known_canonical(reordered), places.astype(S.index_dtype)
        reordered, places = self._places
        data = self.executor.allocate((S.nnz,), S.dtype)
        run(vector.gather, places, S.data.reshape(-1, 1), data.reshape(-1, 1), 1.0, 0.0)
        if self.scales:
            pattern = (*row_bounds(reordered), reordered.indices, data)
            run(row_operations.scale, *pattern, self.left, 1, 0, data)
            run(row_operations.scale, *pattern, self.right, 0, 1, data)
        return reordered._with_data(data)

    def into(self, x: Array, t: Array) -> None:
        """Set ``t = P x``, in the permuted row order."""
        self.executor.run(vector.gather, self.rows, x, t, 1.0, 0.0)

    def out_of(self, z: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Set ``y = alpha Q^T z + beta y``, back in the original column order."""
        self.executor.run(vector.gather, self.back, z, y, alpha, beta)

    # ---- moving

    def to(self, executor: Executor) -> Self:
        """Return this reordering on another executor."""
        state = {name: self._host(getattr(self, name)) for name in _ARRAYS}
        return self._restored(state, executor, self.notes)

    def astype(self, dtype: Any) -> Self:
        """Return this reordering with scalings of another dtype."""
        copy = self._copied()
        copy.left, copy.right = self.left.astype(dtype), self.right.astype(dtype)
        return copy

    def transposed(self) -> Self:
        """Return the reordering of the transpose: rows and columns are exchanged."""
        copy = self._copied()
        inverse = np.argsort(self._host(self.rows)).astype(self.back.dtype)
        copy.rows, copy.columns = self.columns, self.rows
        copy.back = self.executor.from_host(inverse)
        copy.left, copy.right = self.right, self.left
        return copy

    def _copied(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, _places=None)
        return copy

    @classmethod
    def _restored(cls, arrays: dict[str, Any], executor: Executor, notes: list[str]) -> Self:
        restored = cls.__new__(cls)
        restored.executor, restored.notes, restored._places = executor, notes, None
        for name, array in arrays.items():
            setattr(restored, name, executor.from_host(array))
        return restored

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = {name: self._host(getattr(self, name)) for name in _ARRAYS}
        return type(self)._restored, (arrays, self.executor, self.notes)


def checked_order(match: Any, order: Any, caller: str) -> tuple[bool, str | None]:
    """Return the options.

    Raises
    ------
    InvalidArgument
        If the ordering is unknown, or ``match`` is not a boolean.
    """
    if match not in (True, False):
        raise InvalidArgument(f"match: expected True or False, got {match!r}")
    if order is not None and order not in ORDERS:
        raise InvalidArgument(f"order: expected one of {', '.join(ORDERS)}, got {order!r}")
    if match and caller == "Ic":
        raise InvalidArgument("match: Ic keeps the matrix Hermitian, which a matching does not")
    return bool(match), order
