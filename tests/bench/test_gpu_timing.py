"""Clocks, memory and peers of a GPU, over modules that look like CuPy and PyTorch."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from wollemi_bench import case, ml, spmv
from wollemi_bench.clocks import Events, Graph, Wall, capture_by_cupy, capture_by_torch, clock_of
from wollemi_bench.flush import GpuFlush
from wollemi_bench.memory import PoolMeter, TorchMeter
from wollemi_bench.peers import Absent, SolveCase
from wollemi_bench.peers_gpu import CuPy, Jax, TorchGpu, Warp
from wollemi_bench.problem import Library
from wollemi_bench.runner import Runner


class FakeGpu:
    """A device on which every call takes a millisecond by its own clock."""

    def __init__(self, *, capturable=True):
        self.now, self.launched, self.capturing, self.capturable = 0.0, 0, False, capturable
        self.taken = 0

    def call(self):
        if self.capturing and not self.capturable:
            raise RuntimeError("cannot be captured")
        if self.capturing:
            self.captured += 1
        else:
            self.now, self.launched = self.now + 1.0, self.launched + 1
        return np.ones(3)

    def stream(self, non_blocking=False):
        gpu = self

        class Stream:
            __enter__ = lambda self: self  # noqa: E731
            __exit__ = lambda self, *_: None  # noqa: E731

            def begin_capture(self):
                gpu.capturing, gpu.captured = True, 0

            def end_capture(self):
                gpu.capturing = False
                calls = gpu.captured

                def launch():
                    gpu.now += float(calls)

                return SimpleNamespace(launch=launch)

            def synchronize(self):
                pass

            def record(self):
                return gpu.event()

            def wait_event(self, event):
                pass

        return Stream()

    def event(self):
        event = SimpleNamespace(at=None, synchronize=lambda: None)
        event.record = lambda: setattr(event, "at", self.now)
        return event

    def cupy(self):
        pool = SimpleNamespace(total_bytes=lambda: self.taken, free_all_blocks=lambda: None)
        return SimpleNamespace(
            cuda=SimpleNamespace(
                Event=self.event,
                Stream=self.stream,
                MemoryPool=lambda: SimpleNamespace(malloc=None),
                using_allocator=lambda _: nullcontext(),
                get_elapsed_time=lambda begin, end: end.at - begin.at,
                get_current_stream=self.stream,
                Device=lambda: SimpleNamespace(attributes={"L2CacheSize": 1000}),
            ),
            get_default_memory_pool=lambda: pool,
            empty=np.empty,
            uint8=np.uint8,
        )


@pytest.fixture
def gpu(monkeypatch):
    one = FakeGpu()
    monkeypatch.setitem(sys.modules, "cupy", one.cupy())
    return one


def test_events_time_a_batch_by_the_device(gpu):
    assert Events().batch(gpu.call, lambda: None, 4) == pytest.approx(1e-3)
    assert gpu.launched == 4


def test_a_graph_is_replayed_and_nothing_is_launched(gpu):
    clock = clock_of(gpu.call, gpu=True, capture=capture_by_cupy)
    assert isinstance(clock, Graph)
    before = gpu.launched
    assert clock.batch(gpu.call, lambda: None, 50) == pytest.approx(1e-3)
    assert clock.batch(gpu.call, lambda: None, 1) == pytest.approx(1e-3)
    assert gpu.launched == before


def test_what_cannot_be_captured_is_timed_by_events(gpu):
    gpu.capturable = False
    clock = clock_of(gpu.call, gpu=True, capture=capture_by_cupy)
    assert isinstance(clock, Events)
    assert clock.batch(gpu.call, lambda: None, 3) == pytest.approx(1e-3)


def test_without_capture_there_are_events_and_without_gpu_the_hosts_clock():
    assert isinstance(clock_of(lambda: None, gpu=True, capture=None), Events)
    assert isinstance(clock_of(lambda: None, gpu=False, capture=capture_by_cupy), Wall)


def test_torch_captures_in_its_own_way(monkeypatch):
    calls = []

    class CUDAGraph:
        def replay(self):
            calls.append("replay")

    cuda = SimpleNamespace(
        Stream=lambda: SimpleNamespace(wait_stream=lambda _: None),
        current_stream=lambda: SimpleNamespace(wait_stream=lambda _: None),
        stream=lambda _: nullcontext(),
        graph=lambda _: nullcontext(),
        CUDAGraph=CUDAGraph,
        reset_peak_memory_stats=lambda: None,
        memory_allocated=lambda: 100,
        max_memory_allocated=lambda: 350,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    replay = capture_by_torch(lambda: calls.append("call"), 3)
    replay()
    assert calls == ["call"] * 4 + ["replay"]
    meter = TorchMeter()
    meter.reset()
    assert meter.peak() == 250


def test_a_pool_is_seen_to_grow(gpu):
    meter = PoolMeter()
    gpu.taken = 100
    meter.reset()
    gpu.taken = 400
    assert meter.peak() == 300


def test_a_flush_of_the_device_writes_more_than_its_cache(gpu):
    flush = GpuFlush()
    flush()
    assert flush._memory.size == 3000 and np.all(flush._memory == 1)


class OneCall(spmv.Product):
    """A problem with a call of the fake device as its only contender."""

    def __init__(self, gpu):
        super().__init__(case("stencil5:3").matrix())
        self.gpu = gpu

    def offers(self, library):
        from wollemi_bench.problem import Offer, OfferFacts

        self.gpu.taken += 1000  # the operands are placed

        def make():
            self.gpu.taken += 10  # a workspace is taken
            return self.gpu.call

        return [Offer("one", make, wrong=lambda _: "", facts=OfferFacts, capture=capture_by_cupy)]


def test_a_station_of_a_gpu_replays_and_counts_its_memory(gpu):
    runner = Runner()
    runner.load(OneCall(gpu))
    (ready,) = runner.prepare(Library("one", executor=object(), gpu=True))
    assert (ready.trouble, ready.facts.method) == ("", "graph")
    assert ready.facts.peak_memory == 1010
    assert runner.batch("one", 40, True, False) == pytest.approx(1e-3)
    assert runner.batch("one", 2, False, True) == pytest.approx(1e-3)


# ---- peers


def test_cupy_multiplies_into_one_array(gpu, monkeypatch):
    module = sys.modules["cupy"]
    module.asarray, module.zeros, module.asfortranarray = np.asarray, np.zeros, np.asfortranarray
    module.matmul = np.matmul

    def product(A, x, y=None, alpha=1.0, beta=0.0):
        y[...] = A @ x
        return y

    sparse = SimpleNamespace(csr_matrix=lambda S: S)
    cusparse = SimpleNamespace(spmv=product, spmm=lambda A, B: A @ B)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(cusparse=cusparse))
    monkeypatch.setitem(sys.modules, "cupyx.scipy", SimpleNamespace(sparse=sparse))
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", sparse)
    sys.modules["cupyx"].scipy = sys.modules["cupyx.scipy"]
    problem = spmv.Product(case("circuit:60").matrix())
    assert problem.wrong(CuPy().spmv(problem.S, problem.x)()) == ""
    dense = ml.Dense("spmm", case("pruned:9,8,60").matrix("float32"), 3)
    calls = CuPy().ml("spmm", dense.S, dense.operands)
    assert calls.keys() == {"cupy", "dense (cupy)"}
    assert all(dense.wrong(call()) == "" for call in calls.values())
    half = ml.Dense("spmm", case("pruned:9,8,60").matrix("float32"), 3, dtype="float16")
    assert CuPy().ml("spmm", half.S, half.operands).keys() == {"dense (cupy)"}
    with pytest.raises(Absent, match="has no sddmm"):
        CuPy().ml("sddmm", dense.S, dense.operands)
    CuPy().synchronize()
    assert np.array_equal(CuPy().to_host(SimpleNamespace(get=lambda: np.ones(2))), np.ones(2))
    assert isinstance(CuPy().meter(), PoolMeter)
    assert isinstance(TorchGpu().meter(), TorchMeter)


@pytest.mark.parametrize("keyword", ["tol", "rtol"])
def test_cupys_solvers_are_called_as_each_version_wants_it(gpu, monkeypatch, keyword):
    given = {}

    def before_14(A, b, tol=1e-5, maxiter=None, restart=None):
        given.update(maxiter=maxiter, restart=restart, stop=tol)
        return b, 0

    def from_14_on(A, b, rtol=1e-5, maxiter=None, restart=None):
        return before_14(A, b, rtol, maxiter, restart)

    function = {"tol": before_14, "rtol": from_14_on}[keyword]
    module = sys.modules["cupy"]
    module.asarray = np.asarray
    linalg = SimpleNamespace(cg=function, gmres=function)
    sparse = SimpleNamespace(csr_matrix=lambda S: S, linalg=linalg)
    scipy = SimpleNamespace(sparse=sparse)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(scipy=scipy))
    monkeypatch.setitem(sys.modules, "cupyx.scipy", scipy)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", sparse)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse.linalg", linalg)
    S = case("stencil5:3").matrix()
    CuPy().solve(SolveCase("gmres", S, np.ones(9), 60, 30))()
    assert given == {"maxiter": 60, "restart": 30, "stop": 0.0}
    with pytest.raises(Absent, match="has no bicgstab"):
        CuPy().solve(SolveCase("bicgstab", S, np.ones(9), 60, 30))


def test_peers_without_their_devices_say_so(monkeypatch):
    S = case("stencil5:3").matrix()
    torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(Absent, match="sees no GPU"):
        TorchGpu().spmv(S, np.ones(9))
    jax = SimpleNamespace(default_backend=lambda: "cpu", experimental=SimpleNamespace(sparse=None))
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.experimental", jax.experimental)
    with pytest.raises(Absent, match="computes on cpu here"):
        Jax().spmv(S, np.ones(9))
    with pytest.raises(Absent, match=r"not installed|its SpMV"):
        Warp().version() and Warp().spmv(S, np.ones(9))
