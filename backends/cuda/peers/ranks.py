"""Links between GPUs of several processes on one host that access each other's memory.

Loops contain the kernels of ``peers.hpp``, like loops in one process. Outside of loops, rows are
exchanged through NCCL, because this needs no message between hosts; with peer access, they would
have to agree on the location of every array.
"""

from __future__ import annotations

import socket
import time
from typing import Any

import numpy as np

from ....core.distributed.halo import Halo
from ....core.executor import Array
from ...gpu.arguments import address
from ...simt.operands import CODES
from ..runtime.nccl import RankNcclLinks
from .links import MEMBERS, PEERS, Peers, texts
from .mapped import MappedMemory

#: Time limit in seconds for the first sums and rows of a group.
PATIENCE_OF_TEST = 5.0

#: Rows that every rank sends to every other rank in the test.
ROWS_OF_TEST = 3


class RankPeerLinks(Peers, RankNcclLinks):
    """The links of a rank that accesses the memory of other ranks on its host.

    Parameters
    ----------
    nccl : RankNcclLinks
        Links of the same ranks through NCCL.
    memory : MappedMemory
        The memory that ranks map from each other.
    """

    def __init__(self, nccl: RankNcclLinks, memory: MappedMemory) -> None:
        RankNcclLinks.__init__(self, nccl.host, nccl.communicator, nccl.nccl)
        self.memory = memory
        stop = np.frombuffer(self.gpu.xp.cuda.alloc_pinned_memory(4), np.int32, 1)
        self.make_windows(stop)
        #: Time (of the clock) at which to stop waiting for other ranks.
        self.deadline = np.inf

    def place(self, array: Array) -> Any:
        """Return a description of an array's location for the other ranks."""
        return self.memory.place(array)

    def reached(self, place: Any) -> int:
        """Return the local address of another rank's array."""
        return self.memory.address(place)

    def push(self, halo: Halo, x: Array, ghosts: Array) -> None:
        """Exchange rows: in a loop through peer access, otherwise through NCCL."""
        if self.gpu.making_program or self.capturing:
            Peers.push(self, halo, x, ghosts)
        else:
            self.send(halo, ghosts, x[halo.send_index])

    def send(self, halo: Halo, ghosts: Array, packed: Array) -> None:
        """Exchange rows through NCCL; the next store into ghosts checks that they were read."""
        RankNcclLinks.send(self, halo, ghosts, packed)
        if not self.gpu.dry:
            begin = int(PEERS.fields["met"][1])  # type: ignore[index]
            self.record[begin : begin + 4].fill(0)

    def is_lost(self) -> bool:
        """Return whether another rank will never answer."""
        return time.perf_counter() > self.deadline or RankNcclLinks.is_lost(self)

    def abort(self) -> None:
        """Abort kernels that wait for such a rank; also abort NCCL if a rank has failed."""
        Peers.abort(self)
        if self.host.heard:
            RankNcclLinks.abort(self)

    def fault(self) -> str | None:
        """Return why sums or rows do not arrive, or None; all ranks must call this."""
        halo = self._halo_of_test()
        x = np.arange(float(ROWS_OF_TEST)).reshape(-1, 1) + 100.0 * self.rank
        block, ghosts = self.gpu.from_host(x), self.gpu.zeros((halo.ghosts, 1), np.float64)
        push = Peers.pusher(self, halo, block, ghosts)
        self.gpu.device.function(f"peer_total__{CODES[np.dtype(np.float64)]}", texts)
        self.host.all(None)  # wait until all ranks have loaded their kernels
        self.deadline = time.perf_counter() + PATIENCE_OF_TEST
        for turn in (1, 2, 3):
            numbers = self.gpu.from_host(np.array([self.rank + 0.5, -turn]))
            self._total(numbers, 0)
            push(ghosts)
            expected = [0.5 * self.size**2, -turn * self.size]
            if self.gpu.to_host(numbers).tolist() != expected:
                return self._why_not("a sum over the ranks is wrong")
            others = [rank for rank in range(self.size) if rank != self.rank]
            rows = np.concatenate([x - 100.0 * (self.rank - rank) for rank in others])
            if not np.array_equal(self.gpu.to_host(ghosts), rows):
                return self._why_not("rows of other ranks do not arrive")
        self.deadline = np.inf
        return None

    def _why_not(self, why: str) -> str:
        late = time.perf_counter() > self.deadline
        return f"no answer within {PATIENCE_OF_TEST:g} s" if late else why

    def _halo_of_test(self) -> Halo:
        rows, size = np.arange(ROWS_OF_TEST), self.size
        sent = [rows if rank != self.rank else rows[:0] for rank in range(size)]
        return Halo(self.gpu, sent, [part.size for part in sent], ROWS_OF_TEST)


def joined_by_memory(nccl: RankNcclLinks, memory: MappedMemory | None = None) -> RankNcclLinks:
    """Return links by peer access; if they fail, return the NCCL links, with the reason.

    All ranks call this function, and all get links of the same kind.
    """
    host = nccl.host
    places = set(host.all(socket.gethostname()))
    if len(places) > 1 or host.size > MEMBERS:
        nccl.reason = f"{host.size} ranks on {len(places)} hosts"
        return nccl
    result: RankPeerLinks | None = None
    memory = memory or MappedMemory(nccl.gpu.xp.cuda.runtime)
    window, why = None, None
    try:
        result = RankPeerLinks(nccl, memory)
        window = result.place(result.window)
    except Exception as error:  # each driver raises its own errors
        why = f"{type(error).__name__}: {error}"
    told = host.all((window, why))
    why = next((reason for _, reason in told if reason), None)
    if why is None and result is not None:
        why = _agreed(nccl, _mapped(result, [place for place, _ in told]))
    if why is None and result is not None:
        why = _agreed(nccl, _tested(result))
    if why is None and result is not None:
        return result
    nccl.reason = f"no memory of other ranks: {why}"
    memory.close()
    host.all(None)  # no rank may free memory that another rank maps
    return nccl


def _mapped(links: RankPeerLinks, windows: list[Any]) -> str | None:
    """Map the windows of all ranks; return the reason of a failure, or None."""
    try:
        links.know(
            [
                address(links.window) if rank == links.rank else links.reached(place)
                for rank, place in enumerate(windows)
            ]
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _tested(links: RankPeerLinks) -> str | None:
    """Return why sums or rows do not arrive, or None."""
    try:
        return links.fault()
    except Exception as error:
        links.stop[0] = 1
        return f"{type(error).__name__}: {error}"


def _agreed(links: RankNcclLinks, why: str | None) -> str | None:
    """Return the first reason among all ranks, or None."""
    found = enumerate(links.host.all(why))
    return next((f"rank {rank}: {reason}" for rank, reason in found if reason), None)
