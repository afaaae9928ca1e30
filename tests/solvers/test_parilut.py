"""Incomplete factors with a pattern found by sweeps."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Ict, Ilut
from wollemi.solvers.preconditioners import parilut

from .conftest import DTYPES, block, convection, one_dtype_on_sycl, poisson, tolerance


def scattered(n=60, seed=0):
    """Return a matrix without symmetry, some rows of which are empty but for their diagonal."""
    rng = np.random.default_rng(seed)
    made = sp.lil_array(sp.random_array((n, n), density=4 / n, rng=rng))
    made[::9], made[:, ::13] = 0, 0
    return sp.csr_array(made + 2.5 * sp.eye_array(n))


def with_a_dense_row_and_column(n=60):
    made = sp.lil_array(scattered(n))
    made[5, :], made[:, 7] = 0.02, 0.03
    made[5, 5] = made[7, 7] = 3
    return sp.csr_array(made)


def assert_alike(M, R):
    """Both have the same pattern; real ones have the same bits."""
    assert M.notes == R.notes
    for name in ("lower", "upper", "pivots"):
        found, expected = (getattr(P, name).to("reference") for P in (M, R))
        if name != "pivots":
            np.testing.assert_array_equal(found.indptr, expected.indptr)
            np.testing.assert_array_equal(found.indices, expected.indices)
        if M.dtype.kind == "c":
            eps = np.finfo(M.dtype).eps
            np.testing.assert_allclose(found.data, expected.data, rtol=1e3 * eps, atol=1e3 * eps)
        else:
            np.testing.assert_array_equal(found.data, expected.data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_dropping_they_become_the_factors(on, rng, dtype):
    one_dtype_on_sycl(on, dtype)
    S, x = convection(5, dtype), block(rng, (25, 2), dtype)
    M = Ilut(wl.Csr(S, executor=on), drop=0.0, fill=25.0, apply="exact", factor_sweeps=12)
    expected = np.linalg.solve(S.toarray().astype("complex128"), x)
    near = {"rtol": 1e-3, "atol": 1e-4} if tolerance(dtype) > 1e-6 else {"rtol": 1e-8}
    np.testing.assert_allclose(M @ x, expected, **near)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [Ilut, Ict])
def test_every_executor_finds_the_pattern_of_the_reference(on, kind, dtype):
    one_dtype_on_sycl(on, dtype)
    S = (poisson if kind is Ict else convection)(12, dtype)
    M, R = (
        kind(wl.Csr(S, executor=e), drop=1e-4, factor_sweeps=4, apply="jacobi:3")
        for e in (on, "reference")
    )
    assert_alike(M, R)
    again = kind(wl.Csr(S, executor=on), drop=1e-4, factor_sweeps=4, apply="jacobi:3")
    for name in ("lower", "upper"):
        first, second = (getattr(P, name).to("reference") for P in (M, again))
        np.testing.assert_array_equal(first.indices, second.indices)
        np.testing.assert_array_equal(first.data, second.data)


AWKWARD = {
    "scattered": scattered,
    "a dense row and a dense column": with_a_dense_row_and_column,
    "an empty row": lambda: sp.csr_array((sp.eye_array(7) != 0) * np.arange(7.0)),
    "no diagonal": lambda: sp.csr_array(
        np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 1.0], [0, 1.0, 3.0]])
    ),
    "zero diagonal": lambda: sp.csr_array(([0.0, 1.0, 1.0, 4.0], [0, 1, 0, 1], [0, 2, 4])),
    "1x1": lambda: sp.csr_array(np.array([[-3.0]])),
    "0x0": lambda: sp.csr_array((0, 0)),
    "nothing": lambda: sp.csr_array((3, 3)),
    "full": lambda: sp.csr_array(np.full((40, 40), 0.01) + np.eye(40)),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_matrices_have_the_factors_of_the_reference(on, name):
    S = AWKWARD[name]()
    M, R = (
        Ilut(wl.Csr(S, executor=e), factor_sweeps=3, apply="jacobi:2") for e in (on, "reference")
    )
    assert_alike(M, R)
    x = M @ np.ones(S.shape[0])
    assert np.all(np.isfinite(x))


@pytest.mark.parametrize("kind", [Ilut, Ict])
@pytest.mark.parametrize("fill", [0.2, 1.0, 2.0])
def test_each_factor_keeps_as_many_entries_as_asked_for(on, kind, fill):
    S = poisson(12)
    M = kind(wl.Csr(S, executor=on), drop=0.0, fill=fill, factor_sweeps=3, apply="jacobi:3")
    half = (S.nnz - 144) // 2
    limit = max(int(fill * (half + 144)) - 144, 0)
    assert M.lower.nnz == M.upper.nnz == limit
    if fill == 2.0:
        assert "the last dropped" in M.notes[0]


def test_of_entries_alike_only_some_are_kept(on):
    """All entries that elimination adds to a bipartite graph of one degree are of one size."""
    n = 32
    links = np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((n // 2, n // 2)))
    S = sp.csr_array(0.01 * links + np.eye(n))
    M = Ict(wl.Csr(S, executor=on), drop=0.0, fill=1.25, factor_sweeps=1, apply="jacobi:3")
    half = (n // 2) ** 2
    assert M.upper.nnz == int(1.25 * (half + n)) - n


def test_small_entries_are_dropped(on):
    A = wl.Csr(convection(12), executor=on)
    counts = [
        Ilut(
            A,
            drop=drop,
            fill=9.0,
            factor_sweeps=4,
            apply="jacobi:3",
        )
        for drop in (0.0, 1e-2, 1e-1)
    ]
    sizes = [M.lower.nnz + M.upper.nnz for M in counts]
    assert sizes[0] > 1.3 * sizes[1] > 1.3 * sizes[2]


def test_they_take_fewer_iterations_than_factors_without_fill(on, rng):
    b = rng.standard_normal(400)
    A, C = (wl.Csr(S, executor=on) for S in (poisson(20), convection(20)))
    for solver, matrix, level_0, name in (("Cg", A, "ic", "ict"), ("Gmres", C, "ilu", "ilut")):
        counts = [
            getattr(wl.solvers, solver)(matrix, M=M, rtol=1e-10).solve(b).iterations
            for M in (f"{level_0}:apply=exact", f"{name}:fill=2.5,factor_sweeps=5,apply=exact")
        ]
        assert counts[1] < 0.75 * counts[0]


def test_an_adjoint_of_the_upper_factor_is_the_lower_one(on):
    one_dtype_on_sycl(on, "complex128")
    M = Ict(wl.Csr(poisson(6, "complex128"), executor=on), factor_sweeps=3, apply="jacobi:3")
    lower, upper = (M.lower.to_dense(), M.upper.to_dense())
    np.testing.assert_array_equal(lower, upper.conj().T)
    pivots = np.asarray(M.pivots.to("reference").data)
    assert np.all(pivots.real > 0) and np.all(pivots.imag == 0)


def test_they_move_pickle_and_follow_new_values(on, rng):
    S = convection(6)
    A, x = wl.Csr(S.copy(), executor=on), rng.standard_normal(36)
    M = Ilut(A, match=True, apply="exact", factor_sweeps=3)
    before = M @ x
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, before, rtol=1e-12)
    np.testing.assert_allclose(M.to("reference") @ x, before, rtol=1e-12)
    np.testing.assert_allclose(M.T.to_dense(), M.to_dense().T, rtol=1e-9, atol=1e-12)
    A.update_values(4.0 * S.data)
    M.update()
    np.testing.assert_allclose(M @ x, before / 4, rtol=1e-12)


def test_a_pattern_that_would_explode_stays_and_says_so(on, monkeypatch):
    S = with_a_dense_row_and_column()
    monkeypatch.setattr(parilut, "FEW_TERMS", 10)
    monkeypatch.setattr(parilut, "TERMS", 1)
    M = Ilut(wl.Csr(S, executor=on), drop=0.0, factor_sweeps=2, apply="jacobi:3")
    assert any("the pattern did not grow" in note for note in M.notes)
    assert M.lower.nnz + M.upper.nnz + 60 <= S.nnz


def test_small_pivots_options_and_errors(on):
    M = Ilut(wl.Csr(np.array([[0.0, 2.0], [1.0, 0.0]]), executor=on), factor_sweeps=2)
    assert any("pivots were too small" in note for note in M.notes)
    with pytest.raises(wl.errors.InvalidMatrix, match="Ict: no positive pivots"):
        Ict(wl.Csr(-poisson(3), executor=on), factor_sweeps=2)
    for bad in (np.nan, np.inf):
        with pytest.raises(wl.errors.InvalidMatrix, match="Ilut: the matrix has NaN or Inf"):
            Ilut(wl.Csr(np.array([[bad]]), executor=on), factor_sweeps=2)
    for sweeps in (0, "many", 1.5):
        with pytest.raises(wl.errors.InvalidArgument, match="sweeps"):
            Ilut(wl.Csr(np.eye(2), executor=on), factor_sweeps=sweeps)
    exact = Ilut(wl.Csr(np.eye(2), executor=on), factor_sweeps="exact")
    assert "made on the host" in exact.notes[0]


def test_devices_take_sweeps_by_themselves(on):
    M = Ilut(wl.Csr(poisson(4), executor=on))
    expected = "made on the host" if on.backend in ("reference", "omp") else "5 rounds of sweeps"
    assert expected in M.notes[0]
