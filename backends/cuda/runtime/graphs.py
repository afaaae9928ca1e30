"""CUDA graphs with parts that are repeated while a condition set on the device holds."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVarTuple

from ....core.errors import DeviceError

if TYPE_CHECKING:
    from .executor import CudaExecutor


Ts = TypeVarTuple("Ts")


def runtime() -> Any:
    """Return the bindings of the CUDA runtime."""
    from cuda.bindings import runtime

    return runtime


def checked(result: tuple[Any, ...]) -> Any:
    """Return the results of a runtime call without its error code, or raise DeviceError."""
    if int(result[0]) != 0:
        _, text = runtime().cudaGetErrorString(result[0])
        raise DeviceError(f"{result[0].name}: {text.decode() if text else ''}")
    return None if len(result) == 1 else result[1] if len(result) == 2 else result[1:]


class OwnMemory:
    """Memory allocated while a graph is captured, kept because its launches contain the addresses.

    Parameters
    ----------
    cuda : module
        ``cupy.cuda``, or a substitute with its functions.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self.pool: Any = None

    def used(self) -> AbstractContextManager[None]:
        """Return a context in which this thread allocates arrays from this memory."""
        self.pool = self.pool or self._cuda.MemoryPool()
        result: AbstractContextManager[None] = self._cuda.using_allocator(self.pool.malloc)
        return result


