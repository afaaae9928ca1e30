"""Loops on the device: the captured launches and their order, with a fake driver."""

from __future__ import annotations

import gc
import weakref
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.loop import loop, schedule
from wollemi.backends.cuda.runtime import executor as of_cuda
from wollemi.backends.cuda.runtime import graphs
from wollemi.backends.gpu import tape
from wollemi.backends.gpu.spmv import packed
from wollemi.core.distributed.threads import Deserted
from wollemi.core.errors import CaptureRefused, DeviceError
from wollemi.core.iteration import Cycles, Iteration, Replay
from wollemi.core.operations import matrix
from wollemi.core.program import Call, Program
from wollemi.core.step import Steps, dot

from ...recorded import FAKE, recorded, recorded_solver
from .fake_cuda import fake_csr, vectors


class FakeRuntime:
    """The calls of cuda.bindings.runtime that graphs take, written down."""

    cudaStreamCaptureMode = SimpleNamespace(cudaStreamCaptureModeRelaxed="relaxed")
    cudaGraphNodeType = SimpleNamespace(cudaGraphNodeTypeConditional="conditional")
    cudaGraphConditionalNodeType = SimpleNamespace(cudaGraphCondTypeWhile="while")

    def __init__(self, log: list[Any], fails: str = "") -> None:
        self.log, self.fails = log, fails

    def cudaGraphNodeParams(self) -> Any:
        return SimpleNamespace(
            type=None,
            conditional=SimpleNamespace(handle=None, type=None, size=0, phGraph_out=["body"]),
        )

    def cudaGetErrorString(self, code: Any) -> Any:
        return 0, b"as the test wants it"

    def __getattr__(self, name: str) -> Any:
        answers = {
            "cudaGraphCreate": ["outer"],
            "cudaGraphConditionalHandleCreate": [77],
            "cudaGraphGetNodes": [["first node"], 1],
            "cudaGraphAddNode": ["loop node"],
            "cudaStreamEndCapture": ["graph"],
            "cudaGraphInstantiate": ["executable"],
        }

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.log.append((name, *arguments))
            code = FakeCode(1 if name == self.fails else 0)
            return (code, *answers.get(name, []))

        return call


class FakeCode(int):
    name = "cudaErrorOfTheTest"


class FakeStream:
    def __init__(self, log: list[Any], name: str) -> None:
        self.log, self.ptr = log, name

    def __enter__(self) -> None:
        self.log.append(("enter", self.ptr))

    def __exit__(self, *reason: object) -> None:
        self.log.append(("exit", self.ptr))

    def wait_event(self, event: Any) -> None:
        self.log.append(("wait", self.ptr, event.of))


class FakeEvent:
    of: Any = None

    def record(self, stream: FakeStream) -> None:
        self.of = stream.ptr


def fake_executor(log: list[Any]) -> Any:
    names = iter(("main", "side"))
    cuda = SimpleNamespace(
        Stream=lambda non_blocking: FakeStream(log, next(names)),
        Event=lambda disable_timing: FakeEvent(),
        MemoryPool=lambda: SimpleNamespace(malloc="own memory"),
        using_allocator=nullcontext,
    )
    device = SimpleNamespace(cache_bytes=60 << 20, multiprocessors=132)
    return SimpleNamespace(xp=SimpleNamespace(cuda=cuda), device=device, own_capture=nullcontext)


@contextmanager
def driver(monkeypatch: pytest.MonkeyPatch, fails: str = ""):
    log: list[Any] = []
    runtime = FakeRuntime(log, fails)
    monkeypatch.setattr(graphs, "runtime", lambda: runtime)
    yield log, fake_executor(log)


def calls(log: list[Any], *names: str) -> list[Any]:
    return [entry for entry in log if entry[0] in names]


