"""Formats with padded rows that end at different lengths: padding never touches x."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

#: Fewer rows than a group, a group, some more, and more than a tile.
ROWS = (5, 16, 17, 513, 1100)


def uneven(rows: int, dtype: str, index: str) -> sp.csr_array:
    """Return rows of 0 to 12 entries, and one of 40."""
    rng = np.random.default_rng(rows)
    lengths = rng.integers(0, 13, rows)
    lengths[rows // 2] = 40
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = [1 + np.sort(rng.choice(59, length, replace=False)) for length in lengths]
    values = rng.integers(1, 9, indptr[-1]).astype(dtype)
    S = sp.csr_array((values, np.concatenate(columns), indptr), shape=(rows, 60))
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    return S


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rows", ROWS)
def test_rows_end_where_their_entries_end(rows: int, dtype: str, index: str) -> None:
    S = uneven(rows, dtype, index)
    x = np.arange(60).astype(dtype)
    expected = S @ x  # whole numbers: exact in any order
    x[0] = np.nan  # which no entry meets
    made: list[Any] = [wl.Ell(S, executor="omp:2"), wl.Hybrid(S, executor="omp:2")]
    made += [wl.Sellp(S, executor="omp:2", slice_size=size) for size in (32, 40, 600)]
    for A in made:
        np.testing.assert_array_equal(A @ x, expected)
