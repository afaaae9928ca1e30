"""Every solver solves its class of systems, on every executor, in every dtype."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl
from wollemi.core.status import Stop

from .conftest import DTYPES, SOLVERS, block, poisson, system, tolerance


def relative_residual(S, x, b):
    return np.linalg.norm(b - S @ x, axis=0) / np.maximum(np.linalg.norm(b, axis=0), 1e-300)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_true_residual_of_a_converged_solve_meets_the_tolerance(on, solver, dtype, rng):
    S, rtol = system(solver, dtype=dtype), tolerance(dtype)
    b = block(rng, (S.shape[0],), dtype)
    result = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=rtol).solve(b)
    assert result.converged, result
    assert relative_residual(S.astype(complex), result.x, b) <= 1.01 * rtol
    assert result.x.dtype == np.dtype(dtype)


@pytest.mark.parametrize("solver", SOLVERS)
def test_jacobi_preconditions_every_solver(on, solver, rng):
    scale = np.logspace(0, 3, 144)
    S = (system(solver).multiply(scale[:, None])).multiply(scale[None, :]).tocsr()
    A = wl.Csr(S, executor=on)
    b = S @ rng.standard_normal(S.shape[0])
    with_m = getattr(wl.solvers, solver)(A, wl.preconditioners.Jacobi(A), rtol=1e-9).solve(b)
    without = getattr(wl.solvers, solver)(A, rtol=1e-9).solve(b)
    assert with_m.converged
    assert with_m.iterations < without.iterations


@pytest.mark.parametrize("solver", SOLVERS)
def test_each_right_hand_side_stops_on_its_own(on, solver, rng):
    S = system(solver)
    b = rng.standard_normal((S.shape[0], 4))
    b[:, 1] = 0.0  # done before it starts
    b[:, 2] = S @ np.ones(S.shape[0])
    result = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=1e-10).solve(b)
    assert result.converged
    assert result.column_iterations[1] == 0
    assert np.all(result.x[:, 1] == 0)
    assert len(set(result.column_iterations)) > 1
    live = [0, 2, 3]
    assert np.all(relative_residual(S, result.x, b)[live] <= 1.01e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_block_is_solved_as_its_columns_are(on, solver, rng):
    S = system(solver)
    b = rng.standard_normal((S.shape[0], 3))
    made = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=1e-8)
    together = made.solve(b)
    for column in range(3):
        alone = made.solve(np.ascontiguousarray(b[:, column]))
        assert abs(alone.iterations - together.column_iterations[column]) <= 2
        np.testing.assert_allclose(together.x[:, column], alone.x, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("solver", "function"), [("Cg", "cg"), ("Gmres", "gmres")])
def test_iteration_counts_are_those_of_scipy(on, solver, function, rng):
    S = system(solver, 30)
    b = rng.standard_normal(S.shape[0])
    seen = []
    extra = {"restart": 20, "callback_type": "pr_norm"} if function == "gmres" else {}
    getattr(spla, function)(S, b, rtol=1e-8, callback=seen.append, **extra)
    result = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=1e-8).solve(b)
    assert result.iterations == pytest.approx(len(seen), rel=0.05)


def test_a_solver_is_reused_without_new_memory(on, rng):
    S = poisson(10)
    made = wl.solvers.Cg(wl.Csr(S, executor=on), rtol=1e-8)
    first = made.solve(rng.standard_normal(100))
    work = made.workspace(np.float64, 1)
    second = made.solve(b := rng.standard_normal(100))
    assert made.workspace(np.float64, 1) is work
    assert first.converged and second.converged
    assert relative_residual(S, second.x, b) <= 1.01e-8


def test_a_solver_is_an_operator_and_preconditions_another(on, rng):
    S = poisson(10)
    A = wl.Csr(S, executor=on)
    inner = wl.solvers.Cg(A, rtol=1e-2)
    outer = wl.solvers.Bicgstab(A, inner, rtol=1e-10)
    b = rng.standard_normal(100)
    result = outer.solve(b)
    assert result.converged
    assert result.iterations < wl.solvers.Bicgstab(A, rtol=1e-10).solve(b).iterations
    np.testing.assert_allclose(S @ (wl.solvers.Cg(A, rtol=1e-12) @ b), b, atol=1e-9)


def test_callables_are_taken_for_the_operator_and_for_m(on, rng):
    S = poisson(10)
    A = wl.Csr(S, executor=on)
    operator = wl.LinearOperator(A.shape, matvec=lambda x: A @ x, executor=on)
    result = wl.solvers.Cg(operator, lambda r: 0.25 * r, rtol=1e-10).solve(rng.standard_normal(100))
    assert result.converged


def test_a_lazy_sum_is_solved(on, rng):
    S = poisson(10)
    shifted = wl.Csr(S, executor=on) + 2.0 * wl.Identity(100, dtype=np.float64, executor=on)
    b = rng.standard_normal(100)
    x = wl.solvers.Cg(shifted, rtol=1e-12).solve(b).x
    np.testing.assert_allclose(S @ x + 2.0 * x, b, atol=1e-9)


def test_long_solves_outlast_the_history_ring(on):
    n = 3000  # the 1-D Laplacian takes n iterations, the ring holds 1024
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    result = wl.solvers.Cg(wl.Csr(line, executor=on), rtol=1e-10).solve(np.ones(n))
    assert result.converged
    assert result.residuals.shape == (result.iterations + 1,)
    assert np.all(np.isfinite(result.residuals))


@pytest.mark.parametrize("exponent", [-250, -150, 150, 250])
def test_norms_whose_squares_leave_the_range_are_no_obstacle(on, exponent):
    S, scale = poisson(8), 10.0**exponent
    b = S @ np.ones(64) * scale
    result = wl.solvers.Cg(wl.Csr(S, executor=on), rtol=1e-10).solve(b)
    assert result.converged
    np.testing.assert_allclose(result.x / scale, 1.0, rtol=1e-8)
    assert result.residual_norm <= 1e-10 * np.linalg.norm(b / scale) * scale * 1.01


def test_a_start_near_the_solution_saves_iterations(on, rng):
    S = poisson(12)
    x = rng.standard_normal(144)
    made = wl.solvers.Cg(wl.Csr(S, executor=on), rtol=1e-8)
    cold = made.solve(S @ x)
    warm = made.solve(S @ x, x0=x + 1e-6 * rng.standard_normal(144))
    assert warm.converged and warm.iterations < cold.iterations


def test_stop_codes_of_kernels_and_of_python_agree():
    import re
    from pathlib import Path

    from wollemi.backends import unified

    text = (Path(unified.__file__).parent / "status.hpp").read_text()
    listed = re.search(r"enum stop_code : u8 \{([^}]*)\}", text)
    assert listed is not None
    for name, code in re.findall(r"(\w+) = (\d+)", listed[1]):
        assert Stop[name] == int(code)


def test_no_iterations_are_tried_once(on):
    A = wl.Csr(np.diag([1.0, 2.0, 3.0]) + 0.1, executor=on)
    result = wl.solve(A, np.ones(3), maxiter=0)
    assert not result.converged and len(result.attempts) == 1
