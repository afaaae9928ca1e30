"""Runs of rows with the same offsets are found alike by one part of the rows and by several."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

N = 12_000


@pytest.mark.parametrize("odd", [(), (0, 1, 4095, 4096, 4097), (8047, 8048, 8049, N - 1)])
def test_products_with_odd_rows_between_runs_are_right(rng, odd):
    S = sp.diags_array([np.ones(N)] * 3, offsets=[-50, 0, 7], shape=(N, N)).tolil()
    for row in odd:
        S[row, (row * 7) % N] = 1.0
        S[(row + 3) % N, :] = 0.0
    S = S.tocsr()
    S.eliminate_zeros()
    S.data[:] = rng.standard_normal(S.nnz)
    A, x = wl.Csr(S, executor="omp"), rng.standard_normal(N)
    assert A.plan.kernel == "row-patterns"
    assert np.allclose(A @ x, S @ x, rtol=1e-13, atol=1e-13)
    states = [wl.Csr(S, executor=f"omp:{n}") for n in (1, 3)]
    for other in states:
        assert np.array_equal(other @ x, A @ x)
        assert other.plan_nbytes == pytest.approx(A.plan_nbytes, abs=64)
