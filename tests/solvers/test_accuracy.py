"""wl.solve's estimates of condition and error, and the limit of a precision."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop
from wollemi.solvers.auto.costs import is_on_host
from wollemi.solvers.auto.estimating import EstimatingCg

from .conftest import poisson


def chain(weights) -> sp.csr_array:
    """Return the matrix of springs in a row, fixed at one end."""
    w = np.asarray(weights)
    above = np.append(w[1:], 0.0)
    return sp.csr_array(sp.diags_array([-w[1:], w + above, -w[1:]], offsets=[-1, 0, 1]))


@pytest.mark.parametrize("M", [None, "jacobi"])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_cg_estimates_the_condition_number(on, M, dtype, rng):
    S = poisson(20) + sp.diags_array(np.where(np.arange(400) < 200, 0.0, 2.0))
    A = wl.Csr(S.astype(dtype), executor=on)
    b = rng.standard_normal((400, 2)).astype(dtype)
    solver = EstimatingCg(A, M, rtol=1e-5)
    result = solver.estimated(solver.solve(b))
    d = S.diagonal() if M else np.ones(400)
    eigenvalues = np.linalg.eigvalsh(S.toarray() / np.sqrt(d[:, None] * d))
    exact = eigenvalues[-1] / eigenvalues[0]
    assert result.converged and result.solver == "Cg"
    assert 0.3 * exact < result.condition < 1.01 * exact
    x = np.linalg.solve(S.toarray(), b)
    error = np.linalg.norm(result.x - x, axis=0) / np.linalg.norm(x, axis=0)
    assert error.max() < result.error < 1000 * error.max()


def test_a_small_residual_with_a_large_error_is_told(on, rng):
    S = chain(10.0 ** rng.uniform(-4, 4, 600))
    x = rng.standard_normal(600)
    A = wl.Csr(S, executor=on)
    if not is_on_host(A):
        pytest.skip("devices estimate no errors of CG")
    result = wl.solve(A, S @ x, rtol=1e-4, maxiter=6000)
    if np.linalg.norm(result.x - x) > 0.02 * np.linalg.norm(x):
        assert any("ill-conditioned" in note for note in result.notes)
    fine = wl.solve(wl.Csr(poisson(25), executor=on), rng.standard_normal(625), rtol=1e-6)
    assert fine.condition > 50 and not any("ill-conditioned" in note for note in fine.notes)


def test_a_tolerance_below_the_precision_ends_after_a_factorization(on, rng):
    n = 300
    S = (poisson(18)[:n][:, :n]).astype(np.float32)
    b = rng.standard_normal(n).astype(np.float32)
    result = wl.solve(wl.Csr(S, executor=on), b, rtol=1e-12)
    assert not result.converged and result.stops == [Stop.STAGNATED]
    assert any("at the limit of float32" in note for note in result.notes)
    assert len(result.attempts) <= 4


@pytest.mark.parametrize("executor", ["reference", "omp"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [40, 700])
def test_unsolved_rows_of_small_size_are_told(executor, dtype, n):
    sizes = np.where(np.arange(n) < n // 2, 1e12, 1.0)
    S = sp.diags_array([-1.0, 4.0, -1.5], offsets=[-1, 0, 1], shape=(n, n))
    A = wl.Csr((sp.diags_array(sizes) @ S).tocsr().astype(dtype), executor=executor)
    b = np.asarray(A @ np.ones(n))
    x = np.ones(n, dtype)
    x[n // 2 + 5 :] = 0  # the rows of size 1 are not solved
    assert np.linalg.norm(b - A @ x) < 1e-5 * np.linalg.norm(b)
    result = wl.solve(A, b, x, method="gmres", M="none", maxiter=50)
    assert result.converged and abs(result.x - 1).max() > 0.5
    (note,) = (note for note in result.notes if "rows of A differ" in note)
    assert "a factor of 1e+12" in note and "method='direct'" in note
    for _ in range(2):
        direct = wl.solve(A, b, method="direct")
        np.testing.assert_allclose(direct.x, 1, rtol=1e-8)
        assert not any("rows of A differ" in note for note in direct.notes)
    A.update_values(A.data / np.repeat(sizes, np.diff(A.indptr)))
    equal = wl.solve(A, np.asarray(A @ np.ones(n)), x0=x, method="gmres", M="none")
    assert not any("rows of A differ" in note for note in equal.notes)
