"""Smoothers of multigrid as preconditioners of their own, and cycles as a solver."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Chebyshev, L1Jacobi
from wollemi.solvers.spectrum import power_estimate, row_bound

from .conftest import DTYPES, block, convection, poisson, tolerance


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_chebyshev_is_the_polynomial_of_the_textbook(on, degree):
    t, high = np.array([0.1, 0.4, 1.1, 1.9]), 2.0
    A = wl.Csr(np.diag(t), executor=on)
    M = Chebyshev(A, degree, fraction=0.2, bounds=high)
    # the diagonal scales A to the identity: give it one of its own
    M.inverse.update_values(A.executor.from_host(np.ones(4)))
    T = np.polynomial.chebyshev.Chebyshev.basis(degree)
    centre, half = 1.2, 0.8
    expected = (1 - T((centre - t) / half) / T(centre / half)) / t
    np.testing.assert_allclose(M @ np.ones(4), expected, rtol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_smoothing_from_any_iterate_is_that_of_the_residual(on, rng, degree):
    A = wl.Csr(convection(6), executor=on)
    M = Chebyshev(A, degree)
    b, x = rng.standard_normal((2, 36, 2))
    native = [A.executor.from_host(a.copy()) for a in (b, x)]
    M._smooth(*native, from_zero=False)
    expected = x + M @ (b - A @ x)
    np.testing.assert_allclose(A.executor.to_host(native[1]), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("M", ["chebyshev:degree=3,fraction=0.01", "l1jacobi"])
def test_cg_takes_them(on, rng, M, dtype):
    A = wl.Csr(poisson(12, dtype), executor=on)
    made = wl.solvers.Cg(A, M, rtol=tolerance(dtype))
    assert made.solve(block(rng, (144, 3), dtype)).converged


def test_row_sums_take_the_sign_of_the_diagonal(on):
    A = wl.Csr(np.array([[-3.0, 1.0], [0.0, 2.0j]]), executor=on)
    np.testing.assert_allclose(L1Jacobi(A) @ np.ones(2), [-0.25, -0.5j])
    np.testing.assert_allclose(L1Jacobi(A).H @ np.ones(2), [-0.25, 0.5j])
    with pytest.raises(wl.errors.InvalidMatrix, match="row 1 add up to 0"):
        L1Jacobi(wl.Csr(np.diag([1.0, 0.0]), executor=on))


@pytest.mark.parametrize("kind", [Chebyshev, L1Jacobi])
def test_they_move_pickle_and_follow_new_values(on, rng, kind):
    S = poisson(6)
    A = wl.Csr(S.copy(), executor=on)
    M = kind(A)
    x = rng.standard_normal(36)
    np.testing.assert_allclose(M.to("reference") @ x, M @ x, rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, M @ x, rtol=1e-12)
    A.update_values(4.0 * A.data)
    M.update()
    np.testing.assert_allclose(M @ x, kind(wl.Csr(S, executor=on)) @ x / 4, rtol=1e-12)


def test_solvers_follow_constants_that_depend_on_values(on, rng):
    A = wl.Csr(poisson(12), executor=on)
    b = rng.standard_normal(144)
    for M in ("polynomial", "chebyshev:fraction=0.01"):
        solver = wl.solvers.Cg(A, M, rtol=1e-10)
        solver.solve(b)
        data = np.array(A.executor.to_host(A.data))
        other = data + 3.0 * (data > 0)
        A.update_values(A.executor.from_host(other))
        solver.update()
        fresh = wl.solvers.Cg(A, M, rtol=1e-10).solve(b)
        assert solver.solve(b).iterations == fresh.iterations
        A.update_values(A.executor.from_host(data))


def test_bounds_of_the_spectrum(on):
    A = wl.Csr(poisson(20), executor=on)
    largest = 1 + np.cos(np.pi / 21)
    assert row_bound(A) == 2.0
    assert 0.9 * largest <= power_estimate(A) <= largest + 1e-12
    assert Chebyshev(A).largest == 2.0
    assert Chebyshev(A, bounds="power").largest <= 2.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_interval_is_shorter_where_eigenvalues_may_be_complex(on, dtype):
    assert Chebyshev(wl.Csr(poisson(6, dtype), executor=on)).lower == 0.2
    assert Chebyshev(wl.Csr(convection(6, dtype), executor=on)).lower == 0.4
    assert Chebyshev(wl.Csr(convection(6, dtype), executor=on), fraction=0.1).lower == 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree"),
        ({"fraction": 1.0}, "fraction"),
        ({"bounds": -1.0}, "bounds"),
        ({"largest": "exact"}, "auto, rows, power"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        Chebyshev(wl.Csr(np.eye(2)), **options)


def test_values_that_are_not_finite_are_refused(on):
    A = wl.Csr(np.array([[1.0, np.inf], [np.inf, 1.0]]), executor=on)
    with pytest.raises(wl.errors.InvalidMatrix, match="not finite"):
        Chebyshev(A)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cycles_are_a_solver(on, rng, dtype):
    S = sp.csr_array(poisson(20, dtype))
    A = wl.Csr(S, executor=on)
    near = np.exp(1j * np.arange(400)) if A.dtype.kind == "c" else None
    M = wl.preconditioners.Amg(A, near_null=near, coarse_rows=40)
    result = wl.solvers.Multigrid(A, M, rtol=tolerance(dtype)).solve(block(rng, (400, 2), dtype))
    assert result.converged
    assert result.iterations <= 30


def test_the_solver_makes_its_cycle_itself(on):
    A = wl.Csr(poisson(20), executor=on)
    solver = wl.solvers.Multigrid(A, rtol=1e-8)
    assert isinstance(solver.M, wl.preconditioners.Amg)
    assert solver.solve(np.ones(400)).converged
    assert repr(wl.solvers.Multigrid(rtol=1e-8)) == "Multigrid(rtol=1e-08)"
