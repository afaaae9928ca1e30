"""By which clock calls are timed: the host's, or a device's."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]
Wait = Callable[[], None]


class Clock(ABC):
    """Something that times a batch of calls.

    Attributes
    ----------
    method : str
        Its name in records.
    """

    method: str

    @abstractmethod
    def batch(self, call: Call, synchronize: Wait, calls: int) -> float:
        """Return the seconds per call of ``calls`` calls; all work is done when it returns."""


class Wall(Clock):
    """The host's clock around calls and the wait for the last one."""

    method = "wall"

    def batch(self, call: Call, synchronize: Wait, calls: int) -> float:
        """Return the seconds per call."""
        start = time.perf_counter()
        for _ in range(calls):
            call()
        synchronize()
        return (time.perf_counter() - start) / calls


class Told(Clock):
    """Times that calls report themselves: processes that time their own work."""

    method = "told"

    def batch(self, call: Call, synchronize: Wait, calls: int) -> float:
        """Return the mean of the seconds that calls return."""
        return float(sum(call() for _ in range(calls)) / calls)


class Events(Clock):
    """Events of a CUDA or HIP device around calls back to back, on CuPy's current stream."""

    method = "events"

    def batch(self, call: Call, synchronize: Wait, calls: int) -> float:
        """Return the seconds per call between two events."""
        import cupy

        def work() -> None:
            for _ in range(calls):
                call()

        seconds = between_events(cupy.cuda, work)
        synchronize()
        return seconds / calls


def between_events(cuda: Any, work: Call) -> float:
    """Return the device's seconds for the work that ``work`` submits."""
    begin, end = cuda.Event(), cuda.Event()
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(cuda.get_elapsed_time(begin, end)) * 1e-3


class Graph(Clock):
    """Events around replays of captured graphs: the device's time, without launches by Python.

    Parameters
    ----------
    one, many : callable
        Replay a call, and ``CALLS`` of them.
    """

    method = "graph"

    #: A replay costs some microseconds, so that several calls are in one.
    CALLS = 20

    def __init__(self, one: Call, many: Call) -> None:
        self._one, self._many = one, many

    def batch(self, call: Call, synchronize: Wait, calls: int) -> float:
        """Return the seconds per call of replays; more calls may be made than asked for."""
        import cupy

        replay, each = (self._one, 1) if calls == 1 else (self._many, self.CALLS)
        replays = -(-calls // each)

        def work() -> None:
            for _ in range(replays):
                replay()

        seconds = between_events(cupy.cuda, work)
        synchronize()
        return seconds / (replays * each)


#: Takes a call and a number, and returns a function that replays this number of calls; raises the
#: error of a failed capture.
Capture = Callable[[Call, int], Call]


def capture_by_cupy(call: Call, calls: int) -> Call:
    """Capture calls that launch on CuPy's current stream.

    Their allocations come from a pool of their own: blocks of the common pool would have another
    owner when the graph is replayed. Earlier work on the current stream is done before.
    """
    import cupy

    pool = cupy.cuda.MemoryPool()
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.wait_event(cupy.cuda.get_current_stream().record())
    with cupy.cuda.using_allocator(pool.malloc), stream:
        call()
        stream.synchronize()
        stream.begin_capture()
        try:
            for _ in range(calls):
                call()
        finally:
            graph = stream.end_capture()

    def replay(keep: Any = pool) -> None:
        graph.launch()

    return replay


def capture_by_torch(call: Call, calls: int) -> Call:
    """Capture calls of PyTorch."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    replay: Call = graph.replay
    return replay


def clock_of(call: Call, *, gpu: bool, capture: Capture | None) -> Clock:
    """Return the clock that fits a call: on a GPU replays where they are possible."""
    if not gpu:
        return Wall()
    if capture is None:
        return Events()
    try:
        return Graph(capture(call, 1), capture(call, Graph.CALLS))
    # each library has errors of its own for a failed capture
    except Exception:
        return Events()
