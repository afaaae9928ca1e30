"""Levels of multigrid with matrices stored in 16 bits."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import UnsupportedDtype
from wollemi.preconditioners import Amg, Multigrid

NARROW = ("bfloat16", "float16")


def boxes(n: int = 14, contrast: float = 1e6, stretched: float = 1.0) -> sp.csr_array:
    """Return diffusion on n^3 cells, of which some boxes conduct better or worse by far."""
    rng = np.random.default_rng(3)
    k = np.ones((n, n, n))
    for _ in range(20):
        a, s = rng.integers(0, n, 3), rng.integers(2, max(n // 3, 4), 3)
        part = tuple(slice(i, i + j) for i, j in zip(a, s, strict=True))
        k[part] = contrast if rng.random() < 0.5 else contrast**-0.5
    place = np.arange(n**3).reshape(n, n, n)
    A = sp.csr_array((n**3, n**3))
    for axis, weight in enumerate((1.0, 1.0, stretched)):
        low = tuple(slice(0, -1) if i == axis else slice(None) for i in range(3))
        high = tuple(slice(1, None) if i == axis else slice(None) for i in range(3))
        flow = (2 * weight / (1 / k[low] + 1 / k[high])).ravel()
        i, j = place[low].ravel(), place[high].ravel()
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        L = sp.coo_array((np.tile(-flow, 2), ends), A.shape).tocsr()
        A = A + L - sp.diags_array(L.sum(axis=1))
    return sp.csr_array(A + sp.diags_array(np.full(n**3, 1e-3)))


def iterations(A: wl.Csr, M: Multigrid, b: np.ndarray) -> int:
    result = wl.solvers.Cg(A, M, rtol=1e-8, maxiter=200).solve(b)
    assert result.converged
    return result.iterations


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("stretched", [1.0, 1e-3])
def test_16_bits_take_as_many_iterations_as_float32(on, rng, dtype, stretched):
    S = boxes(stretched=stretched)
    A, b = wl.Csr(S, executor=on), rng.standard_normal(S.shape[0])
    least = iterations(A, Amg(A, dtype="float32"), b)
    M = Amg(A, dtype=dtype)
    assert iterations(A, M, b) <= least + 1
    assert M.resident
    A.update_values(A.executor.from_host(2 * S.data))
    M.update()
    assert iterations(A, M, b) <= least + 1
    assert {level.A.storage_dtype.name for level in M.levels} == {dtype}


@pytest.mark.parametrize("dtype", NARROW)
def test_rows_keep_their_sums_and_the_restriction_is_the_adjoint(on, dtype):
    A = wl.Csr(boxes(8, contrast=1e2), executor=on)
    full, M = Amg(A, dtype="float32"), Amg(A, dtype=dtype)
    largest = max(abs(level.A).max() for level in full.levels)
    unit = M._unit
    assert unit == 1 if dtype == "bfloat16" else 2**14 <= unit * largest < 2**15
    for exact, level in zip(full.levels, M.levels, strict=True):
        one = np.ones(level.A.shape[1], np.float32)
        size = np.abs(exact.A.to_dense()).max(axis=1)
        have, want = level.A @ one / unit, exact.A @ one
        assert (abs(have - want) <= 2**-15 * size).all()
        coarse = np.ones(level.P.shape[1], np.float32)
        np.testing.assert_allclose(level.P @ coarse, exact.P @ coarse, atol=2**-14)
        np.testing.assert_array_equal(level.R.to_dense(), level.P.to_dense().T)
        np.testing.assert_array_equal(level.A.to_dense(), level.A.to_dense().T)


def test_values_that_16_bits_have_get_no_further_entries(on):
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(30, 30))
    A = wl.Csr(sp.kronsum(line, line, format="csr"), executor=on)
    M = Amg(A, dtype="bfloat16", coarse_rows=50)
    assert M.levels[0].A.nnz == A.nnz
    assert M.report().nbytes < 0.85 * Amg(A, dtype="float32", coarse_rows=50).report().nbytes
    assert "in float32 stored in bfloat16, V-cycle" in str(M)


@pytest.mark.parametrize("scale", [1e-9, 1e12])
@pytest.mark.parametrize("dtype", NARROW)
def test_the_range_of_values_is_met(on, rng, scale, dtype):
    S = boxes(8, contrast=1e3) * scale
    A, b = wl.Csr(S, executor=on), rng.standard_normal(512)
    for outer in ("float64", "float32"):
        low, least = (Amg(A.astype(outer), dtype=d) for d in (dtype, "float32"))
        x = rng.standard_normal((512, 2)).astype(outer)
        np.testing.assert_allclose(low @ x, least @ x, rtol=0, atol=0.2 * abs(least @ x).max())
    assert iterations(A, Amg(A, dtype=dtype), b) <= iterations(A, Amg(A, dtype="float32"), b) + 1


@pytest.mark.parametrize(
    ("smoother", "cycle"),
    [
        ("l1jacobi", "W"),
        ("jacobi", "F"),
        ("sor", "V"),
        ("ilu:factor_sweeps=2", "V"),
        ("blockjacobi", "K"),
    ],
)
def test_smoothers_and_cycles(on, rng, smoother, cycle):
    A, b = wl.Csr(boxes(8, contrast=10), executor=on), rng.standard_normal(512)
    counts = []
    for dtype in ("float32", "bfloat16"):
        M = Amg(A, smoother=smoother, cycle=cycle, dtype=dtype, coarse_rows=60)
        counts.append(wl.solvers.Fcg(A, M, rtol=1e-8).solve(b).iterations)
    assert counts[1] <= counts[0] + 1


def test_given_levels_move_pickle_and_keep_their_settings(on, rng):
    A = boxes(8, contrast=10)
    exact = Amg(wl.Csr(A))
    given = [(level.A.to_scipy(), level.P.to_scipy()) for level in exact.levels]
    given.append(exact._last.to_scipy())
    M = Multigrid.from_levels(given, dtype="bfloat16", executor=on)
    x = rng.standard_normal(512)
    for made in (M.to("reference"), pickle.loads(pickle.dumps(M)), M.H, M.T):
        assert {level.A.storage_dtype.name for level in made.levels} == {"bfloat16"}
        np.testing.assert_allclose(made @ x, M @ x, atol=1e-4 * abs(M @ x).max())
    settings = wl.preconditioners.Amg(dtype="bfloat16")
    assert json.loads(json.dumps(settings.to_dict()))["dtype"] == "bfloat16"


def test_complex_values_have_no_16_bits(on):
    A = wl.Csr(boxes(8, contrast=10) * (1 + 0.1j), executor=on)
    with pytest.raises(UnsupportedDtype, match="complex64 are not stored in bfloat16"):
        Amg(A, dtype="bfloat16")