def test_a_loop_hangs_on_the_part_that_sets_its_condition_first(monkeypatch):
    with driver(monkeypatch) as (log, executor):
        builder = graphs.GraphBuilder(executor)
        condition = builder.condition()
        builder.part(lambda: log.append(("begin",)))
        builder.repeat(condition, lambda: builder.part(lambda: log.append(("iteration",))))
        assert builder.finish() == "executable"
    added = calls(log, "cudaGraphAddNode")[0]
    assert added[1:5] == ("outer", ["first node"], None, 1)
    assert added[5].conditional.type == "while"
    assert added[5].conditional.handle == 77
    captured = [entry[2] for entry in calls(log, "cudaStreamBeginCaptureToGraph")]
    assert captured == ["outer", "body"]
    names = ("begin", "iteration", "cudaGraphInstantiate")
    assert calls(log, *names)[:2] == [("begin",), ("iteration",)]
    assert calls(log, *names)[2][0] == "cudaGraphInstantiate"


def test_loops_may_be_within_loops_and_what_follows_waits_for_them(monkeypatch):
    with driver(monkeypatch) as (log, executor):
        builder = graphs.GraphBuilder(executor)
        outer = builder.condition()

        def parts() -> None:
            inner = builder.condition()
            builder.part(lambda: None)
            builder.repeat(inner, lambda: builder.part(lambda: None))
            builder.part(lambda: None)

        builder.part(lambda: None)
        builder.repeat(outer, parts)
        builder.part(lambda: None)
    created = [entry[1] for entry in calls(log, "cudaGraphConditionalHandleCreate")]
    assert created == ["outer", "body"]
    captured = [(entry[2], entry[3]) for entry in calls(log, "cudaStreamBeginCaptureToGraph")]
    assert captured == [
        ("outer", None),
        ("body", None),
        ("body", None),
        ("body", ["loop node"]),
        ("outer", ["loop node"]),
    ]


def test_what_is_captured_beside_the_rest_is_joined_at_the_end(monkeypatch):
    with driver(monkeypatch) as (log, executor):
        builder = graphs.GraphBuilder(executor)

        def part() -> None:
            log.append(("update",))
            with builder.beside(lambda: log.append(("condition",))):
                log.append(("direction",))

        builder.part(part)
    names = ("update", "condition", "direction", "wait")
    assert calls(log, *names) == [
        ("update",),
        ("wait", "side", "main"),
        ("condition",),
        ("direction",),
        ("wait", "main", "side"),
    ]


def test_a_capture_that_fails_is_ended_and_told(monkeypatch):
    with driver(monkeypatch) as (log, executor):
        builder = graphs.GraphBuilder(executor)
        with pytest.raises(ZeroDivisionError):
            builder.part(lambda: 1 / 0)
        assert calls(log, "cudaStreamEndCapture")
        builder.discard()
        builder.discard()
        assert len(calls(log, "cudaGraphDestroy")) == 1


def test_nothing_is_given_back_while_a_group_is_at_work(monkeypatch):
    with driver(monkeypatch) as (log, executor):
        builder = graphs.GraphBuilder(executor)
        builder.part(lambda: None)
        builder.finish()
        graphs.unused.begin_member()
        graphs.unused.begin_member()
        thing = FakeStream(log, "dropped")
        dropped = weakref.ref(thing)
        builder.discard()
        graphs.unused.keep(thing)
        del thing
        assert not gc.isenabled()
        graphs.unused.end_member(True)
        destroyed = ("cudaGraphExecDestroy", "cudaGraphDestroy")
        assert not calls(log, *destroyed)
        assert dropped() is not None
        graphs.unused.end_member(True)
        assert gc.isenabled()
        assert dropped() is None
        assert sorted(calls(log, *destroyed)) == [
            ("cudaGraphDestroy", "outer"),
            ("cudaGraphExecDestroy", "executable"),
        ]


