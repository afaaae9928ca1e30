"""Iterations of a user's class that are computed by array functions."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import OPERATIONS
from wollemi.extend import Steps, norm2, sqrt

with OPERATIONS.locally():  # each test of this module has it again
    tell = Steps("test_host_writes", vectors="x r q")

    @tell
    def observe(w):
        """Observe |r|."""
        w.observe(sqrt(norm2(w.r)))


@pytest.fixture(autouse=True)
def _declared():
    OPERATIONS.add(observe.operation)


class Descent(wl.solvers.KrylovSolver):
    """Steepest descent, written with array functions."""

    def allocate(self, work):
        work.make(tell)

    def initialize(self, work):
        pass

    def iterate(self, work):
        work.A.apply_block(work.r, work.q, 1.0, 0.0)
        alpha = (work.r * work.r).sum() / (work.r * work.q).sum()
        work.x += alpha * work.r
        work.r -= alpha * work.q
        observe(work)


class ByHost(Descent):
    """The same, run by Python in each iteration."""

    BY_HOST = True


def matrix(executor):
    return wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]), executor=executor)


def test_array_functions_in_a_recorded_iteration_are_refused():
    solver = Descent(matrix("omp"), rtol=1e-8)
    with pytest.raises(wl.errors.InvalidArgument, match=r"changed x, r, but omp.*BY_HOST = True"):
        solver.solve(np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("kind", "executor"), [(Descent, "reference"), (ByHost, "reference"), (ByHost, "omp")]
)
def test_array_functions_run_where_python_runs_each_iteration(kind, executor):
    result = kind(matrix(executor), rtol=1e-8).solve(np.array([1.0, 2.0]))
    assert result.converged
    np.testing.assert_allclose(result.x, [1 / 11, 7 / 11], rtol=1e-7)
