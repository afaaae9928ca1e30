"""The loop of AMD GPUs has the results of the plain loop, with graphs and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.gpu.repeatable import RecordedLaunch
from wollemi.backends.hip.loop import BATCH, Batches
from wollemi.core.executor import Executor
from wollemi.core.status import Stop

from ...solvers.conftest import SOLVERS, system
from .. import test_drive
from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import tool
from ..test_drive import PlainCg

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


DRIVES = [
    test_drive.test_a_few_iterations_are_those_of_the_reference,
    test_drive.test_drives_add_up,
    test_drive.test_a_limit_of_zero_does_nothing,
    test_drive.test_nothing_is_done_when_no_column_runs,
    test_drive.test_stopped_columns_stay_where_they_are,
    test_drive.test_a_second_solve_drives_the_same_iteration,
    test_drive.test_new_values_are_seen_by_a_driven_iteration,
    test_drive.test_what_is_not_resident_is_driven_by_the_host,
    test_drive.test_the_history_is_a_ring,
]


@pytest.fixture(params=[False, True], ids=["launches", "graphs"])
def wave(request: pytest.FixtureRequest) -> LockstepExecutor:
    return LockstepExecutor(64, captures=request.param)


def program(solve: PlainCg) -> Batches:
    made = solve.iteration.program
    assert isinstance(made, Batches)
    return made


def test_the_loop_is_the_plain_loop(wave: LockstepExecutor) -> None:
    driven, plain = PlainCg(wave, "float64"), PlainCg(wave, "float64")
    driven.drive(60)
    Executor.drive(wave, plain.iteration, 60)
    assert driven.status.read("stop").tolist() == [Stop.CONVERGED] * 3
    np.testing.assert_array_equal(driven.host("x"), plain.host("x"))
    for member in ("iterations", "norm", "history", "running"):
        np.testing.assert_array_equal(driven.status.read(member), plain.status.read(member))


@pytest.mark.parametrize("test", DRIVES, ids=lambda test: test.__name__)
def test_what_holds_for_every_loop_holds_here(wave: LockstepExecutor, test: Any) -> None:
    test(wave)


@pytest.mark.parametrize("limit", [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 3])
def test_a_limit_is_kept(wave: LockstepExecutor, limit: int) -> None:
    solve = PlainCg(wave, "float64")
    solve.drive(limit)
    assert solve.status.read("iterations").tolist() == [limit] * 3


def test_whole_batches_are_graphs_where_streams_can_be_captured() -> None:
    solve = PlainCg(wave := LockstepExecutor(64, captures=True), "float64")
    solve.drive(2 * BATCH + 3)
    assert program(solve).captured
    assert wave.device.graphs == 2


def test_nothing_is_a_graph_where_streams_cannot_be_captured() -> None:
    solve = PlainCg(wave := LockstepExecutor(64), "float64")
    solve.drive(2 * BATCH)
    assert not program(solve).captured
    assert wave.device.graphs == 0


def test_making_the_program_runs_nothing(wave: LockstepExecutor) -> None:
    solve = PlainCg(wave, "float64")
    before = solve.host("r")
    solve.iteration.program = wave.make_program(solve.iteration)
    assert solve.status.read("iterations").tolist() == [0, 0, 0]
    np.testing.assert_array_equal(solve.host("r"), before)


def test_a_capture_that_fails_on_the_way_leaves_plain_launches(
    wave: LockstepExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = PlainCg(wave, "float64")

    def refuses(self: RecordedLaunch) -> None:
        if wave.device.captured is not None:
            raise RuntimeError("hipErrorStreamCaptureUnsupported")
        self.function(self.grid, self.block, self.arguments, self.shared)

    monkeypatch.setattr(RecordedLaunch, "__call__", refuses)
    solve.drive(60)
    assert not program(solve).captured
    assert solve.status.read("stop").tolist() == [Stop.CONVERGED] * 3


def assert_takes_the_references_iterations(
    executor: Executor, solver: str, b: np.ndarray[Any, Any]
) -> None:
    matrix = system(solver)
    results = [
        getattr(wl.solvers, solver)(wl.Csr(matrix, executor=where), rtol=1e-10).solve(b)
        for where in ("reference", executor)
    ]
    assert all(result.converged for result in results)
    expected, got = (result.iterations for result in results)
    assert abs(got - expected) <= 1 + expected // 20  # sums are taken in another order
    np.testing.assert_allclose(matrix @ results[1].x, b, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_take_the_references_iterations(
    wave: LockstepExecutor, rng: np.random.Generator, solver: str
) -> None:
    assert_takes_the_references_iterations(wave, solver, rng.random(system(solver).shape[0]))
