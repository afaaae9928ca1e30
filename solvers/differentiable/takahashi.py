"""Takahashi's equations: the inverse of ``L D U`` at the positions of the factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fill import Fill

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def inverse_on_pattern(fill: Fill, lower: Numbers, upper: Numbers, diagonal: Numbers) -> None:
    """Overwrite factors with entries of the inverse ``Z``.

    From the last column to the first, with ``S`` the rows of column ``i`` in the factors::

        Z_Si = -Z_SS L_Si
        Z_iS = -U_iS Z_SS
        Z_ii = 1 / D_i - U_iS Z_Si

    The pattern has the positions of ``Z_SS``, because it has all fill.

    Parameters
    ----------
    fill : Fill
        The pattern below the diagonal.
    lower : array, shape (entries,)
        ``L`` below its diagonal of ones, then ``Z_ji`` with ``j > i``.
    upper : array, shape (entries,)
        ``U`` above its diagonal of ones, at mirrored positions, then ``Z_ij`` with ``i < j``.
    diagonal : array, shape (n,)
        ``1 / D``, then ``Z_ii``.
    """
    indptr, indices, keys = fill
    n = diagonal.size
    for i in range(n - 1, -1, -1):
        begin, end = indptr[i], indptr[i + 1]
        rows = indices[begin:end]
        if not rows.size:
            continue
        below_place, below = np.tril_indices(rows.size, -1)
        entries = np.searchsorted(keys, rows[below] * n + rows[below_place])
        Z = np.empty((rows.size, rows.size))
        Z[below_place, below] = lower[entries]
        Z[below, below_place] = upper[entries]
        np.fill_diagonal(Z, diagonal[rows])
        of_column, of_row = -(Z @ lower[begin:end]), -(upper[begin:end] @ Z)
        diagonal[i] -= upper[begin:end] @ of_column
        lower[begin:end], upper[begin:end] = of_column, of_row
