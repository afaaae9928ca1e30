"""The band that stands for matrices of billions of entries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi_bench import large_table


@pytest.mark.parametrize("chunk", [4, 5, 1 << 20])
@pytest.mark.parametrize("rows", [6, 7, 8, 33])
def test_the_band_is_scipys(monkeypatch: pytest.MonkeyPatch, rows: int, chunk: int) -> None:
    monkeypatch.setattr(large_table, "CHUNK", chunk)
    diagonals = [-1.0] * 3 + [8.0] + [-1.0] * 3
    expected = sp.diags_array(diagonals, offsets=range(-3, 4), shape=(rows, rows)).tocsr()
    expected.sort_indices()
    for made, name in zip(large_table.band(np, rows), ("data", "indices", "indptr"), strict=True):
        np.testing.assert_array_equal(made, getattr(expected, name))


@pytest.mark.parametrize("lean", [False, True])
def test_each_step_is_told(lean: bool) -> None:
    executor = wl.executor("omp:1")
    found = list(large_table.steps(executor, 500, lean=lean, rtol=1e-10))
    assert [step.name.partition(" (")[0] for step in found[3:6]] == [
        "wl.Csr of the arrays",
        "the first product",
        "a product",
    ]
    assert "converged" in found[-1].name and all(step.seconds > 0 for step in found)
    assert "to_host" not in vars(executor)
