"""Loops on AMD GPUs: launch a batch of iterations, then read the status on the host.

HIP's graphs have no WHILE node. A batch is one hipGraph if CuPy can capture it, and a sequence of
launches otherwise; either way, the host reads the status once per batch. Iterations after all
columns have halted change nothing, because kernels skip columns that are not running.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from ...core.links import makes_totals
from ...core.operation import Operation
from ...core.program import Call, Program
from ...core.status import Status
from ..gpu.base import GpuExecutor
from ..gpu.repeatable import RecordedLaunch
from ..gpu.scratch import Scratch

#: Iterations per batch. Reading the status costs some 10 microseconds and an iteration of a small
#: system 30. With 8 iterations the reading takes a twentieth of the time, and on average 4
#: iterations are wasted at the end. `wollemi bench` on an AMD GPU will tune this value.
BATCH = 8


class Batches:
    """The operations of an iteration, run in batches of iterations.

    Parameters
    ----------
    executor : GpuExecutor
        The executor of the arrays.
    program : Program
        The operations of one iteration.
    status : Status
        Decides when the loop ends.
    """

    def __init__(self, executor: GpuExecutor, program: Program, status: Status) -> None:
        program = program.expanded()
        self.executor, self.program, self.status = executor, program, status
        self.scratch = Scratch()
        # Compile programs and allocate scratch memory before launches record its address.
        with executor.preparing(self.scratch, dry=True):
            for operation, arguments in program:
                executor.perform(operation, self._kernel(operation), *arguments)
        self._launches = [launch for call in program for launch in self._written_down(call)]
        self._graph = self._captured()

    @property
    def captured(self) -> bool:
        """Whether a batch is a hipGraph."""
        return self._graph is not None

    def run(self, limit: int) -> None:
        """Run at most ``limit`` iterations."""
        done = 0
        while done < limit and self.executor.to_host(self.status.running)[0]:
            count = min(BATCH, limit - done)
            if self._graph is not None and count == BATCH:
                self._graph.launch()
            else:
                for _ in range(count):
                    self._launch()
            done += count

    def _launch(self) -> None:
        for launch in self._launches:
            launch()

    def _kernel(self, operation: Operation) -> Callable[..., Any]:
        kernel = self.executor.kernels.find(operation)
        assert kernel is not None
        return kernel

    def _written_down(self, call: Call) -> list[Callable[[], Any]]:
        """Return the launches of an operation, or the call itself if a library makes it."""
        operation, arguments = call
        kernel = self._kernel(operation)
        run = partial(self.executor.perform, operation, kernel, *arguments)
        if makes_totals(self.executor.links, operation):
            return [run]
        launches: list[RecordedLaunch] = []
        with self.executor.preparing(self.scratch, dry=True, into=launches):
            run()
        return list(launches) if launches else [run]

    def _captured(self) -> Any:
        """Return a graph of a batch, or None if the batch cannot be captured."""
        stream = self.executor.xp.cuda.Stream(non_blocking=True)
        with stream:
            try:
                stream.begin_capture()
            except RuntimeError:  # CuPy 14 on ROCm: not supported on HIP
                return None
            graph = None
            try:
                for _ in range(BATCH):
                    self._launch()
            except RuntimeError:  # a library call that cannot be captured
                with suppress(RuntimeError):
                    stream.end_capture()
            else:
                with suppress(RuntimeError):
                    graph = stream.end_capture()
        return graph
