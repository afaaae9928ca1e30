"""A solve that fails returns the best iterate that it verified, never worse than its start."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import vector
from wollemi.core.status import Stop
from wollemi.solvers.krylov.base import KrylovSolver

from .conftest import SOLVERS, poisson
from .test_unwatched import Unwatched


def singular_systems() -> dict[str, np.ndarray]:
    """Return matrices that no method, or not every one, can solve with."""
    rng = np.random.default_rng(7)
    Q, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    rank_two = rng.standard_normal((8, 2))
    shift = np.diag(np.ones(5), 1)
    dependent = rng.standard_normal((15, 15))
    dependent[-1] = dependent[0] + dependent[1]
    return {
        "diag(1, 2, 0)": np.diag([1.0, 2.0, 0.0]),
        "zero": np.zeros((4, 4)),
        "nilpotent": shift,
        "projection": Q[:, :5] @ Q[:, :5].T,
        "rank two": rank_two @ rank_two.T,
        "indefinite": np.diag([1.0, -2.0, 3.0, -4.0, 1e-8]),
        "skew": shift[:4, :4] - shift[:4, :4].T,
        "dependent rows": dependent,
        "badly scaled": np.diag(10.0 ** np.arange(-12, 13, 3.0)) @ rng.standard_normal((9, 9)),
        "random": rng.standard_normal((20, 20)),
    }


SYSTEMS = singular_systems()


def residual(A: np.ndarray, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(b - A @ x, axis=0)


@pytest.mark.pairs
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_no_solve_ends_worse_than_it_began(on, name, solver, dtype, rng):
    A = SYSTEMS[name].astype(dtype)
    n = len(A)
    b = np.stack([np.ones(n), rng.standard_normal(n), A.real @ np.ones(n)], axis=1).astype(dtype)
    near = rng.standard_normal((n, 3)).astype(dtype)
    made = getattr(wl.solvers, solver)(wl.Csr(A, executor=on), rtol=1e-7, maxiter=60)
    for x0 in (None, near):
        result = made.solve(b, x0=x0)
        start = np.zeros_like(b) if x0 is None else x0
        unit = 1 + 30 * n * float(np.finfo(A.dtype).eps)
        noise = n * np.finfo(A.dtype).eps * np.linalg.norm(np.abs(A) @ np.abs(result.x), axis=0)
        found = residual(A, result.x, b)
        assert np.all(np.isfinite(result.x))
        assert np.all(found <= unit * residual(A, start, b) + noise), result
        # and the reported norm belongs to the returned iterate
        np.testing.assert_allclose(result.residual_norm, found, rtol=1e-3, atol=noise.max())


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_gmres_is_least_squares_where_the_space_is_exhausted(on, dtype, columns):
    A = np.diag([1.0, 2.0, 0.0]).astype(dtype)
    b = np.ones((3, columns), dtype) * np.arange(1, columns + 1)
    result = wl.solvers.Gmres(wl.Csr(A, executor=on)).solve(b)
    assert set(result.stops) == {Stop.STAGNATED}
    np.testing.assert_allclose(result.residual_norm, np.arange(1, columns + 1), rtol=1e-5)
    expected = np.stack([np.ones(columns), np.full(columns, 0.5)]) * np.arange(1, columns + 1)
    np.testing.assert_allclose(result.x[:2], expected, rtol=1e-5)
    assert np.all(np.abs(result.x[2]) < 100)


@pytest.mark.parametrize("n", [5, 20, 60])
def test_gmres_reaches_least_squares_of_symmetric_singular_systems(on, n, rng):
    # for a symmetric matrix the smallest residual over the Krylov space is that of least squares
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    A = Q @ np.diag(np.r_[rng.uniform(1, 3, n - 2), 0, 0]) @ Q.T
    b = rng.standard_normal(n)
    best = residual(A, np.linalg.lstsq(A, b, rcond=1e-10)[0], b)
    result = wl.solvers.Gmres(wl.Csr(A, executor=on), restart=n, maxiter=n + 1).solve(b)
    # 276 times where a pivot was tested for exact zero
    assert result.residual_norm <= 8 * best


def test_gmres_of_a_matrix_of_zeros_stays_where_it_is(on):
    start = np.array([1.0, 2.0, 3.0])
    made = wl.solvers.Gmres(wl.Csr(sp.csr_array((3, 3)), executor=on))
    result = made.solve(np.ones(3), x0=start)
    assert result.stops == [Stop.STAGNATED]
    np.testing.assert_array_equal(result.x, start)
    assert result.residual_norm == pytest.approx(np.sqrt(3))


def test_gmres_uses_pivots_that_are_small_and_no_noise(on):
    # of the second column a millionth is left: that is no rounding error
    A = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-6]])
    result = wl.solvers.Gmres(wl.Csr(A, executor=on), rtol=1e-9).solve(np.array([1.0, 2.0]))
    assert result.converged and result.iterations <= 4
    np.testing.assert_allclose(A @ result.x, [1.0, 2.0], atol=1e-8)


class Drifting(KrylovSolver):
    """Steps along the residual, each four times as long: cycles are better first, then worse."""

    cycle = 2

    def allocate(self, work):
        self.length = 0.25
        self.verified = []

    def initialize(self, work):
        self.verified.append(self.executor.to_host(work.x).copy())

    def iterate(self, work):
        work.executor.run(vector.axpby, work.r, work.x, self.length, 1.0)
        self.length *= 4
        status = work.status
        host = {name: status.read(name) for name in ("iterations", "history")}
        host["iterations"] += 1
        host["history"][host["iterations"] - 1] = 1.0
        for name, value in host.items():
            work.executor.copy_into(getattr(status, name), value)


@pytest.mark.parametrize("start", [None, "near"])
def test_the_best_verified_iterate_of_a_user_s_own_solver_is_returned(on, start):
    A = np.eye(3)
    made = Drifting(wl.LinearOperator((3, 3), lambda x: 1.0 * x, executor=on), maxiter=8)
    made.stop = wl.stop.RelativeResidual(1e-12) | wl.stop.Iterations(8)
    x0 = None if start is None else np.array([1.0, 1.0, 0.9])
    result = made.solve(np.ones(3), x0=x0)
    assert result.stops == [Stop.MAX_ITERATIONS]
    norms = [np.linalg.norm(1 - x) for x in made.verified]
    assert result.residual_norm == pytest.approx(min(norms))
    np.testing.assert_array_equal(result.x, made.verified[int(np.argmin(norms))].reshape(3))
    assert A.shape == (3, 3)


def test_cycles_that_an_executor_runs_alone_keep_the_best_too(rng):
    A = rng.standard_normal((30, 30))
    b = rng.standard_normal((30, 2))
    alone, watched = Unwatched(), wl.executor("reference")
    for executor in (alone, watched):
        made = wl.solvers.Gmres(wl.Csr(A, executor=executor), restart=3, rtol=1e-12, maxiter=90)
        result = made.solve(b)
        assert np.all(residual(A, result.x, b) <= residual(A, 0 * b, b))
        np.testing.assert_allclose(result.residual_norm, residual(A, result.x, b), rtol=1e-9)
    assert sum(alone.batches) > 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_who_ends_a_solve_gets_the_iterate_of_that_moment(on, solver):
    # the residual of conjugate gradients grows before it falls here
    n = 40
    S = sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    b = np.zeros(n)
    b[0] = 1.0
    seen = []

    def callback(x):
        seen.append(np.array(wl.executor(on).to_host(x)))
        return len(seen) == 1

    made = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=1e-10, maxiter=60)
    result = made.solve(b, callback=callback)
    assert result.stops == [Stop.CALLBACK]
    np.testing.assert_array_equal(result.x, seen[-1])
    assert result.residual_norm == pytest.approx(np.linalg.norm(b - S @ result.x))


def test_a_solver_applied_as_an_operator_does_its_iterations(on):
    # within three iterations the residual of this system grows: as a solve that is a failure, as
    # an approximate inverse it is not
    A = wl.Csr(poisson(12), executor=on)
    b = np.ones(144)
    inner = wl.solvers.Cg(A, rtol=1e-12, maxiter=3)
    seen = []
    failed = inner.solve(b, callback=lambda x: seen.append(np.array(on.to_host(x))))
    assert failed.stops == [Stop.MAX_ITERATIONS]
    assert failed.residual_norm == np.linalg.norm(b) and not np.any(failed.x)
    np.testing.assert_array_equal(inner @ b, seen[-1])


def test_an_interrupted_solve_returns_the_best_too(on):
    calls = 0

    def matvec(x):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return wl.executor(on).from_host(skew @ wl.executor(on).to_host(x))

    skew = np.array([[0.0, 1e3, 0.0], [-1e3, 0.0, 1.0], [0.0, -1.0, 1e-3]])
    made = wl.solvers.Bicgstab(wl.LinearOperator((3, 3), matvec, executor=on))
    b = np.ones(3)
    with warnings.catch_warnings(), pytest.raises(wl.errors.SolveInterrupted) as caught:
        warnings.simplefilter("ignore")
        made.solve(b)
    result = caught.value.result
    assert result.residual_norm <= np.linalg.norm(b)
    assert result.residual_norm == pytest.approx(np.linalg.norm(b - skew @ result.x), rel=1e-9)
