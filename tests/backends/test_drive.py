"""Every way to drive an iteration has the results of the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.executor import Executor
from wollemi.core.iteration import Iteration
from wollemi.core.operations import matrix as products
from wollemi.core.operations import status as statuses
from wollemi.core.status import Status, Stop
from wollemi.solvers.krylov import cg

from .awkward import VALUE_DTYPES, Pattern
from .calls import REFERENCE

N = 40
LAPLACE = Pattern(
    "laplace", (N, N), tuple((i, j) for i in range(N) for j in (i - 1, i, i + 1) if 0 <= j < N)
)


class PlainCg:
    """Conjugate gradients on a one-dimensional Laplacian, as the least that can be driven."""

    def __init__(
        self, executor: Executor, dtype: str, columns: int = 3, capacity: int = 64
    ) -> None:
        indices, indptr = LAPLACE.compressed()
        data = np.where(np.repeat(np.arange(N), np.diff(indptr)) == indices, 2, -1).astype(dtype)
        A = wl.Csr._from_arrays(
            REFERENCE, (N, N), data, indices.astype(np.int32), indptr.astype(np.int32)
        ).to(executor)
        A.plan  # noqa: B018  made before it is driven, as solvers do
        # Each further column is a rougher right-hand side.
        t = np.linspace(-1, 1, N)
        b = np.stack([np.cos(c * t) + 0.1 * c for c in range(columns)], axis=1).astype(dtype)
        real = b.real.dtype
        self.executor, self.A, self.b = executor, A, b
        self.x, self.r, self.p, self.q = (executor.allocate(b.shape, dtype) for _ in range(4))
        self.z = self.r
        self.rho, self.rho_old, self.pq = (executor.allocate((columns,), dtype) for _ in range(3))
        self.status = Status(executor, columns, dtype, capacity)
        threshold = (np.sqrt(np.finfo(dtype).eps) * np.linalg.norm(b, axis=0)).astype(real)
        executor.copy_into(self.status.threshold, threshold)
        self.iteration = Iteration(self.body, self.status)
        self.restart()

    def restart(self, stop: Any = (0, 0, 0)) -> None:
        """Start from x = 0 with some columns stopped."""
        s = self.status
        self.executor.copy_into(self.x, np.zeros_like(self.b))
        self.executor.copy_into(self.r, self.b)
        s.arm(np.array(stop, np.uint8))
        statuses.start(self)
        cg.start(self)

    def body(self) -> None:
        self.executor.run(products.csr_spmv, self.A, self.p, self.q, 1.0, 0.0)
        for step in (cg.curvature, cg.update, cg.direction):
            step(self)

    def drive(self, limit: int) -> None:
        self.executor.drive(self.iteration, limit)

    def host(self, name: str) -> np.ndarray[Any, Any]:
        return np.array(self.executor.to_host(getattr(self, name)))

    def residual(self) -> np.ndarray[Any, Any]:
        return np.linalg.norm(self.b - self.A.to("reference") @ self.host("x"), axis=0)


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_driving_solves_every_column(executor: wl.Executor, dtype: str) -> None:
    solve = PlainCg(executor, dtype)
    solve.drive(60)
    assert solve.status.read("stop").tolist() == [Stop.CONVERGED] * 3
    assert solve.status.read("running")[0] == 0
    # Twice: the recurrence's residual has met the threshold, the true one is near it.
    assert (solve.residual() <= 2 * solve.status.read("threshold")).all()


def test_a_few_iterations_are_those_of_the_reference(executor: wl.Executor) -> None:
    here, there = PlainCg(executor, "float64"), PlainCg(REFERENCE, "float64")
    here.drive(7)
    there.drive(7)
    assert here.status.read("iterations").tolist() == [7, 7, 7]
    history, expected = here.status.read("history")[:7], there.status.read("history")[:7]
    np.testing.assert_allclose(history, expected, rtol=1e-10)
    np.testing.assert_allclose(here.host("x"), there.host("x"), rtol=1e-10, atol=1e-10)


def test_drives_add_up(executor: wl.Executor) -> None:
    once, twice = PlainCg(executor, "float64"), PlainCg(executor, "float64")
    once.drive(6)
    twice.drive(2)
    twice.drive(4)
    assert twice.status.read("iterations").tolist() == [6, 6, 6]
    np.testing.assert_array_equal(twice.host("x"), once.host("x"))


def test_a_limit_of_zero_does_nothing(executor: wl.Executor) -> None:
    solve = PlainCg(executor, "float64")
    solve.drive(0)
    assert solve.status.read("iterations").tolist() == [0, 0, 0]
    np.testing.assert_array_equal(solve.host("x"), 0)


def test_nothing_is_done_when_no_column_runs(executor: wl.Executor) -> None:
    solve = PlainCg(executor, "float64")
    solve.status.arm(np.full(3, Stop.CONVERGED, np.uint8))
    solve.drive(5)
    assert solve.status.read("iterations").tolist() == [0, 0, 0]


def test_stopped_columns_stay_where_they_are(executor: wl.Executor) -> None:
    solve = PlainCg(executor, "float64")
    solve.restart(stop=(0, Stop.BREAKDOWN, 0))
    solve.drive(60)
    assert solve.status.read("stop").tolist() == [Stop.CONVERGED, Stop.BREAKDOWN, Stop.CONVERGED]
    np.testing.assert_array_equal(solve.host("x")[:, 1], 0)


def test_a_second_solve_drives_the_same_iteration(executor: wl.Executor) -> None:
    solve = PlainCg(executor, "float64")
    solve.drive(60)
    first = solve.host("x")
    solve.restart()
    executor.copy_into(solve.status.iterations, np.zeros(3, np.int64))
    solve.drive(60)
    np.testing.assert_array_equal(solve.host("x"), first)


def test_new_values_are_seen_by_a_driven_iteration(executor: wl.Executor) -> None:
    solve = PlainCg(executor, "float64")
    solve.drive(60)
    first = solve.host("x")
    solve.A.update_values(2 * executor.to_host(solve.A.data))
    solve.restart()
    solve.drive(60)
    np.testing.assert_allclose(2 * solve.host("x"), first, rtol=1e-6, atol=1e-6)


def test_what_is_not_resident_is_driven_by_the_host(executor: wl.Executor) -> None:
    solve, plain = PlainCg(executor, "float64"), PlainCg(executor, "float64")
    calls = []

    def body() -> None:
        calls.append(1)
        plain.body()

    plain.iteration = Iteration(body, plain.status, resident=False)
    solve.drive(5)
    plain.drive(5)
    assert len(calls) == 5
    np.testing.assert_array_equal(plain.host("x"), solve.host("x"))


def test_the_history_is_a_ring(executor: wl.Executor) -> None:
    long = PlainCg(executor, "float64", capacity=64)
    ring = PlainCg(executor, "float64", capacity=4)
    long.drive(6)
    ring.drive(3)
    ring.drive(3)
    kept, all_norms = ring.status.read("history"), long.status.read("history")
    np.testing.assert_array_equal(kept, all_norms[[4, 5, 2, 3]])
