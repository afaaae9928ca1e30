"""Cycles that an executor runs by itself end and count like cycles driven by the host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.reference.executor import ReferenceExecutor
from wollemi.core.loggers import Logger
from wollemi.core.operations import vector
from wollemi.core.status import Stop
from wollemi.core.stopping import Iterations, RelativeResidual, Time
from wollemi.solvers.driver.loop import _agreement
from wollemi.solvers.driver.watching import SolveWatchers


class Unwatched(ReferenceExecutor):
    """Runs whole cycles as a device does: it goes on as long as no column stops."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    def drive_cycles(self, cycles: Any, limit: int) -> bool:
        running = cycles.iteration.status.running
        columns, done = int(running[0]), 0
        while done < limit and running[0] == columns:
            cycles.before.body()
            self.drive(cycles.iteration, cycles.length)
            cycles.after.body()
            done += 1
        self.batches.append(done)
        return True


def laplacian(n: int) -> sp.csr_matrix:
    return sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()


def solver_on(executor: Any, S: sp.csr_matrix, stop: Any, jacobi: bool = False) -> Any:
    A = wl.Csr(S, executor=executor)
    M = wl.preconditioners.Jacobi(A) if jacobi else None
    return wl.solvers.Gmres(A, M, restart=6, stop=stop)


def assert_the_same(found: Any, expected: Any) -> None:
    assert found.stops == expected.stops
    np.testing.assert_array_equal(found.column_iterations, expected.column_iterations)
    np.testing.assert_array_equal(found.residuals, expected.residuals)
    np.testing.assert_array_equal(found.residual_norm, expected.residual_norm)
    np.testing.assert_array_equal(found.x, expected.x)


STOPS = {
    "converges": (RelativeResidual(1e-6) | Iterations(2000), Stop.CONVERGED),
    "in the first cycle": (RelativeResidual(0.9) | Iterations(2000), Stop.CONVERGED),
    "runs to the limit": (RelativeResidual(1e-13) | Iterations(100), Stop.MAX_ITERATIONS),
    "runs to the end of a cycle": (RelativeResidual(1e-13) | Iterations(96), Stop.MAX_ITERATIONS),
    "stagnates": (RelativeResidual(1e-16) | Iterations(1000), Stop.STAGNATED),
}


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("jacobi", [False, True])
@pytest.mark.parametrize("end", STOPS)
def test_a_solve_is_the_same(end, jacobi, columns, rng):
    S = laplacian(30) + sp.diags(np.linspace(0.02, 0.3, 30))
    b = rng.standard_normal((30, columns)) * 10.0 ** np.arange(columns)
    stop, verdict = STOPS[end]
    alone = Unwatched()
    found = solver_on(alone, S, stop, jacobi).solve(b)
    expected = solver_on(wl.executor("reference"), S, stop, jacobi).solve(b)
    assert_the_same(found, expected)
    assert verdict in found.stops
    assert (sum(alone.batches) > 2) == (end != "in the first cycle")


def test_columns_that_end_at_different_times(rng):
    S = laplacian(60) + sp.identity(60) * 0.05
    b = np.stack([S @ np.ones(60), rng.standard_normal(60), np.zeros(60), np.eye(60)[7]], 1)
    stop = RelativeResidual(1e-8) | Iterations(3000)
    alone = Unwatched()
    found = solver_on(alone, S, stop).solve(b)
    expected = solver_on(wl.executor("reference"), S, stop).solve(b)
    assert_the_same(found, expected)
    assert len(set(found.column_iterations)) > 2
    assert len(alone.batches) > 1  # it stops where a column does


def test_a_breakdown_within_further_cycles(rng):
    S = sp.diags([np.r_[np.linspace(1, 2, 11), 0.0]], [0]).tocsr()  # singular
    stop = RelativeResidual(1e-10) | Iterations(200)
    b = rng.standard_normal(12)
    found = solver_on(Unwatched(), S, stop).solve(b)
    assert_the_same(found, solver_on(wl.executor("reference"), S, stop).solve(b))


def test_a_solver_is_used_again_with_other_right_hand_sides(rng):
    S = laplacian(40)
    stop = RelativeResidual(1e-6) | Iterations(2000)
    alone = solver_on(Unwatched(), S, stop)
    for _ in range(2):
        b = rng.standard_normal(40)
        expected = solver_on(wl.executor("reference"), S, stop).solve(b)
        assert_the_same(alone.solve(b), expected)


@pytest.mark.parametrize("end", STOPS)
def test_members_of_a_group_run_cycles_by_themselves(end, rng):
    S = laplacian(30) + sp.diags(np.linspace(0.02, 0.3, 30))
    b, (stop, verdict) = rng.standard_normal(30), STOPS[end]
    members = [Unwatched(), Unwatched()]
    found, expected = (
        wl.solvers.Gmres(wl.distribute(S, group), restart=6, stop=stop)
        for group in (members, ["reference", "reference"])
    )
    for _ in range(2):  # the second solve looks at nothing before its first cycle ends
        result = found.solve(b)
        assert_the_same(result, expected.solve(b))
        assert result.stops == [verdict]
    assert all((sum(m.batches) > 4) == (end != "in the first cycle") for m in members)


