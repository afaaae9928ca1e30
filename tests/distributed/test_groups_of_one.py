"""A group of one member works as its executor does alone."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .conftest import grid, line


@pytest.mark.parametrize("name", ["ilu", "ic", "amg", "jacobi", "chebyshev", "schwarz:inner=ic"])
def test_preconditioners_are_those_of_one_executor(kind: str, name: str, rng: Any) -> None:
    S, b = grid(12), rng.standard_normal(144)
    alone = wl.solvers.Gmres(wl.Csr(S, executor=kind), M=name, rtol=1e-8).solve(b)
    found = wl.solvers.Gmres(wl.distribute(S, [kind]), M=name, rtol=1e-8).solve(b)
    np.testing.assert_array_equal(found.x, alone.x)
    np.testing.assert_array_equal(found.residuals, alone.residuals)


@pytest.mark.parametrize("name", ["ilu", "isai", "ssor"])
def test_transposed_preconditioners_are_those_of_one_executor(
    kind: str, name: str, rng: Any
) -> None:
    S, b = line(30, 7), rng.standard_normal(30)
    alone = wl.solvers.Bicg(wl.Csr(S, executor=kind), M=name, rtol=1e-8).solve(b)
    found = wl.solvers.Bicg(wl.distribute(S, [kind]), M=name, rtol=1e-8).solve(b)
    assert found.iterations == alone.iterations
    np.testing.assert_allclose(found.x, alone.x, atol=1e-7)


def test_a_schwarz_preconditioner_with_overlap_has_nothing_to_overlap(kind: str, rng: Any) -> None:
    S, b = grid(9), rng.standard_normal(81)
    schwarz = wl.preconditioners.Schwarz(wl.distribute(S, [kind]), M="ilu", overlap=1)
    ilu = wl.preconditioners.Ilu(wl.Csr(S, executor=kind))
    np.testing.assert_array_equal(schwarz @ b, ilu @ b)


def test_multigrid_follows_new_values(kind: str, rng: Any) -> None:
    S, b = grid(20), rng.standard_normal(400)
    A = wl.distribute(S, [kind])
    cg = wl.solvers.Cg(A, M="amg", rtol=1e-8)
    before = cg.solve(b)
    A.update_values(2 * S.data)
    cg.update()
    np.testing.assert_allclose(2 * cg.solve(b).x, before.x, rtol=1e-6, atol=1e-9)


def test_ctrl_c_ends_a_solve_of_one_member() -> None:
    n = 100_000
    S = line(n)
    S.setdiag(2.0)
    cg = wl.solvers.Cg(wl.distribute(S, ["omp:1"]), rtol=1e-13, maxiter=10**6)
    b = np.random.default_rng(0).standard_normal(n)
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.perf_counter()
    timer.start()
    with pytest.raises(wl.errors.SolveInterrupted):
        cg.solve(b)
    assert time.perf_counter() - began < 5
