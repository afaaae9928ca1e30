"""The common part of links between GPUs, for all transports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ....core.distributed.threads import Stage, ThreadLinks
from ....core.executor import Array, Executor
from ....core.links import Links, Move
from .graphs import unused

#: Codes of the kinds of totals, as the kernels of all transports number them.
KINDS = {"sum": 0, "largest": 1, "norm": 2}


class DeviceLinks(Links):
    """The part of links that works on a GPU's stream, for all transports.

    Attributes
    ----------
    gpu : Executor
        The member's GPU, as a single executor.
    """

    on_device = True
    gpu: Any

    # ---- totals

    @abstractmethod
    def _total(self, array: Array, kind: int) -> None:
        """Replace a real array by a total over all members, in the order of ranks."""

    def sum(self, array: Array) -> None:
        """Replace a real array by the sum of the arrays of all members, in the order of ranks."""
        self._total(array, KINDS["sum"])

    def largest(self, array: Array) -> None:
        """Replace a real array by the element-wise maximum; NaN where any is NaN."""
        self._total(array, KINDS["largest"])

    def norm(self, array: Array) -> None:
        """Replace a real array by the root of the sum of the squares over all members."""
        self._total(array, KINDS["norm"])

    @property
    def capturing(self) -> bool:
        """Whether launches are being recorded in a graph."""
        if self.gpu.captures_nothing:
            return False
        return bool(self.gpu.xp.cuda.get_current_stream().is_capturing())

    def complete(self, stream: Any = None) -> None:
        """Wait for a kernel that waits for other members, unless it became part of a graph.

        CUDA may wait for the device when memory is allocated or a kernel is loaded; meanwhile it
        holds a lock that another member needs to launch its part.
        """
        if not self.capturing:
            (stream or self.gpu.xp.cuda.get_current_stream()).synchronize()

    def await_graph(self) -> None:
        """Wait for a graph that waits for other members, with no lock of CUDA's held.

        A copy to memory of the host that is not pinned may hold one while it waits.
        """
        self.complete()
        self.graph_runs = False


class GpuLinks(DeviceLinks, ThreadLinks):
    """The links of a member that is a thread with its own GPU.

    Messages of the hosts go through the threads' barriers, as for other members.
    """

    def __init__(self, stage: Stage, executor: Executor, rank: int) -> None:
        super().__init__(stage, executor, rank, 0)
        self.gpu = executor

    def swap(self, moves: Sequence[Move]) -> list[list[Array]]:
        """Copy parts of arrays from the memory of the other members."""
        cuda, here = self.gpu.xp.cuda, self.gpu.ordinal
        stream = cuda.get_current_stream()
        stream.synchronize()  # other members read the arrays next
        mine = [(move.arrays, {rank: begin for rank, begin, _ in move.sends}) for move in moves]
        told = self.all((here, mine))
        result = []
        for at, move in enumerate(moves):
            count = max((end for _, _, end in move.receives), default=0)
            made = [self.gpu.allocate((count,), array.dtype) for array in move.arrays]
            result.append(made)
            for rank, begin, end in move.receives:
                if begin == end:
                    continue
                there, of_rank = told[rank]
                theirs, begins = of_rank[at]
                for target, source in zip(made, theirs, strict=True):
                    size = target.itemsize
                    cuda.runtime.memcpyPeerAsync(
                        target.data.ptr + begin * size, here,
                        source.data.ptr + begins[self.rank] * size, there,
                        (end - begin) * size, stream.ptr,
                    )  # fmt: skip
        stream.synchronize()
        self.all(None)  # afterwards, the owners may free the arrays
        return result

    # ---- programs

    def begin_program(self) -> None:
        """Synchronize the start with all members; no graph is destroyed before the end."""
        super().begin_program()
        unused.begin_member()

    def end_program(self, ended: bool) -> None:
        """Allow resources without an owner to be released, unless a member is still at work."""
        unused.end_member(ended)
        super().end_program(ended)
