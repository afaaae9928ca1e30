"""MINRES: the minimized norm, singular systems, and preconditioners."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import block, one_dtype_on_sycl, poisson


def saddle(rng: np.random.Generator, n: int = 30, m: int = 10) -> sp.csr_array:
    """Return a saddle point matrix, [[K, B^T], [B, 0]]."""
    K = poisson(6)[:n, :n]
    B = sp.csr_array(rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.3))
    return sp.csr_array(sp.block_array([[K, B.T], [B, None]]))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_residual_is_the_smallest_of_the_krylov_space(dtype, rng):
    S = sp.csr_array(poisson(5, dtype) - 1.5 * sp.eye_array(25))
    b = block(rng, (25,), dtype)
    space = [b]
    for count in range(1, 8):
        found = wl.solvers.Minres(wl.Csr(S), stop=wl.stop.Iterations(count)).solve(b)
        K = np.linalg.qr(np.array(space).T)[0]
        y = np.linalg.lstsq(S @ K, b, rcond=None)[0]
        expected = np.linalg.norm(b - S @ K @ y)
        np.testing.assert_allclose(found.residuals[-1], expected, rtol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(b - S @ found.x), expected, rtol=1e-9)
        space.append(S @ space[-1])


def test_a_saddle_point_system(on, rng):
    S = saddle(rng)
    b = rng.standard_normal((S.shape[0], 2))
    found = wl.solvers.Minres(wl.Csr(S, executor=on), rtol=1e-10).solve(b)
    assert found.converged
    np.testing.assert_allclose(S @ found.x, b, atol=1e-7)


def test_a_preconditioner_is_positive_definite_where_the_matrix_is_not(on, rng):
    S = saddle(rng)
    b = rng.standard_normal(S.shape[0])
    values = np.linalg.inv(abs_of(S.toarray()) + 0.1 * np.eye(S.shape[0]))
    M = wl.Dense(values, executor=on)
    found = wl.solvers.Minres(wl.Csr(S, executor=on), M, rtol=1e-10).solve(b)
    plain = wl.solvers.Minres(wl.Csr(S, executor=on), rtol=1e-10).solve(b)
    assert found.converged
    assert found.iterations < plain.iterations / 2
    residual_norm = np.linalg.norm(b - S @ found.x)
    rounding = 10 * np.finfo(float).eps * np.linalg.norm(b)  # of a residual that is 1e-10 of b
    np.testing.assert_allclose(residual_norm, found.residual_norm, rtol=1e-6, atol=rounding)


def abs_of(S: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(S)
    return vectors @ np.diag(np.abs(values)) @ vectors.T


def test_an_indefinite_preconditioner_is_told(on, rng):
    A = wl.Csr(poisson(5), executor=on)
    M = wl.Diagonal(np.where(np.arange(25) % 2, 1.0, -1.0), executor=on)
    found = wl.solvers.Minres(A, M).solve(rng.standard_normal(25))
    assert found.stops == [Stop.INDEFINITE]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_singular_systems_with_a_solution(on, dtype, rng):
    one_dtype_on_sycl(on, dtype)
    n = 40
    path = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    path[0, 0] = path[n - 1, n - 1] = 1.0  # rows add up to 0
    S = sp.csr_array(path).astype(dtype)
    b = S @ block(rng, (n,), dtype)
    found = wl.solvers.Minres(wl.Csr(S, executor=on), rtol=1e-10).solve(b)
    assert found.converged
    assert np.linalg.norm(b - S @ found.x) <= 2e-10 * np.linalg.norm(b)


def neumann(n: int) -> sp.csr_array:
    """Return diffusion on an n x n grid with no flux through its edges: rows add up to 0."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    line[0, 0] = line[n - 1, n - 1] = 1.0
    return sp.csr_array(sp.kronsum(line, line))


def without_a_solution(rng: np.random.Generator, kind: str) -> sp.csr_array:
    if kind == "neumann":
        return neumann(12)
    values = {
        "few values": np.repeat([1.0, -2.0, 3.0, 0.0], 5),  # the Krylov space ends early
        "half are 0": np.r_[np.linspace(1, 2, 20), np.zeros(20)],
        "both signs": np.r_[-np.logspace(-2, 0, 25), np.logspace(-2, 0, 35), np.zeros(5)],
    }[kind]
    Q = np.linalg.qr(rng.standard_normal((values.size, values.size)))[0]
    S = Q @ np.diag(values) @ Q.T
    return sp.csr_array((S + S.T) / 2)


