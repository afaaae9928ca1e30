"""wl.solve of singular systems: null spaces, least squares, and values that are not finite."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import poisson


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(on, value):
    S = poisson(8).toarray()
    S[3, 3] = value
    with pytest.raises(wl.errors.InvalidMatrix, match="A has NaN or Inf"):
        wl.solve(wl.Csr(S, executor=on), np.ones(64))
    with pytest.raises(wl.errors.InvalidArgument, match="b has NaN or Inf"):
        wl.solve(wl.Csr(poisson(8), executor=on), np.full(64, value))


def neumann(n: int) -> sp.csr_array:
    """Return the 5-point stencil with Neumann's conditions, which maps constants to zero."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    line[0, 0] = line[n - 1, n - 1] = 1.0
    return sp.csr_array(sp.kronsum(line.tocsr(), line.tocsr()))


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("columns", [None, 2])
def test_a_system_with_constants_as_null_space_has_the_shortest_solution(on, n, columns, rng):
    S = sp.csr_array(sp.block_diag([neumann(n), neumann(n // 2)]))  # two components
    b = S @ rng.standard_normal((S.shape[0],) if columns is None else (S.shape[0], columns))
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-8)
    assert result.converged
    np.testing.assert_allclose(S @ result.x, b, atol=1e-7 * np.linalg.norm(b))
    for part in (result.x[: n * n], result.x[n * n :]):
        np.testing.assert_allclose(part.mean(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("n", [8, 40])
def test_a_right_hand_side_out_of_the_range_of_a_laplacian_has_its_verdict_at_once(on, n, rng):
    S, b = neumann(n), rng.standard_normal(n * n)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-6)
    assert not result.converged and result.stops == [Stop.LEAST_SQUARES]
    assert len(result.attempts) == 1
    assert np.isclose(result.residual_norm, abs(b.mean()) * n, rtol=1e-3)
    np.testing.assert_allclose(S @ result.x, b - b.mean(), atol=1e-5 * np.linalg.norm(b))


@pytest.mark.parametrize("hermitian", [True, False])
def test_singular_inconsistent_systems_have_a_least_squares_solution(on, hermitian, rng):
    left, right = rng.standard_normal((2, 50, 30))
    S = left @ (left.T if hermitian else right.T)
    b = rng.standard_normal(50)
    result = wl.solve(wl.Csr(S, executor=on), b)
    shortest = np.linalg.lstsq(S, b, rcond=1e-10)[0]
    assert not result.converged and result.stops == [Stop.LEAST_SQUARES]
    assert np.isclose(result.residual_norm, np.linalg.norm(b - S @ shortest), rtol=1e-3)
    assert np.linalg.norm(result.x) <= 1.01 * np.linalg.norm(shortest)
    assert len(result.attempts) <= 7  # not every method is tried in vain


def test_underdetermined_systems_have_the_shortest_solution(on, rng):
    A = rng.standard_normal((3, 8)) * 10.0 ** rng.uniform(-3, 3, 8)
    b = rng.standard_normal(3)
    result = wl.solve(wl.Csr(A, executor=on), b, rtol=1e-12)
    shortest = np.linalg.lstsq(A, b, rcond=None)[0]
    assert np.linalg.norm(result.x) <= 1.001 * np.linalg.norm(shortest)
    assert "M: none, so that x is the shortest of all solutions" in result.notes


def test_lsmr_of_a_square_matrix_finds_the_shortest_solution(on, rng):
    D = rng.standard_normal((8, 3)) * 10.0 ** np.arange(-3, 5)[:, None]
    S = D @ D.T
    b = S @ rng.standard_normal(8)
    x = wl.solve(wl.Csr(S, executor=on), b, method="lsmr", rtol=1e-12).x
    assert np.linalg.norm(x) <= 1.1 * np.linalg.norm(np.linalg.pinv(S, rcond=1e-13) @ b)
