"""Approximate inverses on a pattern, by themselves and of triangles."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Fsai, Ic, Ilu, Isai

from .conftest import DTYPES, block, convection, poisson, tolerance


def rows_of_inverse(S: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """Return the rows that solve with the rows and columns of the pattern, one by one."""
    W = np.zeros_like(S)
    for i, row in enumerate(pattern):
        (at,) = np.nonzero(row)
        W[i, at] = np.linalg.solve(S[np.ix_(at, at)].T, (at == i).astype(S.dtype))
    return W


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("power", [1, 2])
def test_rows_solve_with_their_patterns(on, dtype, power):
    S = convection(5, dtype).toarray()
    pattern = np.linalg.matrix_power((S != 0).astype(int), power) > 0
    M = Isai(wl.Csr(S, executor=on), power=power)
    W = rows_of_inverse(S, pattern)
    np.testing.assert_allclose(M.to_dense(), W, atol=1e-12)
    np.testing.assert_allclose(M.T.to_dense(), W.T, atol=1e-12)
    np.testing.assert_allclose(M.H.to_dense(), W.conj().T, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_factorized_inverse_has_the_diagonal_of_the_identity(on, dtype):
    S = poisson(5, dtype).toarray()
    M = Fsai(wl.Csr(S, executor=on))
    G = np.tril(rows_of_inverse(S, np.tril(S != 0)))
    G = G / np.sqrt(np.diag(G).real)[:, None]
    np.testing.assert_allclose(M.to_dense(), G.conj().T @ G, atol=1e-12)
    np.testing.assert_allclose(np.diag(G @ S @ G.conj().T).real, 1.0)
    np.testing.assert_allclose(M.T.to_dense(), (G.conj().T @ G).T, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cg_and_fsai_take_fewer_iterations(on, rng, dtype):
    A = wl.Csr(poisson(20, dtype), executor=on)
    b = block(rng, (400, 2), dtype)
    plain = wl.solvers.Cg(A, M="jacobi", rtol=tolerance(dtype)).solve(b)
    first, second = (
        wl.solvers.Cg(A, M=f"fsai:power={p}", rtol=tolerance(dtype)).solve(b) for p in (1, 2)
    )
    assert first.converged and second.converged
    assert second.iterations < first.iterations < 0.8 * plain.iterations


@pytest.mark.parametrize("solver", ["Bicgstab", "Gmres"])
def test_other_solvers_take_isai(on, rng, solver):
    A = wl.Csr(convection(20), executor=on)
    b = rng.standard_normal(400)
    plain, result = (
        getattr(wl.solvers, solver)(A, rtol=1e-10, M=M).solve(b) for M in ("jacobi", "isai")
    )
    assert result.converged and result.iterations < plain.iterations


@pytest.mark.parametrize("make", [Ilu, Ic])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_triangles_are_applied_by_their_inverses(on, rng, make, dtype):
    S = poisson(8, dtype)
    options = {"factor_sweeps": 8}
    exact = make(wl.Csr(S, executor=on), **options, apply="exact")
    M = make(wl.Csr(S, executor=on), **options, apply="isai:40")  # the pattern of the inverse
    x = block(rng, (64, 3), dtype)
    np.testing.assert_allclose(M @ x, exact @ x, rtol=1e-3 if dtype == "complex64" else 1e-10)
    np.testing.assert_allclose(M.H @ x, exact.H @ x, rtol=2e-3 if dtype == "complex64" else 1e-9)
    near = make(wl.Csr(S, executor=on), **options, apply="isai")
    assert np.linalg.norm(near @ x - exact @ x) < 0.6 * np.linalg.norm(exact @ x)
    assert near.applied == ("isai", 1)


@pytest.mark.parametrize("make", [Isai, Fsai, lambda A: Ic(A, apply="isai")])
def test_they_follow_new_values_move_and_pickle(on, rng, make):
    S = poisson(6)
    A = wl.Csr(S.copy(), executor=on)
    M = make(A)
    part = M._operators()[0]
    x = rng.standard_normal(36)
    before = M @ x
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, before, rtol=1e-12)
    np.testing.assert_allclose(M.to("reference") @ x, before, rtol=1e-12)
    assert M.astype(np.float32).dtype == np.float32
    np.testing.assert_allclose(M.astype(np.float32) @ x.astype(np.float32), before, rtol=1e-3)
    A.update_values(4.0 * S.data)
    M.update()
    assert M._operators()[0] is part
    np.testing.assert_allclose(M @ x, before / 4, rtol=1e-12)


def test_rows_without_an_inverse_are_those_of_jacobi_and_said(on):
    S = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    M = Isai(wl.Csr(S, executor=on))
    np.testing.assert_array_equal(M.to_dense(), np.eye(3))
    assert any("3 rows have no inverse" in note for note in M.notes)


def test_an_inverse_that_overflows_is_refused(on):
    D = np.array([[2 - 5j, 8 + 4j], [3 + 4j, 0]]) * 1e-309  # LAPACK takes it for singular
    with pytest.raises(wl.errors.InvalidMatrix, match="brings its entries near 1"):
        Isai(wl.Csr(D, executor=on))


def test_long_rows_keep_their_largest_entries(on):
    n = 80
    S = np.eye(n) + 0.001 * np.arange(n) * (np.arange(n) == 3)[:, None]
    S[0] += 1e-3 * np.arange(n, 0, -1)
    M = Isai(wl.Csr(S, executor=on))
    assert any("2 rows have their 64 largest" in note for note in M.notes)
    assert np.count_nonzero(M.to_dense()[0]) <= 64 and M.to_dense()[0, 0] != 0


def test_what_is_not_definite_is_refused(on):
    with pytest.raises(wl.errors.InvalidMatrix, match="not Hermitian positive definite"):
        Fsai(wl.Csr(-poisson(3), executor=on))
    for make in (Isai, Fsai):
        with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
            make(wl.Csr(np.array([[1.0, np.inf], [0.0, 1.0]]), executor=on))
        with pytest.raises(wl.errors.InvalidArgument, match="power"):
            make(wl.Csr(np.eye(2), executor=on), power=0)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_systems(on, n):
    S = sp.csr_array(np.diag(np.arange(1.0, n + 1)))
    for make in (Isai, Fsai):
        np.testing.assert_allclose(
            make(wl.Csr(S, executor=on)) @ np.arange(1.0, n + 1), np.ones(n), rtol=1e-12
        )