@pytest.mark.parametrize("kind", ["neumann", "few values", "half are 0", "both signs"])
def test_singular_systems_without_a_solution_end_at_least_squares(on, kind, rng):
    S = without_a_solution(rng, kind)
    b = rng.standard_normal(S.shape[0])
    found = wl.solvers.Minres(wl.Csr(S, executor=on), rtol=1e-10).solve(b)
    exact = np.linalg.lstsq(S.toarray(), b, rcond=1e-10)[0]
    assert found.stops == [Stop.LEAST_SQUARES]
    assert not found.converged and found.info > 0
    assert "least squares solution" in found.reason
    r, size = b - S @ found.x, np.linalg.norm(S.toarray(), 2)
    np.testing.assert_allclose(np.linalg.norm(r), np.linalg.norm(b - S @ exact))
    assert np.linalg.norm(S @ r) <= 1e-6 * size * np.linalg.norm(r)
    # rounding has not sent x off along the null space, as it would by 1e5 and more
    assert np.linalg.norm(found.x) <= 100 * np.linalg.norm(exact)


def test_least_squares_in_float32(on, rng):
    one_dtype_on_sycl(on, "float32")
    S = neumann(12).astype("float32")
    b = rng.standard_normal(144).astype("float32")
    found = wl.solvers.Minres(wl.Csr(S, executor=on), rtol=1e-6).solve(b)
    assert found.stops == [Stop.LEAST_SQUARES]
    np.testing.assert_allclose(np.linalg.norm(b - S @ found.x), abs(b.sum()) / 12, rtol=1e-5)


def test_one_column_of_two_has_a_solution(on, rng):
    S = neumann(10)
    b = rng.standard_normal((100, 2))
    b[:, 1] -= b[:, 1].mean()
    found = wl.solvers.Minres(wl.Csr(S, executor=on), rtol=1e-8).solve(b)
    assert found.stops == [Stop.LEAST_SQUARES, Stop.CONVERGED]


def test_least_squares_with_a_preconditioner(on, rng):
    S = neumann(12)
    b = rng.standard_normal(144)
    M = wl.Diagonal(1 / S.diagonal(), executor=on)
    found = wl.solvers.Minres(wl.Csr(S, executor=on), M, rtol=1e-8).solve(b)
    # the minimized norm is the one that M defines
    assert found.stops == [Stop.LEAST_SQUARES]
    weight = 1 / np.sqrt(S.diagonal())
    exact = np.linalg.lstsq(weight[:, None] * S.toarray(), weight * b, rcond=1e-10)[0]
    np.testing.assert_allclose(
        np.linalg.norm(weight * (b - S @ found.x)), np.linalg.norm(weight * (b - S @ exact))
    )


def test_an_ill_conditioned_matrix_is_not_called_singular():
    # float32: the small eigenvalues are 1e-5 of the largest, and the residual falls late
    values = np.logspace(-5, 0, 14).astype("float32")
    b = np.ones(14, "float32")
    found = wl.solvers.Minres(wl.Csr(np.diag(values)), rtol=1e-7).solve(b * values)
    assert found.stops[0] in (Stop.CONVERGED, Stop.STAGNATED)
    assert found.residual_norm <= 1e-6 * np.linalg.norm(values)


@pytest.mark.parametrize("shift", [-1.3, -3.7])
def test_iterations_are_scipys(shift, rng):
    S = sp.csr_array(poisson(12) + shift * sp.eye_array(144))
    b, norms = rng.standard_normal(144), []
    spla.minres(
        S, b, rtol=1e-13, maxiter=1000, callback=lambda x: norms.append(np.linalg.norm(b - S @ x))
    )
    theirs = int(np.argmax(np.array(norms) <= 1e-8 * np.linalg.norm(b))) + 1
    found = wl.solvers.Minres(S, rtol=1e-8).solve(b)
    assert abs(found.iterations - theirs) <= 1 + theirs // 20
    np.testing.assert_allclose(found.residuals[1:30], norms[:29], rtol=1e-6)