def test_nothing_is_given_back_while_a_graph_is_captured(monkeypatch):
    given_back = []
    monkeypatch.setattr(graphs, "unused", graphs._Unused())
    with driver(monkeypatch) as (log, executor):
        executor.own_capture = graphs.unused.kept_while_capturing
        builder = graphs.GraphBuilder(executor)

        def launches():
            graphs.unused.add(lambda: given_back.append(len(calls(log, "cudaStreamEndCapture"))))
            assert not given_back
            assert not gc.isenabled()

        builder.part(launches)
        assert given_back == [1]  # the stream is captured no more
        assert gc.isenabled()
        with pytest.raises(ZeroDivisionError):
            builder.part(lambda: 1 / 0)
        assert gc.isenabled()
        graphs.unused.postpone(given_back.append, "later")
        assert given_back == [1]
        graphs.unused.keep()
        assert given_back == [1, "later"]


@pytest.mark.parametrize("stops_after", [None, 40])
def test_a_group_looks_for_ctrl_c_between_cycles(stops_after):
    did: list[Any] = []
    status = SimpleNamespace(running=[2], shape=(2,))

    def run(limit):
        did.append(limit)
        if stops_after is not None and sum(n for n in did if isinstance(n, int)) >= stops_after:
            status.running[0] = 1

    class Device(of_cuda.CudaExecutor):
        links = SimpleNamespace(
            alone=False, on_device=True, graph_runs=False, all=lambda _: None,
            await_graph=lambda: did.append("waited"), check=lambda: did.append("looked"),
        )  # fmt: skip

        def __init__(self) -> None:
            pass

        def _here(self, work, nbytes=0):
            return nullcontext()

        def to_host(self, array):
            return array

    iteration = SimpleNamespace(status=status)
    cycles = SimpleNamespace(
        resident=True, iteration=iteration, length=6, program=SimpleNamespace(run=run)
    )
    device = Device()
    assert device.drive_cycles(cycles, 50)
    assert device.links.graph_runs
    ran = [21, 21] if stops_after else [21, 21, 8]  # 128 iterations between two looks
    assert [n for n in did if isinstance(n, int)] == ran
    assert did.count("waited") == len(ran) + 1  # for the kernels before, too
    assert did.count("looked") == len(ran) - bool(stops_after)


@pytest.mark.parametrize("other_fails", [False, True])
def test_a_member_has_a_program_once_all_have(other_fails, monkeypatch):
    """A member with a program that another one lacks would wait for it, which waits in turn."""
    made = SimpleNamespace(run=lambda *limit: None)

    def meet(thing):
        if other_fails:
            raise Deserted("on purpose")
        return [thing, thing]

    class Device(of_cuda.CudaExecutor):
        observed = False
        links: Any = SimpleNamespace(
            alone=False, on_device=True, graph_runs=False, all=meet, await_graph=lambda: None,
            check=lambda: None,
        )  # fmt: skip

        def __init__(self) -> None:
            pass

        def _here(self, work, nbytes=0):
            return nullcontext()

        def _guarded(self, work, nbytes, function, *operands):
            return function(*operands)

        def to_host(self, array):
            return array

        def record(self, body):
            return None

    device = Device()
    replay, iteration = Replay(lambda: None, program=True), Iteration(lambda: None, Any)
    iteration.status = SimpleNamespace(running=[1])
    cycles = Cycles(replay, iteration, replay, 6)
    monkeypatch.setattr(of_cuda, "Played", lambda *given: made)
    monkeypatch.setattr(loop, "Restarts", lambda *given: made)
    monkeypatch.setattr(loop, "make_program", lambda *given: made)
    ways = [
        lambda: device.play(replay),
        lambda: device._drive(iteration, 4),
        lambda: device.drive_cycles(cycles, 1),
    ]
    for way in ways:
        with pytest.raises(Deserted) if other_fails else nullcontext():
            way()
    expected = [True, None, None] if other_fails else [made] * 3
    assert [replay.program, iteration.program, cycles.program] == expected


