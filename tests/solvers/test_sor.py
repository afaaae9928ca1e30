"""Successive over-relaxation, in the order of rows and by colors."""

import pickle

import numpy as np
import pytest

import wollemi as wl
from wollemi.preconditioners import Sor, Ssor

from .conftest import DTYPES, block, convection, poisson, tolerance


def by_hand(S: np.ndarray, omega: float, symmetric: bool) -> np.ndarray:
    """Return the operator of a sweep, or of a forward and a backward one."""
    D = np.diag(np.diag(S)) / omega
    forward = np.linalg.inv(D + np.tril(S, -1))
    if not symmetric:
        return forward
    return np.linalg.inv(D + np.triu(S, 1)) @ ((2 - omega) * D) @ forward


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("make", [Sor, Ssor])
@pytest.mark.parametrize("omega", [1.0, 1.4])
def test_in_the_order_of_rows_it_is_the_textbooks(on, dtype, make, omega):
    S = convection(5, dtype).toarray()
    M = make(wl.Csr(S, executor=on), omega, colors=False)
    expected = by_hand(S, omega, make is Ssor)
    np.testing.assert_allclose(M.to_dense(), expected, atol=1e-12)
    np.testing.assert_allclose(M.T.to_dense(), expected.T, atol=1e-12)
    np.testing.assert_allclose(M.H.to_dense(), expected.conj().T, atol=1e-12)


@pytest.mark.parametrize("make", [Sor, Ssor])
def test_by_colors_it_is_that_of_the_permuted_matrix(on, make):
    S = convection(5).toarray()
    M = make(wl.Csr(S, executor=on), colors=True)
    assert M.notes == [f"{make.__name__.lower()}: 2 levels of rows by colors"]
    p = np.asarray(M.executor.to_host(M.orders[0]))
    expected = np.empty_like(S)
    expected[np.ix_(p, p)] = by_hand(S[np.ix_(p, p)], 1.0, make is Ssor)
    np.testing.assert_allclose(M.to_dense(), expected, atol=1e-12)
    np.testing.assert_allclose(M.T.to_dense(), expected.T, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("colors", [None, True, False])
def test_cg_and_ssor_take_fewer_iterations(on, rng, dtype, colors):
    A = wl.Csr(poisson(20, dtype), executor=on)
    b = block(rng, (400, 2), dtype)
    plain = wl.solvers.Cg(A, M="jacobi", rtol=tolerance(dtype)).solve(b)
    M = Ssor(omega=1.0 if colors else 1.5, colors=colors)
    result = wl.solvers.Cg(A, M=M, rtol=tolerance(dtype)).solve(b)
    assert result.converged and result.iterations < 0.75 * plain.iterations


def test_factors_and_what_is_there_are_respected(on, rng):
    for make in (Sor, Ssor):
        for colors in (True, False):
            M = make(wl.Csr(poisson(5), executor=on), colors=colors)
            x, y = rng.standard_normal((2, 25, 2))
            found = M.apply(x, out=y.copy(), alpha=3.0, beta=-2.0)
            np.testing.assert_allclose(found, 3.0 * (M @ x) - 2.0 * y, rtol=1e-11)


@pytest.mark.parametrize("colors", [True, False])
@pytest.mark.parametrize("make", [Sor, Ssor])
def test_it_moves_pickles_and_follows_new_values(on, rng, make, colors):
    S = convection(6)
    A = wl.Csr(S.copy(), executor=on)
    M = make(A, 1.2, colors=colors)
    x = rng.standard_normal(36)
    before, matrix = M @ x, M.matrix
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, before, rtol=1e-12)
    np.testing.assert_allclose(M.to("reference") @ x, before, rtol=1e-12)
    single = M.astype(np.float32) @ x.astype(np.float32)
    np.testing.assert_allclose(single, before, rtol=0, atol=1e-5 * np.abs(before).max())
    A.update_values(4.0 * S.data)
    M.update()
    assert M.matrix is matrix
    np.testing.assert_allclose(M @ x, before / 4, rtol=1e-12)
    np.testing.assert_allclose(M.T.T @ x, before / 4, rtol=1e-12)


def test_a_zero_on_the_diagonal_and_values_that_are_none_are_refused(on):
    for make in (Sor, Ssor):
        with pytest.raises(wl.errors.InvalidMatrix, match="row 1"):
            make(wl.Csr(np.diag([1.0, 0.0]), executor=on))
        with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
            make(wl.Csr(np.array([[1.0, np.nan], [0.0, 1.0]]), executor=on))
    for options in ({"omega": 2.0}, {"omega": "much"}, {"colors": "two"}):
        with pytest.raises(wl.errors.InvalidArgument, match=next(iter(options))):
            Ssor(wl.Csr(np.eye(2), executor=on), **options)


def test_names_and_small_systems(on):
    for n in (0, 1, 2):
        A = wl.Csr(np.diag(np.arange(1.0, n + 1)), executor=on)
        for name in ("sor:backward=True", "ssor:omega=1,colors=True"):
            M = wl.solvers.Gmres(A, M=name).M
            np.testing.assert_allclose(M @ np.arange(1.0, n + 1), np.ones(n))
