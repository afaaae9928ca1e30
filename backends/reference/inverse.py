"""Takahashi's equations: compute the inverse of ``L U`` at the positions of a matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import inverse
from .table import kernel


class FilledPattern(NamedTuple):
    """The strictly lower triangle of a symmetric pattern with fill-in, by columns.

    Attributes
    ----------
    indptr : array of int64, shape (n + 1,)
        Positions of the first entry of each column.
    indices : array of int64
        The rows of the entries, in rising order.
    keys : array of int64
        ``column n + row`` of each entry, in rising order.
    """

    indptr: Array
    indices: Array
    keys: Array

    def find(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """Return the entries at positions below the diagonal, and which positions they fill."""
        n = self.indptr.size - 1
        wanted = columns.astype(np.int64) * n + rows
        found = np.searchsorted(self.keys, wanted)
        inside = np.append(self.keys, -1)[found] == wanted
        return found, inside


def filled_pattern(n: int, rows: Array, columns: Array) -> FilledPattern:
    """Return the symmetric pattern, with fill-in, of entries at ``(rows, columns)``.

    A column has its own entries and the entries of its children in the elimination tree: the
    columns with their first entry in this row (Liu 1990, section 2).
    """
    low = np.minimum(rows, columns).astype(np.int64)
    high = np.maximum(rows, columns).astype(np.int64)
    keys = np.unique((low * n + high)[low != high])
    first, below = np.divmod(keys, max(n, 1))
    begins = np.searchsorted(first, np.arange(n + 1))
    columns_of: list[Array] = []
    children: list[list[int]] = [[] for _ in range(n)]
    for column in range(n):
        parts = [below[begins[column] : begins[column + 1]]]
        parts += [columns_of[child][1:] for child in children[column]]
        found = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
        columns_of.append(found)
        if found.size:
            children[int(found[0])].append(column)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum([found.size for found in columns_of], out=indptr[1:])
    indices = np.concatenate([*columns_of, np.zeros(0, np.int64)]).astype(np.int64)
    owners = np.repeat(np.arange(n), np.diff(indptr))
    return FilledPattern(indptr, indices, owners * n + indices)


@kernel(inverse.selected)
def selected(
    executor: Executor,
    rows: Array,
    columns: Array,
    lower_begin: Array,
    lower_rows: Array,
    lower: Array,
    upper_begin: Array,
    upper_columns: Array,
    upper: Array,
    symmetric: int,
    inverse: Array,
    outside: Array,
) -> None:
    """Compute the inverse ``Z`` at the factors' positions, from the last column to the first.

    Let ``S`` be the rows below the diagonal of column ``i`` in ``L D U``, where ``U`` has a unit
    diagonal::

        Z_Si = -Z_SS L_Si
        Z_iS = -U_iS Z_SS
        Z_ii = 1 / D_i - U_iS Z_Si

    The pattern contains the positions of ``Z_SS``, because it includes all fill-in.
    """
    n = lower_begin.size - 1
    fill = filled_pattern(n, rows, columns)
    below, above, diagonal = (np.zeros(size, upper.dtype) for size in (*[fill.keys.size] * 2, n))
    owner = np.repeat(np.arange(n), np.diff(lower_begin))
    off = owner != lower_rows
    at, inside = fill.find(lower_rows[off], owner[off])
    below[at[inside]] = lower[off][inside]
    outside[0] = np.count_nonzero(~inside)
    owner = np.repeat(np.arange(n), np.diff(upper_begin))
    on = owner == upper_columns
    diagonal[owner[on]] = 1 / upper[on]
    at, inside = fill.find(upper_columns[~on], owner[~on])
    above[at[inside]] = (upper[~on] * diagonal[owner[~on]])[inside]
    outside[0] += np.count_nonzero(~inside)
    _overwrite(fill, below, above, diagonal)
    equal, down, up = rows == columns, rows > columns, rows < columns
    inverse[equal] = diagonal[rows[equal]]
    inverse[down] = below[fill.find(rows[down], columns[down])[0]]
    inverse[up] = above[fill.find(columns[up], rows[up])[0]]


def _overwrite(fill: FilledPattern, lower: Array, upper: Array, diagonal: Array) -> None:
    """Overwrite ``L``, ``U`` and ``1 / D`` with the inverse's entries at their positions."""
    n = diagonal.size
    for i in range(n - 1, -1, -1):
        begin, end = fill.indptr[i], fill.indptr[i + 1]
        rows = fill.indices[begin:end]
        if not rows.size:
            continue
        place, at = np.tril_indices(rows.size, -1)
        entries, _ = fill.find(rows[place], rows[at])
        Z = np.empty((rows.size, rows.size), diagonal.dtype)
        Z[place, at] = lower[entries]
        Z[at, place] = upper[entries]
        np.fill_diagonal(Z, diagonal[rows])
        of_column, of_row = -(Z @ lower[begin:end]), -(upper[begin:end] @ Z)
        diagonal[i] -= upper[begin:end] @ of_column
        lower[begin:end], upper[begin:end] = of_column, of_row
