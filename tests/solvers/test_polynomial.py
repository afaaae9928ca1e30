"""Polynomials of the matrix as preconditioners."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Polynomial
from wollemi.solvers.spectrum import estimate

from .conftest import DTYPES, block, convection, poisson, tolerance

KINDS = ["chebyshev", "neumann"]


def residual_polynomial(kind: str, degree: int, low: float, high: float, t: np.ndarray):
    """Return 1 - t p(t) from the textbook's formulas."""
    centre, half = (high + low) / 2, (high - low) / 2
    if kind == "neumann":
        return (1 - t / centre) ** degree
    chebyshev = np.polynomial.chebyshev.Chebyshev.basis(degree)
    return chebyshev((centre - t) / half) / chebyshev(centre / half)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7])
def test_it_is_the_polynomial_of_the_textbook(on, kind, degree):
    d, t = np.array([2.0, 3.0, 5.0, 7.0]), np.array([0.1, 0.4, 1.1, 1.9])
    # D^-1 A has the eigenvalues t: A = D^(1/2) Q diag(t) Q^T D^(1/2) with an orthogonal Q
    q, _ = np.linalg.qr(np.vander([1.0, 2.0, 3.0, 4.0]))
    scaled = np.sqrt(d)[:, None] * (q * t) @ q.T * np.sqrt(d)
    np.fill_diagonal(scaled, 0.0)
    A = scaled + np.diag(d)  # of unit diagonal once scaled
    values = np.linalg.eigvals(A / d[:, None]).real
    M = Polynomial(wl.Csr(A, executor=on), degree, kind, bounds=(0.05, 2.0))
    E = np.eye(4) - np.column_stack([M @ column for column in np.eye(4)]) @ A
    expected = residual_polynomial(kind, degree, 0.05, 2.0, values)
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(E).real), np.sort(expected), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_cg_with_it_solves(on, rng, kind, dtype):
    S = poisson(12, dtype)
    A = wl.Csr(S, executor=on)
    b = block(rng, (144, 3), dtype)
    plain = wl.solvers.Cg(A, rtol=tolerance(dtype)).solve(b)
    result = wl.solvers.Cg(A, f"polynomial:kind={kind}", rtol=tolerance(dtype)).solve(b)
    assert result.converged
    assert result.iterations < 0.6 * plain.iterations
    assert "eigenvalues of D^-1 A" in Polynomial(A, kind=kind).notes[0]


@pytest.mark.parametrize("solver", ["Bicgstab", "Cgs", "Gmres"])
def test_other_solvers_take_it(on, rng, solver):
    A = wl.Csr(convection(12), executor=on)
    made = getattr(wl.solvers, solver)(A, "polynomial:degree=3", rtol=1e-10)
    assert made.solve(rng.standard_normal(144)).converged


def test_factors_and_what_is_there_are_respected(on, rng):
    M = Polynomial(wl.Csr(poisson(5), executor=on))
    x, y = rng.standard_normal((2, 25, 2))
    expected = 3.0 * (M @ x) - 2.0 * y
    np.testing.assert_allclose(M.apply(x, out=y.copy(), alpha=3.0, beta=-2.0), expected, rtol=1e-12)
    nans = np.full((25, 2), np.nan)
    np.testing.assert_allclose(M.apply(x, out=nans), M @ x, rtol=1e-14)


def test_the_adjoint_is_that_of_the_operator(on, rng):
    S = convection(5, "complex128")
    M = Polynomial(wl.Csr(S, executor=on), kind="neumann", bounds=(0.2, 2.0))
    x, y = block(rng, (25,), "complex128"), block(rng, (25,), "complex128")
    assert np.vdot(y, M @ x) == pytest.approx(np.vdot(M.H @ y, x))
    assert y @ (M @ x) == pytest.approx((M.T @ y) @ x)


def test_it_moves_pickles_and_follows_new_values(on, rng):
    S = poisson(6)
    A = wl.Csr(S.copy(), executor=on)
    M = Polynomial(A, degree=3)
    x = rng.standard_normal(36)
    np.testing.assert_allclose(M.to("reference") @ x, M @ x, rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(M)) @ x, M @ x, rtol=1e-12)
    assert M.astype(np.float32).dtype == np.float32
    A.update_values(4.0 * S.data)
    M.update()
    np.testing.assert_allclose(M @ x, Polynomial(wl.Csr(S, executor=on), 3) @ x / 4, rtol=1e-12)


def test_bounds_are_found(on):
    A = wl.Csr(poisson(20), executor=on)
    inverse = wl.Diagonal(np.full(400, 0.25), executor=on)
    largest = 1 + np.cos(np.pi / 21)
    assert largest <= estimate(A, inverse).radius <= 1.1 * largest


def test_small_systems_are_bounded_exactly(on):
    A = wl.Csr(np.diag([1.0, 2.0, 4.0]), executor=on)
    assert estimate(A, wl.Diagonal(np.ones(3), executor=on)).radius == pytest.approx(4.0)
    assert Polynomial(wl.Csr(sp.csr_array((0, 0)), executor=on)) @ np.ones(0) is not None
    np.testing.assert_allclose(Polynomial(wl.Csr([[2.0]], executor=on)) @ np.ones(1), 0.5, rtol=0.2)


def test_what_has_no_polynomial_is_refused(on):
    indefinite = wl.Csr(np.array([[1.0, 3.0], [3.0, 1.0]]), executor=on)
    with pytest.raises(wl.errors.InvalidMatrix, match="eigenvalues near -2"):
        Polynomial(indefinite)
    with pytest.raises(wl.errors.InvalidMatrix, match=r"the diagonal has 0[.]0 in row 1"):
        Polynomial(wl.Csr(np.diag([1.0, 0.0]), executor=on))
    with pytest.raises(wl.errors.InvalidMatrix, match="no bounds"):
        Polynomial(wl.Csr(np.array([[1.0, np.inf], [np.inf, 1.0]]), executor=on))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree"),
        ({"kind": "taylor"}, "chebyshev, neumann"),
        ({"bounds": (0.0, 1.0)}, "0 < low <= high"),
        ({"bounds": 3}, "0 < low <= high"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(wl.errors.InvalidArgument, match=message):
        Polynomial(wl.Csr(np.eye(2)), **options)
