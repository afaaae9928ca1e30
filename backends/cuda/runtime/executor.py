"""The executor of NVIDIA GPUs, on CuPy."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import DTypeLike

from ....core.capture import COPIES, FROM_HOST, TO_HOST, recorded_call, refused
from ....core.energy import EnergyCounter
from ....core.exchange import Exchange
from ....core.executor import Array, Executor
from ....core.iteration import Cycles, Iteration, Replay
from ....core.links import Links, drive_alone, works_alone
from ....core.operations import products
from ....core.program import prepare_parts, record
from ...gpu.base import FREE, OWN, GpuExecutor, PerThread
from ...gpu.function import address_of
from ...gpu.scratch import Scratch
from ..table import algorithms, kernel
from . import later, nccl
from .availability import require
from .capture import Capture, CapturedStream, Captures, allowing_allocations
from .copies import CudaExchange, Span, padded, side_by_side, spans_of
from .device import CudaDevice, device
from .energy import counter_of
from .graphs import OwnMemory, unused

if TYPE_CHECKING:
    from ....core.distributed.ranks import RankLinks
    from ....core.operator import LinearOperator
    from ....core.recordable import RecordableLoop


Ts = TypeVarTuple("Ts")
R = TypeVar("R")

_KDLCUDA, _KDLCUDA_MANAGED = 2, 13

#: Iterations of a group between two looks for Ctrl-C, for which the members' hosts meet.
BETWEEN_CHECKS = 128


class _Pinned(threading.local):
    """Memory of the host that the device copies to without a detour, one piece for a thread."""

    memory: Any = None

    def bytes(self, xp: Any, nbytes: int) -> np.ndarray[Any, Any]:
        if self.memory is None or self.memory.mem.size < nbytes:
            self.memory = xp.cuda.alloc_pinned_memory(max(nbytes, 1 << 14))
        return np.frombuffer(self.memory, np.uint8, nbytes)


class _Uncaptured:
    """A block in which no capture can begin; a class, because a generator takes twice as long."""

    __slots__ = ("_mine",)

    def __init__(self, mine: PerThread) -> None:
        self._mine = mine

    def __enter__(self) -> None:
        self._mine.capture = FREE

    def __exit__(self, *reason: object) -> None:
        self._mine.capture = None


class Played:
    """Operations as a graph: one launch for all of their kernels."""

    def __init__(self, executor: CudaExecutor, replay: Replay) -> None:
        self.executor, self.scratch = executor, Scratch()
        self.graph: Any = None
        if not executor.record(replay.body):
            return
        with executor.preparing(self.scratch, dry=True):
            replay.body()
        stream = executor.xp.cuda.Stream(non_blocking=True)
        memory = OwnMemory(executor.xp.cuda)
        with (
            stream,
            executor.own_capture(),
            executor.preparing(self.scratch, dry=False),
            memory.used(),
        ):
            stream.begin_capture()
            try:
                replay.body()
            finally:
                self.graph = stream.end_capture()
        # Not at exit: CUDA is gone by then.
        weakref.finalize(self, unused.keep, self.graph, memory.pool).atexit = False

    def run(self) -> None:
        """Launch it."""
        if self.graph is not None:
            self.graph.launch(self.executor.xp.cuda.get_current_stream())


class CudaExecutor(GpuExecutor):
    """An NVIDIA GPU.

    Arrays are ``cupy.ndarray``, from CuPy's memory pool. Kernels go to CuPy's current stream;
    ``with executor:`` makes the device current and gives the block a stream of its own. This stream
    waits for earlier submissions, and later submissions wait for it.

    Parameters
    ----------
    device : int
        Its number, from 0.

    Notes
    -----
    A process that has used a GPU must not be forked: CUDA does not survive it. Use the ``spawn``
    start method of :mod:`multiprocessing`.

    Examples
    --------
    >>> import wollemi as wl
    >>> A = wl.Identity(3).to("cuda")  # doctest: +SKIP
    >>> A.executor  # doctest: +SKIP
    <CudaExecutor cuda:0>
    """

    kernels = kernel
    algorithms = algorithms
    constants_kind = "nvidia"
    vendor_libraries = frozenset({"cudss"})
    dlpack_kinds = (_KDLCUDA, _KDLCUDA_MANAGED)

    def __init__(self, device: int = 0) -> None:
        require(device)
        super().__init__(device)
        self._pinned, self._later = _Pinned(), later.Copies()
        self._captures = Captures(self.xp.cuda)
        self._captured = CapturedStream(self.xp.cuda, device)

    @cached_property
    def device(self) -> CudaDevice:
        """Facts and loaded kernels of the GPU."""
        return device(self.ordinal)

    # ---- captures of users

    def submit(self, name: str, kept: object, function: Callable[[*Ts], R], *operands: *Ts) -> R:
        """Call ``function(*operands)``; a capture of the current stream records its launches."""
        mine = self._mine
        if mine.capture is not None:
            return function(*operands)
        stream = self._captured.find()
        if stream is None:
            mine.capture = FREE
            try:
                return function(*operands)
            finally:
                mine.capture = None
        with self.on_stream(stream), allowing_allocations(), recorded_call(name):
            capture = self._captures.of(stream)
            capture.keep(kept)
            mine.capture = capture
            try:
                with self.xp.cuda.using_allocator(capture.pool.malloc):
                    if getattr(function, "__self__", None) is kept:
                        self._rehearse(kept, function, operands)
                    return function(*operands)
            finally:
                mine.capture = None

    def _rehearse(self, kept: Any, function: Callable[..., Any], arguments: Any) -> None:
        """Find out before anything is recorded whether a first call has made all that is kept.

        An operator may be several operations: they are written down, and none of them is launched.
        Of one with a user's function, which would be called, the matrices are asked alone.
        """
        if getattr(kept, "resident", True):
            for call in record(self, lambda: function(*arguments)):
                if call.operation is products.csr_spmm:
                    A, _, B, *_, kernel = call.arguments
                    A.plan_for("spmm", int(B.shape[2]), kernel, B.dtype)
                    continue
                for parameter, argument in call.named:
                    if parameter.is_matrix:
                        prepare_parts(argument)
        else:
            prepare_parts(kept)

    def refuse_capture(self, reason: str) -> None:
        """Raise CaptureRefused if work is captured that belongs to no call that can be recorded."""
        if self._mine.capture is None and self._captured.find() is not None:
            raise refused(reason)

    def refuse_host(self, reason: str) -> None:
        """Raise CaptureRefused if work is captured: the host does not take part in a replay."""
        capture = self._mine.capture
        if capture is OWN or capture is FREE:
            return
        if capture is not None or self._captured.find() is not None:
            raise refused(reason)

    def _is_captured(self) -> bool:
        """Return whether this thread's work is captured."""
        return self._captured.find() is not None

    def uncaptured(self) -> AbstractContextManager[None]:
        """Look for captures once, at the start of a block in which none can begin or end."""
        mine = self._mine
        if mine.capture is not None or self._captured.find() is not None:
            return nullcontext()
        return _Uncaptured(mine)

    def takes_function(self, operator: LinearOperator) -> bool:
        """Return whether loops hold the function of an operator; it is recorded once to find out.

        Raises
        ------
        InvalidArgument
            If the function cannot be recorded, or a replay gives other results than a call.
        """
        if operator.partition is not None:
            return False
        checked = self.name, operator.dtype.name
        if checked not in operator.recordable_on:
            from ..loop.functions import require_recordable

            require_recordable(self, operator)
            operator.recordable_on.add(checked)
        return True

    @property
    def captures_nothing(self) -> bool:
        """Whether this thread has looked for captures, and none has begun."""
        return self._mine.capture is FREE

    @property
    def makes_graph(self) -> bool:
        """Whether this thread captures a graph of this package."""
        return self._mine.capture is OWN

    @contextmanager
    def own_capture(self) -> Iterator[None]:
        """Let launches within belong to a graph that this package makes."""
        before, self._mine.capture = self._mine.capture, OWN
        try:
            yield
        finally:
            self._mine.capture = before

    def scratch(self, nbytes: int, counters: int = 1) -> tuple[int, int]:
        """Return the addresses of scratch memory and of counters, for the next launch.

        Repeated launches ask without :meth:`submit`, so that the stream is looked at.
        """
        mine = self._mine
        if mine.scratch is None and mine.capture is None:
            stream = self._captured.find()
            if stream is not None:
                with allowing_allocations():
                    capture = self._captures.of(stream)
                    with self.xp.cuda.using_allocator(capture.pool.malloc):
                        return capture.scratch(self.stream_address()).reserve(nbytes, counters)
        return super().scratch(nbytes, counters)

    def _scratch_of_stream(self) -> Scratch:
        """Return the memory that the launches on a stream share; a capture has its own."""
        capture = self._mine.capture
        if capture is None or capture is OWN or capture is FREE:
            return super()._scratch_of_stream()
        found: Scratch = capture.scratch(self.stream_address())
        return found

    @property
    def making_program(self) -> bool:
        """Whether launches are recorded, where CuPy refuses to call the vendor's libraries."""
        return super().making_program or self._mine.capture not in (None, FREE)

    @property
    def observed(self) -> bool:
        """Whether iterations run operation by operation: for a profiler, or for links of hosts."""
        return super().observed or (self.links is not None and not self.links.on_device)

    def link(
        self, members: list[Executor], stage: Any, kind: str | None = None
    ) -> Sequence[Links] | None:
        """Return links by peer access or by NCCL, if every member has a GPU of its own."""
        from ..peers import links as peers

        makers = {"peer": peers.linked, "nccl": nccl.linked}
        for make in makers.values() if kind is None else [makers[kind]]:
            made = make(members, stage)
            if made is not None:
                return made
        return None

    def energy_counter(self) -> EnergyCounter | None:
        """Return the energy counter of the GPU, or None if NVML has none."""
        return counter_of(self.device.handle.pci_bus_id)

    def link_ranks(self, host: RankLinks) -> Links | None:
        """Return links with the GPUs of other processes, if every rank has its own.

        Ranks of one host use each other's memory, others NCCL.
        """
        from ..peers.ranks import joined_by_memory

        found = nccl.linked_ranks(host)
        return None if found is None else joined_by_memory(found)

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Run ``iteration`` on the device; a group looks for Ctrl-C now and then."""
        if self.links is None or self.observed or not iteration.resident:
            super().drive(iteration, limit)
            return
        if self.links.alone:
            drive_alone(self, iteration, limit, super().drive)
            return
        while limit > 0:
            super().drive(iteration, min(limit, BETWEEN_CHECKS))
            self._graph_was_launched()
            self.links.await_graph()
            limit -= BETWEEN_CHECKS
            if self.to_host(iteration.status.running)[0] == 0:
                break
            self.links.check()

    def play(self, replay: Replay) -> None:
        """Run a replay without a loop of its own, from the second time on as a graph."""
        if not replay.resident or self.observed:
            replay.body()
        elif replay.program is None:
            # The first time there are plans to be made.
            replay.body()
            replay.program = False
        else:
            self._guarded("a solver's steps between its cycles", 0, self._play, replay)

    def _play(self, replay: Replay) -> None:
        replay.program = replay.program or Played(self, replay)
        replay.program.run()
        self._graph_was_launched()

    def _graph_was_launched(self) -> None:
        if self.links is not None:
            self.links.graph_runs = True

    def drive_cycles(self, cycles: Cycles, limit: int) -> bool:
        """Run whole cycles as one graph until a column stops, or ``limit`` times."""
        if not cycles.resident or self.observed or not works_alone(self):
            return False
        with self._here("a solver's cycles"):
            if cycles.program is None:
                from ..loop.loop import Restarts

                cycles.program = Restarts(self, cycles)
            cycles.program.run(limit)
        return True

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Return a copy of a NumPy array here; while a group is at work no memory is pinned.

        Pinning memory waits for all devices of the process, so for collective operations that
        other members have begun and that this one is still to launch.
        """
        if not unused.group_at_work:
            return super().from_host(array)
        self.refuse_host(FROM_HOST)
        with self._here("copy from the host", array.nbytes):
            source = np.ascontiguousarray(array)
            made = self.allocate(array.shape, source.dtype)
            if made.nbytes:
                self.overwrite_together((made, source))
            return made

    def brought(self, source: Executor, array: Array) -> Array:
        """Return an array of another executor here; another GPU of the process sends a copy."""
        near = not isinstance(source, CudaExecutor) or source.ordinal == self.ordinal
        if near or not array.flags.c_contiguous:
            return super().brought(source, array)
        self.refuse_capture(COPIES)
        source.synchronize()
        with self._here("copy from another GPU", array.nbytes):
            made = self.allocate(array.shape, array.dtype)
            if array.nbytes:
                runtime, stream = self.xp.cuda.runtime, self.xp.cuda.get_current_stream()
                runtime.memcpyAsync(
                    made.data.ptr, array.data.ptr, made.nbytes, runtime.memcpyDefault, stream.ptr
                )
                stream.synchronize()  # the owner may free the array from now on
            return made

    def copy_into(self, target: Array, source: Array | np.ndarray[Any, Any]) -> None:
        """Overwrite ``target`` with ``source`` of the same shape and dtype."""
        plain = not isinstance(source, np.ndarray) and target.dtype == source.dtype
        if plain and target.flags.c_contiguous and source.flags.c_contiguous:
            self.refuse_capture(COPIES)
            # an assignment launches a kernel and takes three times as long
            copied = target.data.copy_from_device_async
            self._guarded("copy", 0, copied, source.data, target.nbytes)
        else:
            super().copy_into(target, source)

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy; CuPy's own function takes the host five times as long."""
        made = self.allocate(array.shape, array.dtype)
        if made.size:
            self.copy_into(made, array)
        return made

    def allocate_together(self, *wanted: tuple[tuple[int, ...], DTypeLike]) -> list[Array]:
        """Return uninitialized arrays in one piece of memory."""
        sizes = [prod(shape) * np.dtype(dtype).itemsize for shape, dtype in wanted]
        begins = padded(sizes)
        memory = self.allocate((begins[-1],), np.uint8)
        return [
            memory[begin : begin + size].view(dtype).reshape(shape)
            for (shape, dtype), begin, size in zip(wanted, begins, sizes, strict=False)
        ]

    def overwrite_together(self, *pairs: tuple[Array, np.ndarray[Any, Any]]) -> None:
        """Overwrite contiguous arrays with small ones of the host.

        CuPy's own copy takes five times as long. The driver copies its arguments: the arrays of the
        host may go at once. Adjacent arrays of :meth:`allocate_together` are one copy.
        """
        self.refuse_host(FROM_HOST)
        with self._here("copy from the host"):
            cuda = self.xp.cuda
            stream = cuda.get_current_stream().ptr
            for target, source in side_by_side(pairs):
                cuda.runtime.memcpyAsync(
                    target, source.ctypes.data, source.nbytes, cuda.runtime.memcpyHostToDevice,
                    stream,
                )  # fmt: skip

    def to_host_together(self, *arrays: Array) -> list[np.ndarray[Any, Any]]:
        """Return NumPy copies of contiguous arrays, after the work that makes them."""
        self.refuse_host(TO_HOST)
        begins, spans = spans_of(arrays)
        with self._here("copy to the host"):
            staging = self._brought(spans, spans[-1].end)
        return [
            staging[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape).copy()
            for array, begin in zip(arrays, begins, strict=True)
        ]

    def to_host_later(self, array: Array) -> Callable[[], np.ndarray[Any, Any]]:
        """Ask for a NumPy copy of a contiguous array; return the function that waits for it."""
        self.refuse_host(TO_HOST)
        if unused.group_at_work or array.nbytes > later.LARGEST:  # see from_host
            return super().to_host_later(array)
        with self._here("copy to the host"):
            wait = self._later.ask(self.xp, array)
        return lambda: self.call("copy to the host", wait)

    def exchange(self, written: Sequence[Array], read: Sequence[Array]) -> CudaExchange:
        """Return an exchange with planned copies."""
        return CudaExchange(self, written, read)

    def write(self, exchange: Exchange) -> None:
        """Overwrite the arrays that an exchange writes; the driver copies its arguments."""
        self.refuse_host(FROM_HOST)
        assert isinstance(exchange, CudaExchange)
        self._guarded("copy from the host", 0, self._write, exchange)

    def _write(self, exchange: CudaExchange) -> None:
        runtime = self.xp.cuda.runtime
        stream = self.xp.cuda.get_current_stream().ptr
        for target, source, nbytes in exchange.writes:
            runtime.memcpyAsync(target, source, nbytes, runtime.memcpyHostToDevice, stream)

    def read(self, exchange: Exchange) -> list[np.ndarray[Any, Any]]:
        """Return the arrays that an exchange reads, after the work that makes them."""
        self.refuse_host(TO_HOST)
        assert isinstance(exchange, CudaExchange)
        brought = self._guarded(
            "copy to the host", 0, self._brought, exchange.spans, exchange.nbytes
        )
        return exchange.parts(brought)

    def _brought(self, spans: Sequence[Span], nbytes: int) -> np.ndarray[Any, Any]:
        """Return memory of the host with spans of the device's, which the next call overwrites."""
        cuda = self.xp.cuda
        staging = (
            self._pinned.bytes(self.xp, nbytes)
            if not unused.group_at_work  # see from_host
            else np.empty(nbytes, np.uint8)
        )
        stream, place = cuda.get_current_stream(), staging.ctypes.data
        for span in spans:
            cuda.runtime.memcpyAsync(
                place + span.begin, span.source, span.end - span.begin,
                cuda.runtime.memcpyDeviceToHost, stream.ptr,
            )  # fmt: skip
        stream.synchronize()
        return staging

    def launch_address(self) -> int:
        """Return the address of ``cuLaunchKernel``."""
        return address_of("libcuda.so.1", "cuLaunchKernel")

    @property
    def user_capture(self) -> Capture | None:
        """The capture of a user that this thread's work is recorded in, or None."""
        capture = self._mine.capture
        return None if capture is OWN or capture is FREE else capture

    def recordable_loop(self, iteration: Iteration) -> RecordableLoop:
        """Return a loop that a graph of the user may hold, as a conditional node."""
        from ..loop.captured import CapturableLoop

        with self._here("a solver's loop"):
            return CapturableLoop(self, iteration)

    def make_program(self, iteration: Iteration) -> Any:
        """Return one kernel for everything, or a graph with a condition that the device sets."""
        from ..loop.loop import make_program

        return make_program(self, self.record(iteration.body), iteration.status)