class Profiled(ReferenceExecutor):
    """A rank that has a profiler, which the others have not."""

    @property
    def observed(self) -> bool:
        return True


def test_members_of_which_one_has_a_profiler_take_the_same_way(rng):
    S, b = laplacian(30), rng.standard_normal(30)
    cg, expected = (
        wl.solvers.Cg(wl.distribute(S, members), rtol=1e-8)
        for members in ([Profiled(), ReferenceExecutor()], ["reference", "reference"])
    )
    for factor in (1.0, 1.0, 1e-150):  # the last one needs a closer look
        assert_the_same(cg.solve(factor * b), expected.solve(factor * b))


@pytest.mark.parametrize("fuses", [False, True])
def test_members_with_kernels_that_meet_agree_on_profilers(fuses):
    """Kernels of a loop meet the other members at other places than single operations do."""
    links = SimpleNamespace(fuses=fuses)
    told = []
    for observed in (False, True):
        executor = SimpleNamespace(links=links, observed=observed)
        solver: Any = SimpleNamespace(stop=None, cycle=None, dtype=None, executor=executor)
        told.append(_agreement(solver, SolveWatchers(None, None, [])))
    assert (told[0] != told[1]) == fuses


def test_programs_are_made_anew_after_a_member_has_failed(rng):
    """Of a solve that failed, some members may have prepared more than others."""
    S, b = laplacian(30), rng.standard_normal(30)
    A = wl.distribute(S, ["reference", "reference"])
    cg, expected = wl.solvers.Cg(A, rtol=1e-8), wl.solvers.Cg(A, rtol=1e-8).solve(b)
    cg.solve(b)

    def fails(member: Any) -> None:
        if member.links.rank == 1:
            ((work,),) = cg.members[1]._workspaces.values()
            work.applied = False
            raise MemoryError("on purpose")
        member.links.all(None)

    with pytest.raises(MemoryError):
        A.group.run(fails)
    for factor in (1.0, 1e-150):
        found = cg.solve(factor * b)
        assert found.converged
        np.testing.assert_allclose(found.x, factor * expected.x, rtol=1e-6)


class Stopped(ReferenceExecutor):
    """A member that is asked to stop before an operation."""

    stopped_by: Any = None

    def run(self, operation: Any, *arguments: Any) -> Any:
        if operation is Stopped.stopped_by:
            Stopped.stopped_by = None
            self.links.stage.interrupts += 1  # type: ignore[union-attr]
        return super().run(operation, *arguments)


@pytest.mark.parametrize("method", ["Gmres", "Cg"])
def test_ctrl_c_after_the_iterations_keeps_the_iterate(method, rng):
    """A cycle of GMRES that was finished twice would have lost its iterate."""
    S, b = laplacian(30), rng.standard_normal(30)
    solver = getattr(wl.solvers, method)(wl.distribute(S, [Stopped(), Stopped()]), rtol=1e-8)
    expected = solver.solve(b)
    solver.solve(b)
    Stopped.stopped_by = vector.norm  # of the true residual, behind the iterations
    with pytest.raises(wl.errors.SolveInterrupted) as raised:
        solver.solve(b)
    np.testing.assert_array_equal(raised.value.result.x, expected.x)


@pytest.mark.parametrize("method", ["Gmres", "Cg"])
def test_ctrl_c_before_the_iterations_leaves_the_start(method, rng):
    S, b = laplacian(30), rng.standard_normal(30)
    solver = getattr(wl.solvers, method)(wl.distribute(S, [Stopped(), Stopped()]), rtol=1e-8)
    for _ in range(2):
        solver.solve(b)
    Stopped.stopped_by = vector.enter
    with pytest.raises(wl.errors.SolveInterrupted) as raised:
        solver.solve(b)
    result: Any = raised.value.result
    assert result.iterations == 0 and not result.x.any()


class Silent(Logger):
    pass


@pytest.mark.parametrize(
    "watching",
    [
        {"callback": lambda x: False},
        {"norm_callback": lambda norm: False},
        {"loggers": [Silent()]},
        {"progress": True},
    ],
)
def test_whoever_watches_sees_each_cycle(watching, rng):
    alone = Unwatched()
    solver = solver_on(alone, laplacian(40), RelativeResidual(1e-6) | Iterations(2000))
    solver.solve(rng.standard_normal(40), **watching)
    assert alone.batches == []


def test_who_has_a_time_limit_looks_at_the_clock(rng):
    alone = Unwatched()
    stop = RelativeResidual(1e-6) | Iterations(2000) | Time(100)
    solver_on(alone, laplacian(40), stop).solve(rng.standard_normal(40))
    assert alone.batches == []


def test_solvers_that_do_not_restart_have_no_cycles(rng):
    alone = Unwatched()
    A = wl.Csr(laplacian(40), executor=alone)
    wl.solvers.Cg(A, rtol=1e-15, maxiter=100).solve(rng.standard_normal(40))
    assert alone.batches == []
