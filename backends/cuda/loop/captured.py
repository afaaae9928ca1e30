"""Record a solver's loop in a user's CUDA graph, as a WHILE node of the captured graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....core.errors import UnsupportedOperation
from ....core.links import works_alone
from ...gpu.tape import steps_of
from ..runtime.graphs import GraphBuilder, OwnMemory, checked, runtime
from .loop import LoopGraph

if TYPE_CHECKING:
    from ....core.iteration import Iteration
    from ..runtime.executor import CudaExecutor


class CapturableLoop:
    """A loop that runs on its own, or that is recorded if the current stream is being captured.

    Parameters
    ----------
    executor : CudaExecutor
        The executor of the arrays; not a member of a group.
    iteration : Iteration
        The iteration to repeat.
    """

    def __init__(self, executor: CudaExecutor, iteration: Iteration) -> None:
        if not works_alone(executor):
            raise UnsupportedOperation(
                "a recorded solve runs on one GPU; distributed solvers have no graph of a user's"
            )
        self.executor = executor
        steps = steps_of(executor.record(iteration.body).expanded())
        self.graph = LoopGraph(executor, steps, iteration.status)

    def run(self, limit: int) -> None:
        """Run at most ``limit`` iterations, or record a loop with this limit."""
        capture = self.executor.user_capture
        if capture is None:
            self.graph.run(limit)
            return
        builder = CaptureBuilder(self.executor)
        capture.keep(self)
        capture.keep(builder)
        self.graph.add_to(builder, limit)


class CaptureBuilder(GraphBuilder):
    """Adds parts to the graph into which the current stream is captured.

    Parts outside of a WHILE node are launches on that stream. A WHILE node is inserted explicitly
    between the work captured before it and the work captured after it.
    """

    def __init__(self, executor: CudaExecutor) -> None:
        self._executor, self._runtime = executor, runtime()
        self._executable = None
        self._captured = executor.xp.cuda.get_current_stream().ptr
        self._whole = self._graph = self._state()[0]
        self._after = list[Any]()
        self._stream = executor.xp.cuda.Stream(non_blocking=True)
        self._memory = OwnMemory(executor.xp.cuda)
        self._within = False

    def _state(self) -> tuple[Any, list[Any]]:
        """Return the graph, and the nodes on which the stream's next node depends."""
        _, _, graph, nodes, *_ = checked(self._runtime.cudaStreamGetCaptureInfo(self._captured))
        return graph, list(nodes or ())

    def part(self, launches: Any) -> None:
        """Capture the kernels that ``launches()`` launches."""
        if self._within:
            super().part(launches)
        else:
            launches()

    def repeat(self, condition: Any, parts: Any) -> None:
        """Repeat the parts that ``parts()`` adds as long as the condition holds."""
        self._graph, self._after = self._state()
        super().repeat(condition, parts)
        cuda, nodes = self._runtime, self._after
        replace = cuda.cudaStreamUpdateCaptureDependenciesFlags.cudaStreamSetCaptureDependencies
        checked(
            cuda.cudaStreamUpdateCaptureDependencies(
                self._captured, nodes, None, len(nodes), int(replace)
            )
        )