def test_memory_of_a_library_is_freed_after_the_capture_of_a_user(monkeypatch):
    freed, captured, unused = [], [True], graphs._Unused()
    monkeypatch.setattr(of_cuda, "unused", unused)

    class Device(of_cuda.CudaExecutor):
        def __init__(self) -> None:
            pass

        def refuse_host(self, reason):
            if captured[0]:
                raise CaptureRefused(reason)

        def _guarded(self, work, nbytes, function, *operands):
            return function(*operands)

    Device().give_back("the memory of a test", lambda: freed.append(1))
    unused.keep()  # any resource that is given back meanwhile
    assert not freed
    captured[0] = False
    unused.keep()
    assert freed == [1]


def test_what_a_lost_member_may_use_is_never_given_back():
    unused = graphs._Unused()
    given_back = []
    unused.begin_member()
    unused.begin_member()
    unused.add(given_back.append, 1)
    unused.end_member(True)
    unused.end_member(False)
    assert gc.isenabled()
    unused.add(given_back.append, 2)
    assert not given_back


def test_what_the_driver_refuses_is_a_device_error(monkeypatch):
    with driver(monkeypatch, fails="cudaGraphInstantiate") as (_, executor):
        builder = graphs.GraphBuilder(executor)
        builder.part(lambda: None)
        with pytest.raises(DeviceError, match="cudaErrorOfTheTest: as the test wants it"):
            builder.finish()


def fits(calls: Any) -> bool:
    phases = schedule.phases_of(tape.steps_of(calls))
    return phases is not None and loop.fits_one_kernel(fake_executor([]), calls, phases)


def test_small_systems_of_one_column_fit_one_kernel():
    assert fits(recorded("Cg", rows=1000))
    assert fits(recorded("Bicgstab", rows=1000))


def test_a_sum_that_no_mailbox_holds_is_left_to_a_graph():
    step = Steps("many", vectors="x r", scalars="a b c d e", status=True)

    @step
    def many(w):
        """Set five sums."""
        w.a, w.b, w.c = dot(w.x, w.r), dot(w.r, w.x), dot(w.r, w.r)
        w.d, w.e = dot(w.x, w.x), dot(w.x, w.x + w.r)

    class Many(wl.solvers.KrylovSolver):
        def allocate(self, work):
            work.make(step)

        def initialize(self, work):
            pass

        def iterate(self, work):
            work.A._apply(work.x, work.r, 1.0, 0.0)
            many(work)

    assert not fits(recorded_solver(Many, rows=1000))


def test_large_systems_and_several_columns_do_not():
    assert not fits(recorded("Cg", rows=10**6))
    assert not fits(recorded("Cg", rows=1000, columns=2))


def test_rows_must_stay_with_their_work_items():
    state = packed.Packed.__new__(packed.Packed)
    state.target = object()
    A, (x, y) = fake_csr(1000, kernel="sell", state=state), vectors(2, 1000)
    assert not fits(Program(FAKE, [Call(matrix.csr_spmv, (A, x, y, 1.0, 0.0))]))


def test_long_rows_do_not_fit_one_work_item():
    calls = recorded("Cg", rows=1000)
    calls[0][1][0].plan.statistics = SimpleNamespace(longest=1000)
    assert not fits(calls)


def test_values_that_are_stored_in_another_dtype_are_left_to_a_graph():
    calls = recorded("Cg", rows=1000)
    assert fits(calls)
    calls[0][1][0].data.dtype = np.dtype("float32")
    assert not fits(calls)


def test_a_matrix_counts_once_however_often_it_is_applied():
    rows = (60 << 20) // 3 // 84  # a third of the cache: twice would not fit with the vectors
    assert fits(recorded("Bicgstab", rows=rows))


def test_the_basis_of_gmres_need_not_fit_the_cache():
    assert fits(recorded("Gmres", rows=64**3))
    assert not fits(recorded("Gmres", rows=64**3, restart=199))
    assert not fits(recorded("Gmres", rows=128**3))


def test_rows_that_work_items_cannot_keep_are_left_to_a_graph():
    assert not fits(recorded("Gmres", rows=8 * 1024 * 132 + 1))
