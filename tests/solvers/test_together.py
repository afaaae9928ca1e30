"""One solver for several solves at once, and right-hand sides at the end of the scale."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import wollemi as wl

from .conftest import SOLVERS, block, poisson, system


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_may_solve_with_one_solver(solver):
    S = system(solver, 40)
    made = getattr(wl.solvers, solver)(wl.Csr(S), rtol=1e-8)
    bs = block(np.random.default_rng(0), (8, S.shape[0]), "float64")
    expected = [made.solve(b).x for b in bs]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda b: [made.solve(b).x for _ in range(5)], bs))
    for solutions, right in zip(found, expected, strict=True):
        assert all(np.array_equal(x, right) for x in solutions)


def test_a_callback_may_solve_with_the_solver_that_called_it(on, rng):
    made = wl.solvers.Cg(wl.Csr(poisson(8), executor=on), rtol=1e-10)
    b, other = rng.standard_normal(64), rng.standard_normal(64)
    alone, inner = made.solve(b), []
    result = made.solve(b, callback=lambda x: inner.append(made.solve(other)))
    np.testing.assert_array_equal(on.to_host(result.x), on.to_host(alone.x))
    assert result.iterations == alone.iterations == len(inner)
    assert all(one.converged for one in inner)


def test_threads_may_solve_with_one_lazy_product():
    A = wl.Csr(poisson(40))
    normal = wl.solvers.Cg((A + 1.0 * wl.LinearOperator(A.shape, lambda x: x)) @ A, rtol=1e-8)
    bs = block(np.random.default_rng(0), (6, 1600), "float64")
    expected = [normal.solve(b).x for b in bs]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda b: normal.solve(b).x, bs))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("error")
def test_subnormal_right_hand_sides_are_scaled_as_far_as_numbers_go():
    result = wl.solvers.Cg(poisson(4)).solve(np.full(16, 1e-320))
    assert np.all(np.isfinite(result.x))
