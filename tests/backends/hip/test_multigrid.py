"""Cycles of levels that a user gives, on emulated waves: launches alone, and graphs of batches."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.preconditioners import Multigrid

from ...solvers.test_multigrid import dense_of, levels
from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import tool

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.mark.pairs
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("smoother", ["chebyshev", "l1jacobi", "jacobi"])
@pytest.mark.parametrize("cycle", ["V", "W", "F"])
def test_a_cycle_is_that_of_the_reference(cycle: str, smoother: str, width: int) -> None:
    found, expected = (
        dense_of(Multigrid.from_levels(levels(7), cycle=cycle, smoother=smoother, executor=on))
        for on in (LockstepExecutor(width), "reference")
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.pairs
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("cycle", ["V", "W", "F", "K"])
@pytest.mark.parametrize("captures", [False, True], ids=["launches", "graphs"])
def test_solves_take_the_references_iterations(
    rng: np.random.Generator, captures: bool, cycle: str, dtype: str
) -> None:
    given = levels(15, dtype)
    b = rng.standard_normal((225, 3)).astype(dtype)
    results = []
    for on in (LockstepExecutor(64, captures=captures), wl.executor("reference")):
        M = Multigrid.from_levels(given, cycle=cycle, executor=on)
        assert M.resident
        solver = wl.solvers.Fcg(wl.Csr(given[0][0], executor=on), M, rtol=1e-4)
        results.append(solver.solve(b))
    assert all(result.converged for result in results)
    assert results[0].iterations == results[1].iterations
    np.testing.assert_allclose(results[0].x, results[1].x, atol=1e-3 * np.abs(b).max())


def test_a_batch_of_cycles_is_one_graph(rng: np.random.Generator) -> None:
    given, on = levels(15), LockstepExecutor(64, captures=True)
    M = Multigrid.from_levels(given, executor=on)
    result = wl.solvers.Cg(wl.Csr(given[0][0], executor=on), M, rtol=1e-10).solve(
        rng.standard_normal(225)
    )
    assert result.converged
    assert on.device.graphs > 0


def test_float32_levels_serve_a_float64_solver(rng: np.random.Generator) -> None:
    given, on = levels(15), LockstepExecutor(64)
    M = Multigrid.from_levels(given, dtype="float32", executor=on)
    assert M.levels[0].A.dtype == np.float32
    b = rng.standard_normal(225)
    result = wl.solvers.Cg(wl.Csr(given[0][0], executor=on), M, rtol=1e-10).solve(b)
    assert result.converged
    np.testing.assert_allclose(given[0][0] @ result.x, b, atol=1e-8)