class _Unused:
    """Resources to release once no group of GPUs is at work and nothing is captured.

    CUDA may wait for all devices before it destroys a graph or frees memory. While a group is at
    work, a device may wait for a collective operation that this same thread has yet to launch for
    its own member. A call that waits for the device also invalidates a capture, and destructors of
    cuDSS wait. Therefore, resources that are dropped meanwhile are kept until the group or the
    capture has finished, and the garbage collector is disabled: it would run destructors of other
    libraries in any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may run inside
        self._members = 0  # members of groups at work
        self._captures = 0  # this package's captures, in all threads
        self._lost = 0  # members that never reached the end of a program
        self._collects = False
        self._kept: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    @property
    def group_at_work(self) -> bool:
        """Whether a device may be waiting for a launch of another thread."""
        return self._members > 0

    def begin_member(self) -> None:
        """Release nothing until the member that starts work has ended."""
        with self._lock:
            self._stop_collecting()
            self._members += 1

    def end_member(self, ended: bool) -> None:
        """Release the kept resources after the last member; never if a member did not end."""
        with self._lock:
            self._members -= 1
            self._lost += not ended
            self._collect_again()
        self._release()

    @contextmanager
    def kept_while_capturing(self) -> Iterator[None]:
        """Release nothing during a block that captures."""
        with self._lock:
            self._stop_collecting()
            self._captures += 1
        try:
            yield
        finally:
            with self._lock:
                self._captures -= 1
                self._collect_again()
            self._release()

    def _stop_collecting(self) -> None:
        if not (self._members or self._captures):
            self._collects = gc.isenabled()
            gc.disable()

    def _collect_again(self) -> None:
        if not (self._members or self._captures) and self._collects:
            gc.enable()

    def add(self, release: Callable[[*Ts], object], *objects: *Ts) -> None:
        """Call ``release(*objects)``, now or once no group is at work and nothing is captured."""
        self.postpone(release, *objects)
        self._release()

    def keep(self, *things: Any) -> None:
        """Drop objects, now or once no group is at work and nothing is captured."""
        self.add(_nothing, *things)

    def postpone(self, release: Callable[[*Ts], object], *objects: *Ts) -> None:
        """Call ``release(*objects)`` when the next resources are released."""
        self._kept.append((release, objects))

    def _release(self) -> None:
        with self._lock:
            if self._members or self._lost or self._captures:
                return
            waiting, self._kept = self._kept, []
            try:
                while waiting:
                    release, arguments = waiting.pop()
                    release(*arguments)
            finally:  # an error of one release must not skip the others
                self._kept += waiting


def _nothing(*things: Any) -> None:
    pass


unused = _Unused()


class GraphBuilder:
    """Builds a graph from successive parts, some of which are repeated while a condition holds.

    Parts are captured: they launch kernels as usual, on the current stream of the capture.
    """

    def __init__(self, executor: CudaExecutor) -> None:
        self._executor = executor
        self._runtime = runtime()
        self._executable: Any = None
        self._whole = checked(self._runtime.cudaGraphCreate(0))
        # The graph of the next part, and the nodes on which that part depends.
        self._graph, self._after = self._whole, list[Any]()
        self._stream = executor.xp.cuda.Stream(non_blocking=True)
        self._memory = OwnMemory(executor.xp.cuda)
        self._within = False  # inside an unfinished WHILE node

    def condition(self) -> Any:
        """Return a condition for :meth:`repeat`; it is false until a kernel sets it."""
        return checked(self._runtime.cudaGraphConditionalHandleCreate(self._graph, 0, 1))

    def part(self, launches: Any) -> None:
        """Capture the kernels that ``launches()`` launches."""
        runtime, after = self._runtime, self._after
        mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
        pointer = self._stream.ptr
        with unused.kept_while_capturing():  # until the stream's capture has ended
            checked(
                runtime.cudaStreamBeginCaptureToGraph(
                    pointer, self._graph, after or None, None, len(after), mode
                )
            )
            try:
                with self._stream, self._executor.own_capture(), self._memory.used():
                    launches()
            finally:
                ended = runtime.cudaStreamEndCapture(pointer)
        checked(ended)
        self._after = self._nodes()

    def repeat(self, condition: Any, parts: Any) -> None:
        """Repeat the parts that ``parts()`` adds as long as the condition holds."""
        runtime = self._runtime
        parameters = runtime.cudaGraphNodeParams()
        parameters.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeConditional
        parameters.conditional.handle = condition
        parameters.conditional.type = runtime.cudaGraphConditionalNodeType.cudaGraphCondTypeWhile
        parameters.conditional.size = 1
        after = self._after
        node = checked(runtime.cudaGraphAddNode(self._graph, after, None, len(after), parameters))
        outside = self._graph
        self._graph, self._after = parameters.conditional.phGraph_out[0], []
        self._within = True
        parts()
        self._within = False
        self._graph, self._after = outside, [node]

    @contextmanager
    def beside(self, launches: Any) -> Iterator[None]:
        """Capture the kernels of ``launches()`` within a part, in parallel with the block."""
        cuda = self._executor.xp.cuda
        side, here = cuda.Stream(non_blocking=True), cuda.Event(disable_timing=True)
        here.record(self._stream)
        side.wait_event(here)
        with side:
            launches()
        done = cuda.Event(disable_timing=True)
        done.record(side)
        yield
        self._stream.wait_event(done)

    def _nodes(self) -> list[Any]:
        _, count = checked(self._runtime.cudaGraphGetNodes(self._graph))
        nodes, _ = checked(self._runtime.cudaGraphGetNodes(self._graph, int(count)))
        return list(nodes)

    def finish(self) -> Any:
        """Return the graph, ready to launch."""
        self._executable = checked(self._runtime.cudaGraphInstantiate(self._whole, 0))
        return self._executable

    def discard(self) -> None:
        """Free the resources of the graph; further calls do nothing.

        If an error interrupted the body of a WHILE node, the graph is leaked: CUDA ends the process
        when such a graph is destroyed.
        """
        executable, self._executable = self._executable, None
        graph, self._whole = self._whole, None
        if executable is not None:
            unused.add(self._runtime.cudaGraphExecDestroy, executable)
        if graph is not None and not self._within:
            unused.add(self._runtime.cudaGraphDestroy, graph)
        unused.keep(self._memory.pool)
        self._memory.pool = None
