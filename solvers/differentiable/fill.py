"""The pattern of the factors of a matrix whose rows and columns are eliminated in their order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .terms import Indices


class Fill(NamedTuple):
    """The strictly lower triangle of a symmetric pattern with its fill, by columns.

    Attributes
    ----------
    indptr : array of int64, shape (n + 1,)
        Where the entries of each column begin.
    indices : array of int64
        Their rows, in rising order.
    keys : array of int64
        ``column n + row`` of each entry, in rising order.
    """

    indptr: Indices
    indices: Indices
    keys: Indices

    def positions(self, rows: Indices, columns: Indices) -> Indices:
        """Return the entries at given positions, which the pattern has."""
        n = self.indptr.size - 1
        wanted = columns.astype(np.int64) * n + rows
        found: Indices = np.searchsorted(self.keys, wanted)
        assert np.array_equal(self.keys[found], wanted)
        return found


def filled_pattern(n: int, rows: Indices, columns: Indices) -> Fill:
    """Return the pattern with fill of entries at ``(rows, columns)`` and at mirrored positions.

    A column has its own entries and those of the columns that it is the first entry of, which are
    its children in the elimination tree (Liu 1990, section 2).
    """
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    keys = np.unique((low * n + high)[low != high])
    first, below = np.divmod(keys, max(n, 1))
    begins = np.searchsorted(first, np.arange(n + 1))
    columns_of: list[Indices] = []
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
    return Fill(indptr, indices, owners * n + indices)
