"""Block CG: right-hand sides that share a space, dependent ones, and its limits."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import DTYPES, block, one_dtype_on_sycl, poisson, tolerance


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("M", [None, "jacobi"])
def test_every_column_is_solved_in_fewer_iterations(on, dtype, M, rng):
    one_dtype_on_sycl(on, dtype)
    S = poisson(16, dtype)
    A, b = wl.Csr(S, executor=on), block(rng, (256, 6), dtype)
    found = wl.solvers.BlockCg(A, M, rtol=tolerance(dtype)).solve(b)
    plain = wl.solvers.Cg(A, M, rtol=tolerance(dtype)).solve(b)
    assert found.converged and found.x.dtype == dtype
    assert found.iterations < 0.75 * plain.iterations
    residual = np.linalg.norm(b - S @ found.x, axis=0)
    assert (residual <= 2 * tolerance(dtype) * np.linalg.norm(b, axis=0)).all()


def test_one_column_is_cg(on, rng):
    A, b = wl.Csr(poisson(10), executor=on), rng.standard_normal(100)
    found = wl.solvers.BlockCg(A, rtol=1e-9).solve(b)
    plain = wl.solvers.Cg(A, rtol=1e-9).solve(b)
    assert abs(found.iterations - plain.iterations) <= 1
    np.testing.assert_allclose(found.residuals[:20], plain.residuals[:20], rtol=1e-6)


def test_dependent_and_zero_columns_do_no_harm(on, rng):
    S = poisson(10)
    b = rng.standard_normal((100, 5))
    b[:, 1] = b[:, 0]
    b[:, 2] = 2 * b[:, 0] - b[:, 4]
    b[:, 3] = 0
    found = wl.solvers.BlockCg(wl.Csr(S, executor=on), rtol=1e-9).solve(b)
    assert found.converged, found.reason
    np.testing.assert_allclose(S @ found.x, b, atol=1e-7)
    assert found.column_iterations[3] == 0


def test_columns_of_very_different_size(on, rng):
    S = poisson(10)
    b = rng.standard_normal((100, 4)) * 10.0 ** np.array([-9, 0, 5, 9])
    found = wl.solvers.BlockCg(wl.Csr(S, executor=on), "jacobi", rtol=1e-8).solve(b)
    assert found.converged, found.reason


def test_an_indefinite_matrix_is_told(rng):
    S = sp.csr_array(poisson(8) - 2.0 * sp.eye_array(64))
    found = wl.solvers.BlockCg(wl.Csr(S)).solve(rng.standard_normal((64, 3)))
    assert Stop.INDEFINITE in found.stops
    assert np.isfinite(found.x).all()


def test_callbacks_and_limits(rng):
    S, b = poisson(10), rng.standard_normal((100, 3))
    seen = []
    solver = wl.solvers.BlockCg(wl.Csr(S), stop=wl.stop.Iterations(5))
    found = solver.solve(b, callback=lambda x: seen.append(np.linalg.norm(b - S @ x)))
    assert found.column_iterations.tolist() == [5, 5, 5] and len(seen) == 5
    np.testing.assert_allclose(np.linalg.norm(found.residuals[1:], axis=1), seen, rtol=1e-8)


def test_a_group_makes_the_products_of_blocks_together(rng):
    S = poisson(6)
    b = rng.standard_normal((36, 2))
    alone = wl.solvers.BlockCg(wl.Csr(S), rtol=1e-9).solve(b)
    found = wl.solvers.BlockCg(wl.distribute(S, ["omp:1", "omp:1"]), rtol=1e-9).solve(b)
    assert found.converged and found.iterations == alone.iterations
    np.testing.assert_allclose(found.x, alone.x, rtol=1e-6)
