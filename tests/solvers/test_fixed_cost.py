"""The cost of a solve besides its iterations: verifications, writes and reads."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.iteration import Replay
from wollemi.core.status import Status

SOLVERS = ["Cg", "Bicgstab", "Cgs", "Gmres"]


def tridiagonal(n: int = 60) -> Any:
    return sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], (n, n), format="csr")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Replay]:
    """Return the later replays of omp, in order."""
    kind = type(wl.executor("omp"))
    play, seen = kind.play, list[Replay]()

    def noting(executor: wl.Executor, replay: Replay) -> None:
        seen.append(replay)
        play(executor, replay)

    monkeypatch.setattr(kind, "play", noting)
    return seen


@pytest.mark.parametrize("name", SOLVERS)
def test_the_residual_of_a_start_at_zero_is_known(name: str, played: list[Replay]) -> None:
    solver = getattr(wl.solvers, name)(wl.Csr(tridiagonal(), executor="omp"), rtol=1e-8)
    columns = 3
    b = np.arange(1.0, 60 * columns + 1).reshape(60, columns)
    first = solver.solve(b)
    verifying = solver.workspace(np.float64, columns).verifying
    times = played.count(verifying)
    second = solver.solve(b)
    assert played.count(verifying) == 2 * times - 1
    assert first.converged and second.converged
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.residuals, second.residuals)
    np.testing.assert_array_equal(first.column_iterations, second.column_iterations)


def test_the_residual_of_another_start_is_computed(played: list[Replay]) -> None:
    solver = wl.solvers.Cg(wl.Csr(tridiagonal(), executor="omp"), rtol=1e-8)
    b = np.ones(60)
    solver.solve(b)
    del played[:]
    solver.solve(b, x0=np.ones(60))
    assert played.count(solver.workspace(np.float64, 1).verifying) == 2


def test_columns_without_a_right_hand_side_stay_zero_in_every_solve() -> None:
    solver = wl.solvers.Cg(wl.Csr(tridiagonal(), executor="omp"), rtol=1e-8)
    b = np.ones((60, 2))
    b[:, 1] = 0.0
    for _ in range(3):
        result = solver.solve(b)
        assert result.converged
        assert result.column_iterations[1] == 0
        assert not result.x[:, 1].any()


def test_no_iteration_is_allowed_and_none_is_done() -> None:
    solver = wl.solvers.Cg(wl.Csr(tridiagonal(), executor="omp"), maxiter=0)
    for _ in range(3):
        result = solver.solve(np.ones(60))
        assert (result.converged, result.iterations) == (False, 0)


def test_the_status_of_a_block_is_written_twice_in_a_solve_of_one_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solver = wl.solvers.Cg(wl.Csr(tridiagonal(), executor="omp"), rtol=1e-8)
    solver.solve(np.ones(60))
    arm, written = Status.arm, []

    def noting(status: Status, stop: Any, **members: Any) -> None:
        written.append(sorted(members))
        arm(status, stop, **members)

    monkeypatch.setattr(Status, "arm", noting)
    assert solver.solve(np.ones((60, 1))).converged
    assert written == []
    for _ in range(2):
        del written[:]
        assert solver.solve(np.ones((60, 2))).converged
    assert written == [["iterations", "norm", "threshold"], []]


def test_new_values_are_those_of_what_is_replayed() -> None:
    """The second verification and all later ones come from a tape."""
    matrix = tridiagonal()
    A = wl.Csr(matrix, executor="omp")
    solver = wl.solvers.Cg(A, rtol=1e-10)
    b = np.arange(60.0)
    for factor in (1.0, 2.0, 5.0, 0.25):
        A.update_values(matrix.data * factor)
        solver.update()
        result = solver.solve(b)
        assert result.converged
        assert np.linalg.norm(factor * (matrix @ result.x) - b) <= 1.1e-10 * np.linalg.norm(b)


def functions_called(call: Callable[[], object]) -> int:
    """Return how many functions of Python a call runs, after calls that make all that is kept."""
    for _ in range(4):
        call()
    count = 0

    def counting(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.collect()  # a collection within the call would add finalizers of other tests to the count
    gc.disable()
    sys.setprofile(counting)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


@pytest.mark.parametrize(
    ("name", "most"), [("Cg.solve", 74), ("wl.linalg.cg", 108), ("wl.solve", 226)]
)
def test_a_repeated_call_runs_few_functions(name: str, most: int) -> None:
    """On the host of a GPU each takes a tenth of a microsecond or more; a launch takes three."""
    n = 700  # too many rows for dense factors
    A, b = wl.Csr(tridiagonal(n), executor="omp"), np.ones(n)
    solver = wl.solvers.Cg(A)
    calls: dict[str, Callable[[], object]] = {
        "Cg.solve": lambda: solver.solve(b),
        "wl.linalg.cg": lambda: wl.linalg.cg(A, b),
        "wl.solve": lambda: wl.solve(A, b),
    }
    assert functions_called(calls[name]) <= most


def test_solves_that_share_a_workspace_have_their_own_tolerances() -> None:
    A, b = wl.Csr(tridiagonal(), executor="omp"), np.arange(1.0, 61.0)
    length = np.linalg.norm(b)
    for rtol, atol in ((1e-2, 0.0), (1e-9, 0.0), (1e-2, 0.0), (0.0, 1e-4), (1e-9, 0.0)) * 2:
        x, info = wl.linalg.cg(A, b, rtol=rtol, atol=atol)
        left = np.linalg.norm(b - tridiagonal() @ x)
        threshold = max(rtol * length, atol)
        assert info == 0
        assert 1e-4 * threshold < left <= threshold
