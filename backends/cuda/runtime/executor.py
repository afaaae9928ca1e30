"""The executor of NVIDIA GPUs, on CuPy."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import numpy as np

from ....core.capture import COPIES, FROM_HOST, recorded_call, refused
from ....core.energy import EnergyCounter
from ....core.errors import CaptureRefused, InvalidArgument
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
from .copies import CudaTransfer, Staging
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

#: Iterations between two checks for Ctrl-C in a group; the members' hosts synchronize for a check.
BETWEEN_CHECKS = 128


class _Uncaptured:
    """A block in which no capture can begin; a class, because a generator takes twice as long."""

    __slots__ = ("_mine",)

    def __init__(self, captures: PerThread) -> None:
        self._mine = captures

    def __enter__(self) -> None:
        self._mine.capture = FREE

    def __exit__(self, *reason: object) -> None:
        self._mine.capture = None


class Played:
    """Operations recorded as a graph: one launch for all of their kernels."""

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
        # Not at exit: CUDA is already shut down then.
        weakref.finalize(self, unused.keep, self.graph, memory.pool).atexit = False

    def run(self) -> None:
        """Launch it."""
        if self.graph is not None:
            self.graph.launch(self.executor.xp.cuda.get_current_stream())


class CudaExecutor(GpuExecutor):
    """An NVIDIA GPU.

    Arrays are ``cupy.ndarray`` from CuPy's memory pool. Kernels run on CuPy's current stream.
    ``with executor:`` makes the device current and uses a separate stream in the block. This stream
    waits for earlier submissions, and later submissions wait for it.

    Parameters
    ----------
    device : int
        The number of the GPU, from 0.

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
    transfer_type = CudaTransfer
    algorithms = algorithms
    constants_kind = "nvidia"
    vendor_libraries = frozenset({"cudss"})
    dlpack_kinds = (_KDLCUDA, _KDLCUDA_MANAGED)

    def __init__(self, device: int = 0) -> None:
        require(device)
        super().__init__(device)
        self.staging, self.later = Staging(), later.Copies()
        self._captures = Captures(self.xp.cuda)

    @cached_property
    def device(self) -> CudaDevice:
        """The GPU's properties and loaded kernels."""
        return device(self.ordinal)

    # ---- captures of users

    @cached_property
    def _captured(self) -> CapturedStream:
        """The detector of captures, with which all work begins; creates the context first."""
        return CapturedStream(self.xp.cuda, self.device.ordinal)

    def submit(self, name: str, owner: object, function: Callable[[*Ts], R], *operands: *Ts) -> R:
        """Call ``function(*operands)``; if the current stream is captured, record its launches."""
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
            capture.keep(owner)
            mine.capture = capture
            try:
                with self.xp.cuda.using_allocator(capture.pool.malloc):
                    if getattr(function, "__self__", None) is owner:
                        self._rehearse(owner, function, operands)
                    return function(*operands)
            finally:
                mine.capture = None

    def _rehearse(self, owner: Any, function: Callable[..., Any], arguments: Any) -> None:
        """Determine before recording whether a first call has already made all cached data.

        An operator may consist of several operations: they are recorded without launching any of
        them. For an operator with a user's function, which would be called, only its matrices are
        checked.
        """
        if getattr(owner, "resident", True):
            for call in record(self, lambda: function(*arguments)):
                if call.operation is products.csr_spmm:
                    A, _, B, *_, kernel = call.arguments
                    A.plan_for("spmm", int(B.shape[2]), kernel, B.dtype)
                    continue
                for parameter, argument in call.named:
                    if parameter.is_matrix:
                        prepare_parts(argument)
        else:
            prepare_parts(owner)

    def refuse_capture(self, reason: str) -> None:
        """Raise CaptureRefused if captured work does not belong to a call that can be recorded."""
        if self._mine.capture is None and self._captured.find() is not None:
            raise refused(reason)

    def refuse_host(self, reason: str) -> None:
        """Raise CaptureRefused if work is captured: the host cannot take part in a replay."""
        capture = self._mine.capture
        if capture is OWN or capture is FREE:
            return
        if capture is not None or self._captured.find() is not None:
            raise refused(reason)

    def _is_captured(self) -> bool:
        """Return whether this thread's work is captured."""
        return self._captured.find() is not None

    def uncaptured(self) -> AbstractContextManager[None]:
        """Check for captures once, at the start of a block in which none can begin or end."""
        mine = self._mine
        if mine.capture is not None or self._captured.find() is not None:
            return nullcontext()
        return _Uncaptured(mine)

    def _require_function(self, operator: LinearOperator) -> None:
        """Raise for a compiled function of the host, which cannot read the device's memory."""
        if operator.address is not None:
            raise InvalidArgument(
                f"matvec: a compiled function of the host cannot read the memory of {self.name}; "
                "pass a Python function that launches kernels"
            )

    def takes_function(self, operator: LinearOperator) -> bool:
        """Return whether loops can contain an operator's function, by recording it once.

        Raises
        ------
        InvalidArgument
            If the function cannot be recorded, or if a replay differs from a call.
        """
        self._require_function(operator)
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
        """Whether this thread has checked for captures and found none."""
        return self._mine.capture is FREE

    @property
    def makes_graph(self) -> bool:
        """Whether this thread is capturing one of this package's graphs."""
        return self._mine.capture is OWN

    @contextmanager
    def own_capture(self) -> Iterator[None]:
        """Let launches in this block belong to a graph that this package makes."""
        before, self._mine.capture = self._mine.capture, OWN
        try:
            with unused.kept_while_capturing():
                yield
        finally:
            self._mine.capture = before

    def _give_back(self, work: str, function: Callable[..., object], operands: Any) -> None:
        """Release resources, waiting until this package's captures and groups' work have ended."""
        unused.add(self._free, work, function, operands)

    def _free(self, work: str, function: Callable[..., object], operands: Any) -> None:
        try:
            self.refuse_host("")
        except CaptureRefused:  # a user is capturing: the next dropped resource tries again
            unused.postpone(self._free, work, function, operands)
        else:
            self._guarded(work, 0, function, *operands)

    def scratch(self, nbytes: int, counters: int = 1) -> tuple[int, int]:
        """Return the addresses of scratch memory and of counters for the next launch.

        Repeated launches call this without :meth:`submit`, so it checks the stream.
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
        """Return the scratch memory shared by a stream's launches; a capture has its own."""
        capture = self._mine.capture
        if capture is None or capture is OWN or capture is FREE:
            return super()._scratch_of_stream()
        result: Scratch = capture.scratch(self.stream_address())
        return result

    @property
    def making_program(self) -> bool:
        """Whether launches are being recorded; CuPy then refuses to call the vendor's libraries."""
        return super().making_program or self._mine.capture not in (None, FREE)

    @property
    def observed(self) -> bool:
        """Whether iterations run one operation at a time: for a profiler, or for links of hosts."""
        return super().observed or (self.links is not None and not self.links.on_device)

    def link(
        self, members: list[Executor], stage: Any, kind: str | None = None
    ) -> Sequence[Links] | None:
        """Return links by peer access or NCCL if every member has its own GPU, else None."""
        from ..peers import links as peers

        makers = {"peer": peers.linked, "nccl": nccl.linked}
        for make in makers.values() if kind is None else [makers[kind]]:
            result = make(members, stage)
            if result is not None:
                return result
        return None

    def energy_counter(self) -> EnergyCounter | None:
        """Return the energy counter of the GPU, or None if NVML has none."""
        return counter_of(self.device.handle.pci_bus_id)

    def link_ranks(self, host: RankLinks) -> Links | None:
        """Return links to the GPUs of other processes if every rank has its own GPU, else None.

        Ranks on one host access each other's memory; other ranks use NCCL.
        """
        from ..peers.ranks import joined_by_memory

        found = nccl.linked_ranks(host)
        return None if found is None else joined_by_memory(found)

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Run ``iteration`` on the device; a group periodically checks for Ctrl-C."""
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
        """Run a replay outside of a loop; from the third time on, run it as a graph."""
        if not replay.resident or self.observed:
            replay.body()
        elif replay.program is None or replay.program is False:
            # The first run makes plans; a single solve runs a replay only twice.
            replay.body()
            replay.program = replay.program is False
        else:
            self._guarded("a solver's steps between its cycles", 0, self._play, replay)

    def _play(self, replay: Replay) -> None:
        if replay.program is True:
            replay.program = self._built_by_all(Played(self, replay))
        replay.program.run()
        self._graph_was_launched()

    def _built_by_all(self, program: R) -> R:
        """Return a program of this member once all members of the group have built theirs.

        CUDA may wait for a device while a graph is built, and the device must not wait meanwhile
        for a kernel that another member launches after it has built its own graph. If a member
        fails, no member keeps its program.
        """
        if self.links is not None and not self.links.alone:
            self.links.all(None)
        return program

    def _graph_was_launched(self) -> None:
        if self.links is not None:
            self.links.graph_runs = True

    def drive_cycles(self, cycles: Cycles, limit: int) -> bool:
        """Run whole restart cycles as one graph until a column stops, at most ``limit`` times.

        A group periodically checks for Ctrl-C.
        """
        if not cycles.resident or self.observed:
            return False
        links = None if works_alone(self) else self.links
        with self._here("a solver's cycles"):
            if cycles.program is None:
                from ..loop.loop import Restarts

                cycles.program = self._built_by_all(Restarts(self, cycles))
            if links is None:
                cycles.program.run(limit)
                return True
        running, at_once = cycles.iteration.status.running, max(BETWEEN_CHECKS // cycles.length, 1)
        links.await_graph()
        before = self.to_host(running)[0]
        while limit > 0:
            with self._here("a solver's cycles"):
                cycles.program.run(min(limit, at_once))
            self._graph_was_launched()
            links.await_graph()
            limit -= at_once
            if self.to_host(running)[0] < before:
                break
            links.check()
        return True

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Copy a NumPy array to this device; while a group is at work, no memory is pinned.

        Pinning memory waits for all devices of the process. It would wait for collective operations
        that other members have begun and that this member has yet to launch.
        """
        if not unused.group_at_work:
            return super().from_host(array)
        self.refuse_host(FROM_HOST)
        with self._here("copy from the host", array.nbytes):
            source = np.ascontiguousarray(array)
            result = self.allocate(array.shape, source.dtype)
            if result.nbytes:
                self.transfer(written=[result]).write(source)
            return result

    def brought(self, source: Executor, array: Array) -> Array:
        """Copy an array of another executor to this one; GPUs of the process copy directly."""
        near = not isinstance(source, CudaExecutor) or source.ordinal == self.ordinal
        if near or not array.flags.c_contiguous:
            return super().brought(source, array)
        self.refuse_capture(COPIES)
        source.synchronize()
        with self._here("copy from another GPU", array.nbytes):
            result = self.allocate(array.shape, array.dtype)
            if array.nbytes:
                runtime, stream = self.xp.cuda.runtime, self.xp.cuda.get_current_stream()
                runtime.memcpyAsync(
                    result.data.ptr,
                    array.data.ptr,
                    result.nbytes,
                    runtime.memcpyDefault,
                    stream.ptr,
                )
                stream.synchronize()  # the owner may free the array afterwards
            return result

    def copy_into(self, target: Array, source: Array | np.ndarray[Any, Any]) -> None:
        """Overwrite ``target`` with ``source`` of the same shape and dtype."""
        plain = not isinstance(source, np.ndarray) and target.dtype == source.dtype
        if plain and target.flags.c_contiguous and source.flags.c_contiguous:
            self.refuse_capture(COPIES)
            # an assignment would launch a kernel and take three times as long
            copied = target.data.copy_from_device_async
            self._guarded("copy", 0, copied, source.data, target.nbytes)
        else:
            super().copy_into(target, source)

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy; CuPy's own function costs the host five times as long."""
        result = self.allocate(array.shape, array.dtype)
        if result.size:
            self.copy_into(result, array)
        return result

    def launch_address(self) -> int:
        """Return the address of ``cuLaunchKernel``."""
        return address_of("libcuda.so.1", "cuLaunchKernel")

    @property
    def user_capture(self) -> Capture | None:
        """The user's capture that records this thread's work, or None."""
        capture = self._mine.capture
        return None if capture is OWN or capture is FREE else capture

    def recordable_loop(self, iteration: Iteration) -> RecordableLoop:
        """Return a loop that a user's graph can contain, as a conditional node."""
        from ..loop.captured import CapturableLoop

        with self._here("a solver's loop"):
            return CapturableLoop(self, iteration)

    def make_program(self, iteration: Iteration) -> Any:
        """Return one persistent kernel, or a graph with a condition that the device sets."""
        from ..loop.loop import make_program

        return self._built_by_all(make_program(self, self.record(iteration.body), iteration.status))
