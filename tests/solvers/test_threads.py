"""Several threads use one solver, one matrix and one executor at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import wollemi as wl

from .conftest import poisson

SIDE, THREADS, TIMES = 6, 4, 8


@pytest.mark.parametrize("M", [None, "ic"])
def test_threads_share_a_solver(on, M):
    S = poisson(SIDE)
    solver = wl.solvers.Cg(wl.Csr(S, executor=on), M, rtol=1e-10)
    b = np.random.default_rng(0).standard_normal((THREADS, S.shape[0]))
    solver.solve(b[0])

    def solutions(one: np.ndarray) -> list[np.ndarray]:
        return [on.to_host(solver.solve(one).x) for _ in range(TIMES)]

    with ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(solutions, b))
    expected = np.linalg.solve(S.toarray(), b.T).T
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, [right] * TIMES, rtol=1e-6, atol=1e-8)


def test_threads_share_an_executor(on):
    S = poisson(SIDE)

    def solution(seed: int) -> float:
        b = np.random.default_rng(seed).standard_normal(S.shape[0])
        A = wl.Csr(S, executor=on)
        worst = [np.abs(S @ on.to_host(wl.solve(A, b, rtol=1e-10).x) - b).max() for _ in range(3)]
        return float(max(worst))

    with ThreadPoolExecutor(THREADS) as threads:
        assert max(threads.map(solution, range(THREADS))) < 1e-8
