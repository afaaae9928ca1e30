"""Recorded iterations: work submitted together has the results of work submitted one by one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.dpcpp import executor as backend
from wollemi.core.operations import vector

from ..test_drive import PlainCg
from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp


@pytest.fixture(scope="module")
def device() -> wl.Executor:
    return wl.executor("dpcpp:cpu")


@pytest.mark.parametrize("longest", [1, 3, 8, 32])
def test_iterations_do_not_depend_on_the_batch(
    device: Any, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "LONGEST_BATCH", longest)
    solve, one_by_one = PlainCg(device, "float64"), PlainCg(device, "float64")
    solve.drive(60)
    while one_by_one.status.read("running")[0]:
        one_by_one.body()
    np.testing.assert_array_equal(
        solve.status.read("iterations"), one_by_one.status.read("iterations")
    )
    np.testing.assert_array_equal(solve.host("x"), one_by_one.host("x"))


def resident_bytes() -> int:
    """Return the memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_long_batches_keep_no_memory(device: Any) -> None:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(1000, 1000))
    solver, b = wl.solvers.Cg(wl.Csr(line.tocsr(), executor=device), maxiter=64), np.ones(1000)
    for _ in range(3):
        solver.solve(b)
    before = resident_bytes()
    for _ in range(20):
        solver.solve(b)
    assert resident_bytes() - before < 4e6  # graphs of OpenCL's CPU kept 11 MB


def test_an_iteration_that_needs_the_host_is_not_replayed(device: Any) -> None:
    solve = PlainCg(device, "float64")
    plain = solve.iteration.body
    seen = []

    def body() -> None:
        plain()
        seen.append(device.to_host(solve.status.iterations)[0])

    solve.iteration.body = body
    solve.drive(3)
    assert not solve.iteration.program.replayable
    assert seen[-3:] == [1, 2, 3]


def test_memory_made_while_recording_lives_as_long_as_the_record(device: Any) -> None:
    solve = PlainCg(device, "float64")
    plain = solve.iteration.body

    def body() -> None:
        plain()
        spare = device.allocate(solve.b.shape, np.float64)
        device.run(vector.axpby, solve.r, spare, 1.0, 0.0)

    solve.iteration.body = body
    solve.drive(5)
    assert len(solve.iteration.program.kept) == 1
    assert solve.status.read("iterations")[0] == 5
