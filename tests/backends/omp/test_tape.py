"""Recording and replay: an iteration that runs without Python."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.omp.kernels import kernel
from wollemi.backends.omp.level import native
from wollemi.core.operation import Operation, parse_signature
from wollemi.core.operations import structure, vector

EXECUTOR = wl.executor("omp:2")


def column(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values)[:, None]


def ones(rows: int) -> np.ndarray[Any, Any]:
    return np.ones((rows, 1))


def recorded(body: Any) -> Any:
    tape = native().Tape(EXECUTOR._context)
    tape.record(body)
    return tape


RUNNING = np.ones(1, np.int32)


def test_recording_runs_nothing() -> None:
    x, y = ones(3), ones(3)
    tape = recorded(lambda: EXECUTOR.run(vector.axpby, x, y, 2.0, 1.0))
    assert len(tape) == 1
    np.testing.assert_array_equal(y, ones(3))


def test_a_replay_runs_the_steps_in_order_again_and_again() -> None:
    x, y = column(1.0), column(0.0)

    def body() -> None:
        EXECUTOR.run(vector.axpby, x, y, 1.0, 1.0)  # y += x
        EXECUTOR.run(vector.axpby, y, x, 1.0, 0.0)  # x = y

    assert recorded(body).run(RUNNING, 4) == 4
    assert y[0, 0] == 8.0  # 1, 2, 4, 8


def test_a_replay_ends_when_nothing_runs_any_more() -> None:
    solve = wl.solvers.Cg(wl.Csr(np.diag([1.0, 2.0, 3.0]), executor=EXECUTOR))
    result = solve.solve(np.ones(3))
    assert result.iterations == 3


def test_a_tape_keeps_what_it_points_into() -> None:
    class Tracked(np.ndarray):
        pass

    y = ones(100)
    own = [ones(100).view(Tracked)]
    gone = weakref.ref(own[0])
    tape = recorded(lambda: EXECUTOR.run(vector.axpby, own[0], y, 1.0, 1.0))
    own.clear()
    gc.collect()
    assert gone() is not None
    tape.run(RUNNING, 1)
    np.testing.assert_array_equal(y, 2 * ones(100))
    del tape
    gc.collect()
    assert gone() is None


def test_an_error_while_recording_ends_the_recording() -> None:
    def body() -> None:
        raise ValueError("from the body")

    with pytest.raises(ValueError, match="from the body"):
        recorded(body)
    assert not native().recording()


def test_a_recording_within_a_recording_is_refused() -> None:
    with pytest.raises(RuntimeError, match="recorded already"):
        recorded(lambda: recorded(lambda: None))


def test_what_returns_new_arrays_is_refused() -> None:
    A = wl.Csr(np.eye(3), executor=EXECUTOR)
    with pytest.raises(RuntimeError, match=r"csr\.transpose returns new arrays"):
        recorded(lambda: EXECUTOR.run(structure.csr_transpose, A))


def test_a_copy_by_the_host_is_refused() -> None:
    x = ones(3)
    with pytest.raises(RuntimeError, match=r"run vector\.axpby instead"):
        recorded(lambda: EXECUTOR.copy_into(x, ones(3)))


def test_other_python_threads_are_not_recorded() -> None:
    x, y = ones(3), ones(3)

    def body() -> None:
        other = threading.Thread(target=EXECUTOR.run, args=(vector.axpby, x, y, 2.0, 1.0))
        other.start()
        other.join()

    assert len(recorded(body)) == 0
    np.testing.assert_array_equal(y, 3 * ones(3))


def test_bad_arguments_are_named_while_recording() -> None:
    with pytest.raises(TypeError, match=r"vector\.axpby: y: expected 3 along axis 0"):
        recorded(lambda: EXECUTOR.run(vector.axpby, ones(3), ones(4), 1.0, 1.0))


def test_a_kernel_written_in_python_is_called_by_every_replay() -> None:
    double = Operation("test.double", parse_signature("x: inout T[n,k]"), "x *= 2", lambda e: 0)

    @kernel(double)
    def run_double(executor: wl.Executor, x: Any) -> None:
        x *= 2

    x, y = ones(3), ones(3)

    def body() -> None:
        EXECUTOR.run(double, x)
        EXECUTOR.run(vector.axpby, x, y, 1.0, 1.0)

    tape = recorded(body)
    np.testing.assert_array_equal(x, ones(3))
    assert tape.run(RUNNING, 3) == 3
    np.testing.assert_array_equal(x, 8 * ones(3))
    np.testing.assert_array_equal(y, (1 + 2 + 4 + 8) * ones(3))


def test_an_error_in_a_replayed_kernel_ends_the_replay() -> None:
    broken = Operation("test.broken", parse_signature("x: inout T[n,k]"), "", lambda e: 0)

    @kernel(broken)
    def run_broken(executor: wl.Executor, x: Any) -> None:
        raise ValueError("from the kernel")

    tape = recorded(lambda: EXECUTOR.run(broken, ones(1)))
    with pytest.raises(ValueError, match="from the kernel"):
        tape.run(RUNNING, 3)


def test_ctrl_c_ends_a_replay() -> None:
    x, y = ones(10), ones(10)
    tape = recorded(lambda: EXECUTOR.run(vector.axpby, x, y, 0.0, 1.0))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        tape.run(RUNNING, 10**12)
    timer.join()
    assert time.perf_counter() - start < 5.0


def test_python_runs_while_a_replay_does() -> None:
    x, y = ones(10), ones(10)
    running = np.ones(1, np.int32)
    tape = recorded(lambda: EXECUTOR.run(vector.axpby, x, y, 1.0, 1.0))
    y[...] = 1

    def stop() -> None:
        while y[0, 0] == 1:  # until the first iteration is done
            time.sleep(0.001)
        running[0] = 0

    stopper = threading.Thread(target=stop)
    stopper.start()
    done = tape.run(running, 10**12)
    stopper.join()
    assert 0 < done < 10**12


def test_an_iteration_is_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    solve = wl.solvers.Cg(wl.Csr(np.diag(np.arange(1.0, 9.0)), executor=EXECUTOR))
    iterate = solve.iterate

    def counted(work: Any) -> None:
        calls.append(1)
        iterate(work)

    monkeypatch.setattr(solve, "iterate", counted)
    first, second = solve.solve(np.ones(8)), solve.solve(np.ones(8))
    assert len(calls) == 1
    assert first.iterations == second.iterations == 8


def test_a_profiler_sees_every_operation_of_an_iteration() -> None:
    A = wl.Csr(np.diag(np.arange(1.0, 9.0)), executor=EXECUTOR)
    with wl.profile() as seen:
        wl.solvers.Cg(A).solve(np.ones(8))
    assert seen["cg.update"].calls == 8
