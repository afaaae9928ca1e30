"""The reports to loggers: residuals of both kinds, products, copies and allocations."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.events import WATCHERS
from wollemi.loggers import Counts, History, Logger, Stream, watch

from .conftest import SOLVERS, poisson, system

#: Products of one iteration.
PRODUCTS = {"Cg": 1, "Bicgstab": 2, "Cgs": 2, "Gmres": 1}


@pytest.mark.parametrize("solver", SOLVERS)
def test_products_are_counted(on, solver):
    A = wl.Csr(system(solver, 8), executor=on)
    counts = Counts()
    made = getattr(wl.solvers, solver)(A, "jacobi", rtol=1e-8)
    plain = made.solve(np.ones(64))
    counted = made.solve(np.ones(64), loggers=[counts])
    assert counted.iterations == plain.iterations
    assert counted.stops == plain.stops
    done = counted.iterations * PRODUCTS[solver]
    verified = counts.applications["A"] - done
    cycles = -(-counted.iterations // (made.cycle or counted.iterations))
    assert verified == 1 + cycles
    # GMRES applies M to the update of each cycle, CG to its first residual
    once = {"Cg": 1, "Gmres": cycles}.get(solver, 0)
    assert counts.applications["M"] == done + once
    # and the next solve is recorded again
    assert made.solve(np.ones(64)).iterations == plain.iterations


def test_an_application_says_which_and_how_many_columns(on):
    seen = []

    class Watching(Logger):
        def applied(self, application):
            seen.append(application)

    A = wl.Csr(poisson(6), executor=on)
    wl.solvers.Cg(A).solve(np.ones((36, 2)), loggers=[Watching()])
    assert {(event.operator, event.columns) for event in seen} == {("A", 2)}
    assert [event.count for event in seen] == list(range(1, len(seen) + 1))


def test_copies_and_allocations_of_a_solve_are_told(on):
    counts = Counts()
    A = wl.Csr(poisson(6), executor=on)
    result = wl.solvers.Cg(A).solve(np.ones(36), loggers=[counts])
    assert result.converged
    assert counts.allocations > 5  # the workspace is made for the first solve
    assert counts.allocated_bytes > 6 * 36 * 8
    assert sum(counts.copied_bytes.values()) > 0
    names = {on.name, "host"}
    assert all(set(pair) <= names for pair in counts.copies)
    within = counts.copied_bytes[on.name, on.name]
    assert counts.moved_bytes == counts.copied_bytes.total() - within
    assert f"({counts.moved_bytes:,} between executors)" in repr(counts)


def test_an_executor_is_watched_outside_of_solves(on):
    counts = Counts()
    with watch(on, counts):
        block = wl.executor(on.name).zeros((10, 2), np.float32)
        on.copy_into(block, np.ones((10, 2), np.float32))
        on.copy(block)
    on.copy(block)
    assert (counts.allocations, counts.allocated_bytes) == (2, 160)
    assert sum(counts.copies.values()) == 2
    assert counts.copied_bytes[on.name, on.name] >= 80


def test_two_may_watch_and_nothing_stays_behind(on):
    first, second = Counts(), Counts()
    with watch(on, first):
        with watch(on, second):
            on.zeros((4,), np.float64)
        on.zeros((4,), np.float64)
    assert (first.allocations, second.allocations) == (2, 1)
    assert not WATCHERS.active


def test_watches_of_two_threads_end_in_any_order(on):
    first, second = Counts(), Counts()
    opened, closed = threading.Event(), threading.Event()

    def other() -> None:
        with watch(on, second):
            opened.set()
            assert closed.wait(30)

    thread = threading.Thread(target=other)
    with watch(on, first):
        thread.start()
        assert opened.wait(30)
        on.zeros((4,), np.float64)
    on.zeros((4,), np.float64)
    closed.set()
    thread.join()
    on.zeros((4,), np.float64)
    assert (first.allocations, second.allocations) == (1, 2)
    assert not WATCHERS.active


def test_a_thread_is_seen_by_the_watcher_of_another_one(on):
    counts, threads = Counts(), 4
    ready = threading.Barrier(threads)

    def allocate() -> None:
        ready.wait(30)
        for _ in range(50):
            on.zeros((2,), np.float64)

    with watch(on, counts):
        working = [threading.Thread(target=allocate) for _ in range(threads)]
        for thread in working:
            thread.start()
        for thread in working:
            thread.join()
    assert counts.allocations == threads * 50


def test_who_does_not_ask_is_not_told(on):
    class Silent(Logger):
        pass

    A = wl.Csr(poisson(6), executor=on)
    made = wl.solvers.Cg(A)
    made.solve(np.ones(36), loggers=[Silent()])
    work = made.workspace(np.float64, 1)
    assert work.iteration.resident and not WATCHERS.active


@pytest.mark.parametrize("solver", ["Cg", "Bicgstab", "Cgs"])
def test_the_true_residual_stands_beside_the_implicit_one(on, solver):
    S = system(solver, 8)
    history = History(every=3, true_residual=True)
    made = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), rtol=1e-6)
    result = made.solve(np.ones(64), loggers=[history])
    assert result.iterations > 6
    for snapshot in history.snapshots:
        np.testing.assert_allclose(snapshot.true_norm, snapshot.norm, rtol=1e-6)
    assert [s.iteration for s in history.snapshots] == list(range(0, result.iterations + 1, 3))


def test_cycles_of_gmres_are_told_when_they_are_verified(on):
    class Cycles(Logger):
        def __init__(self):
            self.seen = []

        def verified(self, snapshot):
            self.seen.append((snapshot.iteration, snapshot.norm[0], snapshot.true_norm[0]))

    cycles = Cycles()
    made = wl.solvers.Gmres(wl.Csr(poisson(8), executor=on), restart=5, rtol=1e-6)
    result = made.solve(np.arange(64.0), loggers=[cycles])
    assert [i for i, _, _ in cycles.seen[:-1]] == list(range(5, result.iterations, 5))
    for _, implicit, true in cycles.seen:
        assert true == pytest.approx(implicit, rel=1e-5)
    assert cycles.seen[-1][2] == result.residual_norm


def test_a_stream_tells_both_residuals():
    told = io.StringIO()
    logger = Stream(told, every=2, true_residual=True)
    wl.solvers.Cg(wl.Csr(poisson(6), executor="reference")).solve(np.ones(36), loggers=[logger])
    text = told.getvalue()
    assert "iteration 2: residual norm" in text and ", true residual norm" in text
    assert "cycle ended, true residual norm" in text


def test_loggers_of_different_periods_each_see_their_iterations(on):
    often, seldom = History(every=3), History(every=4)
    A = wl.Csr(poisson(12), executor=on)
    result = wl.solvers.Cg(A, rtol=1e-8).solve(np.arange(144.0), loggers=[often, seldom])
    for history in (often, seldom):
        seen = [snapshot.iteration for snapshot in history.snapshots]
        assert seen == list(range(0, result.iterations + 1, history.every))


@pytest.mark.parametrize("method", ["Lsqr", "Lsmr"])
@pytest.mark.parametrize("damp", [0.0, 0.5])
def test_least_squares_are_watched_too(on, rng, method, damp):
    S = sp.random_array((60, 20), density=0.3, rng=rng) + sp.eye_array(60, 20)
    A, B = wl.Csr(sp.csr_array(S), executor=on), rng.standard_normal((60, 2))
    made = getattr(wl.solvers, method)(A, damp=damp, atol=1e-10, btol=1e-10)
    counts, history = Counts(), History(every=3)
    plain = made.solve(B)
    result = made.solve(B, loggers=[counts, history])
    np.testing.assert_allclose(result.x, plain.x, rtol=1e-12)
    np.testing.assert_array_equal(result.column_iterations, plain.column_iterations)
    assert counts.applications["A"] > result.iterations
    assert counts.applications["AH"] > result.iterations
    first, *looks = history.snapshots
    assert first.iteration == 0
    np.testing.assert_allclose(first.norm, result.residuals[0], rtol=1e-12)
    np.testing.assert_allclose(first.true_norm, first.norm, rtol=1e-12)
    assert [s.iteration for s in looks] == list(range(3, result.iterations + 1, 3))
    for snapshot in looks:
        # a column that waits for others, and then goes on, shows its last norm meanwhile
        for norm, column in zip(snapshot.norm, result.residuals.T, strict=True):
            assert np.isclose(column[: snapshot.iteration + 1], norm, rtol=1e-12, atol=0).any()
    assert made.solve(B).converged


def test_a_least_squares_solve_shows_its_progress(on):
    A = wl.Csr(np.diag([1.0, 2.0, 3.0]), executor=on)
    assert wl.solvers.Lsmr(A).solve(np.ones(3), progress=True).converged
    with pytest.raises(wl.errors.InvalidArgument, match="loggers"):
        wl.solvers.Lsmr(A).solve(np.ones(3), loggers=3)
