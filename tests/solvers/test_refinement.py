"""Refinement, and solvers that compute in a precision of their own."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi.core.status import Stop

from .conftest import block, one_dtype_on_sycl, poisson


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_float32_inside_reaches_what_float64_reaches(on, dtype, rng):
    one_dtype_on_sycl(on, dtype)
    S = poisson(16, dtype)
    b = block(rng, (256, 2), dtype)
    A = wl.Csr(S, executor=on)
    inner = wl.solvers.Cg(rtol=1e-4, dtype="float32")
    found = wl.solvers.Ir(A, inner=inner, rtol=1e-12).solve(b)
    assert found.converged and found.x.dtype == dtype
    assert found.iterations <= 4
    assert (np.linalg.norm(b - S @ found.x, axis=0) <= 2e-12 * np.linalg.norm(b, axis=0)).all()


def test_the_inner_solver_computes_in_its_precision(on):
    A = wl.Csr(poisson(6), executor=on)
    solver = wl.solvers.Ir(A, inner=wl.solvers.Cg(rtol=1e-3, dtype="float32"))
    assert solver.M.dtype == np.float32 and solver.M.A.dtype == np.float32
    assert solver.dtype == np.float64


@pytest.mark.parametrize("name", ["Cg", "Gmres", "Minres"])
def test_a_solver_rounds_to_its_dtype(on, name, rng):
    solver = getattr(wl.solvers, name)(wl.Csr(poisson(6), executor=on), rtol=1e-4, dtype="float32")
    found = solver.solve(rng.standard_normal(36))
    assert found.converged and found.x.dtype == np.float32
    assert solver.astype("float64").dtype == np.float64
    complex_found = solver.solve(block(rng, (36,), "complex128"))
    assert complex_found.converged and complex_found.x.dtype == np.complex64


def test_new_values_reach_the_inner_solver(on, rng):
    S, b = poisson(8), rng.standard_normal(64)
    A = wl.Csr(S, executor=on)
    solver = wl.solvers.Ir(A, inner=wl.solvers.Cg(rtol=1e-4, dtype="float32"), rtol=1e-12)
    first = solver.solve(b)
    A.update_values(on.from_host(S.data * 3.0))
    solver.update()
    second = solver.solve(b)
    assert second.converged and second.iterations == first.iterations
    np.testing.assert_allclose(3.0 * second.x, first.x, rtol=1e-9)


def test_a_preconditioner_inside_stays_on_the_device(on, rng):
    S = sp.csr_array(poisson(8) + 4.0 * sp.eye_array(64))
    solver = wl.solvers.Ir(wl.Csr(S, executor=on), inner="jacobi", rtol=1e-9)
    assert solver.workspace(np.float64, 1).iteration.resident
    assert solver.solve(rng.standard_normal(64)).converged


def test_divergence_is_told():
    found = wl.solvers.Ir(wl.Csr(poisson(8)), relaxation=1.0).solve(np.ones(64))
    assert not found.converged
    assert found.stops[0] == Stop.DIVERGED
    assert np.linalg.norm(found.x) == 0  # the start, which was best


def test_what_does_not_fit_is_refused():
    A = wl.Csr(poisson(3))
    with pytest.raises(InvalidArgument, match="one of the two"):
        wl.solvers.Ir(A, "jacobi", inner="jacobi")
    with pytest.raises(InvalidArgument, match="relaxation"):
        wl.solvers.Ir(A, relaxation=-1.0)


def test_it_moves_with_its_inner_solver(on):
    inner = wl.solvers.Cg(rtol=1e-4, dtype="float32")
    solver = wl.solvers.Ir(wl.Csr(poisson(4), executor="reference"), inner=inner, rtol=1e-11)
    assert solver.to(on).solve(np.ones(16)).converged


def stationary(name, A, dtype):
    """Return a solver that diverges: eigenvalues of 1 to 40 beyond its bounds or its M."""
    if name == "chebyshev":
        return wl.solvers.Chebyshev(A, bounds=(1.0, 2.0), maxiter=5000)
    M = wl.Diagonal(np.full(A.shape[0], 1.0, dtype), executor=A.executor)
    return (wl.solvers.Ir if name == "ir" else wl.solvers.Multigrid)(A, M=M, maxiter=5000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["ir", "multigrid", "chebyshev"])
def test_residuals_that_grow_end_a_solve_as_diverged(on, name, dtype):
    one_dtype_on_sycl(on, dtype)
    A = wl.Csr(sp.diags_array(np.linspace(1, 40, 60, dtype=dtype)), executor=on)
    found = stationary(name, A, dtype).solve(np.ones((60, 2), dtype))
    assert list(found.stops) == [Stop.DIVERGED] * 2 and found.info < 0
    assert found.iterations < 60  # the residual overflows after 200
    np.testing.assert_array_equal(found.x, 0)  # the best iterate is the start
    assert "smaller relaxation" in found.reason


def test_a_residual_that_grows_for_some_time_goes_on(on):
    n, size = 12, 20.0  # a nilpotent iteration: 20^11 times as large, then exact
    A = wl.Csr(np.eye(n) + size * np.eye(n, k=1), executor=on)
    b = np.zeros(n)
    b[-1] = 1.0
    found = wl.solvers.Ir(A, rtol=1e-14).solve(b)
    assert found.converged and found.iterations == n
