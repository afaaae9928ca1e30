"""Incomplete factors by thresholds."""

import pickle

import numpy as np
import pytest

import wollemi as wl
from wollemi.preconditioners import Ict, Ilut

from .conftest import DTYPES, block, convection, poisson, tolerance


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_dropping_they_are_the_factors(on, rng, dtype):
    S, x = convection(5, dtype), block(rng, (25, 2), dtype)
    M = Ilut(wl.Csr(S, executor=on), drop=0.0, fill=25.0, apply="exact", factor_sweeps="exact")
    expected = np.linalg.solve(S.toarray().astype("complex128"), x)
    near = {"rtol": 1e-3, "atol": 1e-4} if tolerance(dtype) > 1e-6 else {"rtol": 1e-9}
    np.testing.assert_allclose(M @ x, expected, **near)


@pytest.mark.parametrize("fill", [1.0, 2.0, 4.0])
def test_the_factors_have_about_as_many_entries_as_asked_for(on, fill):
    S = convection(10)
    M = Ilut(wl.Csr(S, executor=on), drop=0.0, fill=fill)
    assert M.lower.nnz + M.upper.nnz + 100 <= fill * S.nnz + 3 * 100


def test_more_fill_takes_fewer_iterations(on, rng):
    b = rng.standard_normal(400)
    A = wl.Csr(poisson(20), executor=on)
    counts = [
        wl.solvers.Cg(A, M=M, rtol=1e-10).solve(b).iterations
        for M in (
            "jacobi",
            Ict(drop=1e-2, fill=1.5, apply="exact"),
            Ict(drop=1e-4, fill=5.0, apply="exact"),
        )
    ]
    assert counts[0] > 1.8 * counts[1] and counts[1] > counts[2]


def test_they_move_pickle_and_follow_new_values(on, rng):
    S = convection(6)
    A, x = wl.Csr(S.copy(), executor=on), rng.standard_normal(36)
    M = Ilut(A, match=True, apply="exact")
    before = M @ x
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, before, rtol=1e-12)
    np.testing.assert_allclose(M.to("reference") @ x, before, rtol=1e-12)
    np.testing.assert_allclose(M.T.to_dense(), M.to_dense().T, rtol=1e-9, atol=1e-12)
    A.update_values(4.0 * S.data)
    M.update()
    np.testing.assert_allclose(M @ x, before / 4, rtol=1e-12)


def test_small_pivots_and_options(on):
    M = Ilut(wl.Csr(np.array([[0.0, 2.0], [1.0, 0.0]]), executor=on))
    assert any("pivots were too small" in note for note in M.notes)
    with pytest.raises(wl.errors.InvalidMatrix, match="no positive pivots"):
        Ict(wl.Csr(-poisson(3), executor=on))
    with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
        Ilut(wl.Csr(np.array([[np.nan]]), executor=on))
    for options in ({"drop": -1.0}, {"fill": 0}, {"fill": "much"}):
        with pytest.raises(wl.errors.InvalidArgument, match=next(iter(options))):
            Ilut(wl.Csr(np.eye(2), executor=on), **options)
    for n in (0, 1):
        M = Ilut(wl.Csr(2.0 * np.eye(n), executor=on))
        np.testing.assert_allclose(M @ np.ones(n), np.full(n, 0.5))
