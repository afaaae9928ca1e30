"""Links between GPUs of one or several processes through NCCL (from CuPy), on members' streams.

Totals are gathered from all members, and a small kernel adds them up in the order of ranks, so all
members get the same bits. Everything can be captured: a solver's loop remains one graph.

Three rules of NCCL and CUDA determine this module. First, a communicator must outlive all graphs
that contain it, because destroying it waits for them; therefore, communicators are kept and reused.
Second, calls inside of graphs may be mixed with other calls only if NCCL's check for mixing is
disabled (``NCCL_GRAPH_MIXING_SUPPORT=0``), which conditional nodes require; then, no other call may
run while such a graph runs. Third, CUDA may wait for the device when memory is allocated or a
kernel is loaded, while it holds a lock that another member needs to launch its part; therefore,
work outside of graphs waits for a collective operation before the next call of CUDA.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import socket
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.distributed.group import PATIENCE
from ....core.distributed.halo import Halo
from ....core.distributed.ranks import RankTransport
from ....core.distributed.threads import Stage
from ....core.dtypes import real_dtype
from ....core.executor import Array, Executor
from ....core.links import Links, Move
from .gpu_links import DeviceLinks, GpuLinks

if TYPE_CHECKING:
    from ....core.distributed.ranks import RankLinks

_SOURCE = r"""
// all: the numbers of each member, one member after the other; kind 0 sum, 1 largest, 2 norm.
#define TOTAL(T, NAME) \
  extern "C" __global__ void NAME(const T* all, T* total, long long n, int members, int kind) { \
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; \
         i += (long long)gridDim.x * blockDim.x) { \
      T found = kind == 2 ? all[i] * all[i] : all[i]; \
      for (int member = 1; member < members; ++member) { \
        const T other = all[member * n + i]; \
        if (kind == 0) \
          found += other; \
        else if (kind == 2) \
          found += other * other; \
        else if (!(other <= found) && !(found != found)) \
          found = other; \
      } \
      total[i] = kind == 2 ? sqrt(found) : found; \
    } \
  }
TOTAL(float, total_of_members_float)
TOTAL(double, total_of_members_double)
"""

_BLOCK = 128

#: Seconds between two checks for failed ranks.
LOOK = 0.05

#: Communicators that no group uses, by the numbers of their devices.
_FREE: dict[tuple[int, ...], list[list[Any]]] = {}
#: All communicators. Each has an additional reference, so that it is not destroyed even at the end
#: of the process, when graphs may still exist.
_KEPT: set[int] = set()


def _nccl() -> Any:
    """Return CuPy's NCCL module, or None."""
    os.environ.setdefault("NCCL_GRAPH_MIXING_SUPPORT", "0")
    _load_library()
    try:
        from cupy.cuda import nccl
    except ImportError:
        return None
    return nccl if getattr(nccl, "available", True) else None


def _load_library() -> None:
    """Load the library of the wheel nvidia-nccl, because CuPy does not search there."""
    with suppress(ImportError, OSError):
        found = importlib.util.find_spec("nvidia.nccl")
        for folder in (found and found.submodule_search_locations) or ():
            ctypes.CDLL(os.path.join(folder, "lib", "libnccl.so.2"), ctypes.RTLD_GLOBAL)


def linked(members: Sequence[Executor], stage: Stage) -> Sequence[Links] | None:
    """Return links through NCCL, or None if members share a GPU or NCCL is missing."""
    devices = tuple(getattr(member, "ordinal", -1) for member in members)
    alike = all(member.backend == "cuda" for member in members)
    nccl = _nccl() if alike and len(set(devices)) == len(devices) else None
    if nccl is None:
        return None
    free = _FREE.setdefault(devices, [])
    communicators = free.pop() if free else nccl.NcclCommunicator.initAll(list(devices))
    for communicator in communicators:
        if id(communicator) not in _KEPT:
            _KEPT.add(id(communicator))
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(communicator))
    health = _Health()
    weakref.finalize(stage, _give_back, health, free, communicators).atexit = False
    return [
        NcclLinks(stage, member.as_member(None), rank, communicator, nccl, health)
        for rank, (member, communicator) in enumerate(zip(members, communicators, strict=True))
    ]


class _Health:
    """Whether communicators can be reused."""

    aborted = False


def _give_back(health: _Health, free: list[list[Any]], communicators: list[Any]) -> None:
    if not health.aborted:
        free.append(communicators)


class Transport(DeviceLinks):
    """Totals and rows of vectors through NCCL's collective operations."""

    communicator: Any
    nccl: Any
    health: _Health
    _aborted: bool
    _buffers: dict[tuple[int, str], Array]

    def use(self, communicator: Any, nccl: Any, health: _Health) -> None:
        """Set the communicator of this member; ``nccl`` provides NCCL's functions."""
        self.communicator, self.nccl, self._buffers = communicator, nccl, {}
        self.health, self._aborted = health, False

    def abort(self) -> None:
        """Abort this member's device work that waits for a failed member.

        Each member aborts its own communicator. NCCL may then wait for the other members of this
        process and for graphs that wait for NCCL, so a thread makes the call.
        """
        if not self._aborted:
            self._aborted = self.health.aborted = True
            threading.Thread(target=self.communicator.abort, daemon=True).start()

    # ---- totals

    def _total(self, array: Array, kind: int) -> None:
        real = real_dtype(array.dtype)
        count = int(array.size) * (array.dtype.itemsize // real.itemsize)
        buffer = self._buffer(count * self.size, real)
        name = f"total_of_members_{'float' if real == np.float32 else 'double'}"
        function = self.gpu.device.function(name, lambda: _SOURCE)
        if not self.gpu.dry:
            self._settle()
            self.communicator.allGather(
                array.data.ptr, buffer.data.ptr, count, self._type(real), self._stream()
            )
            self.complete()
        blocks = max(1, min(-(-count // _BLOCK), 1024))
        given = [buffer.data.ptr, array.data.ptr, count, np.int32(self.size), np.int32(kind)]
        self.gpu.launch(function, blocks, given, _BLOCK)

    def _settle(self) -> None:
        """Wait for a launched graph, unless this call is recorded in one."""
        if self.graph_runs and not self.capturing:
            self.gpu.xp.cuda.get_current_stream().synchronize()
            self.graph_runs = False

    def _buffer(self, count: int, real: np.dtype[Any]) -> Array:
        """Return memory that is kept, because graphs contain its address."""
        key = count, real.name
        if key not in self._buffers:
            self._buffers[key] = self.gpu.allocate((max(count, 1),), real)
        return self._buffers[key]

    def _type(self, real: np.dtype[Any]) -> int:
        kind = self.nccl.NCCL_FLOAT32 if real == np.float32 else self.nccl.NCCL_FLOAT64
        return int(kind)

    def _stream(self) -> int:
        return int(self.gpu.xp.cuda.get_current_stream().ptr)

    # ---- rows of vectors

    def send(self, halo: Halo, ghosts: Array, packed: Array) -> None:
        """Exchange rows on the member's stream."""
        if self.gpu.dry:
            return
        self._settle()
        self._exchange(halo, ghosts, packed, self._stream())
        self.complete()

    def receive(self, halo: Halo, ghosts: Array) -> None:
        """Do nothing: the rows of others arrive before any later work on the stream."""

    def _exchange(self, halo: Halo, ghosts: Array, packed: Array, stream: int) -> None:
        real = real_dtype(packed.dtype)
        width = int(packed.shape[1]) * packed.dtype.itemsize
        numbers, kind = width // real.itemsize, self._type(real)
        self.nccl.groupStart()
        for rank, begin, end in halo.sends:
            self.communicator.send(
                packed.data.ptr + begin * width, (end - begin) * numbers, kind, rank, stream
            )
        for rank, begin, end in halo.receives:
            self.communicator.recv(
                ghosts.data.ptr + begin * width, (end - begin) * numbers, kind, rank, stream
            )
        self.nccl.groupEnd()


class NcclLinks(Transport, GpuLinks):
    """Links through NCCL between the GPUs of one process."""

    def __init__(
        self,
        stage: Stage,
        executor: Executor,
        rank: int,
        communicator: Any,
        nccl: Any,
        health: _Health,
    ) -> None:
        super().__init__(stage, executor, rank)
        self.use(communicator, nccl, health)


class RankNcclLinks(Transport, RankTransport):
    """Links through NCCL between GPUs of several processes.

    Parameters
    ----------
    host : RankLinks
        Carries the messages of the hosts.
    """

    def __init__(self, host: RankLinks, communicator: Any, nccl: Any) -> None:
        RankTransport.__init__(self, host)
        self.gpu = host.executor
        self.use(communicator, nccl, _Health())

    def complete(self, stream: Any = None) -> None:
        """Wait for a kernel that waits for other ranks, unless one of them has failed."""
        if self.capturing:
            return
        stream = stream or self.gpu.xp.cuda.get_current_stream()
        looked = time.perf_counter()
        while not stream.done:
            now = time.perf_counter()
            if now - looked < LOOK:
                continue
            looked = now
            if self.is_lost():
                self.abort()
                self._end(stream)
                return

    def _end(self, stream: Any) -> None:
        """Wait for the end of aborted kernels; raise MemberFailed if a rank has failed."""
        until = time.perf_counter() + PATIENCE / 2
        while not stream.done and time.perf_counter() < until:
            time.sleep(1e-3)
        if self.host.heard:
            self.host.give_up()

    def is_lost(self) -> bool:
        """Return whether another rank has failed."""
        return self.host.listen()

    def swap(self, moves: Sequence[Move]) -> list[list[Array]]:
        """Send parts of arrays to other ranks through NCCL, and receive theirs."""
        self._settle()
        stream, kind = self._stream(), int(self.nccl.NCCL_FLOAT32)
        counts = [max((end for _, _, end in move.receives), default=0) for move in moves]
        result = [
            [self.gpu.allocate((count,), array.dtype) for array in move.arrays]
            for count, move in zip(counts, moves, strict=True)
        ]
        self.nccl.groupStart()
        for move, made in zip(moves, result, strict=True):
            for source, target in zip(move.arrays, made, strict=True):
                size = target.itemsize  # elements of any type are sent as 4-byte numbers
                words = size // 4
                for rank, begin, end in move.sends:
                    where = source.data.ptr + begin * size
                    self.communicator.send(where, (end - begin) * words, kind, rank, stream)
                for rank, begin, end in move.receives:
                    where = target.data.ptr + begin * size
                    self.communicator.recv(where, (end - begin) * words, kind, rank, stream)
        self.nccl.groupEnd()
        self.complete()
        return result


def linked_ranks(host: RankLinks) -> RankNcclLinks | None:
    """Return links between ranks through NCCL; None if two share a GPU or NCCL is missing.

    All ranks call this, because the first rank creates the communicator's NCCL id.
    """
    gpu: Any = host.executor
    nccl = _nccl() if gpu.backend == "cuda" else None
    device = None
    if nccl is not None:
        gpu.make_current()
        device = gpu.xp.cuda.runtime.deviceGetPCIBusId(gpu.ordinal)
    places = host.all(None if device is None else (socket.gethostname(), device))
    if nccl is None or host.size == 1 or None in places or len(set(places)) < host.size:
        host.reason = "NCCL is missing, or ranks share a GPU"
        return None
    number = host.all(nccl.get_unique_id() if host.rank == 0 else None)[0]
    communicator = nccl.NcclCommunicator(host.size, number, host.rank)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(communicator))  # graphs may outlive the links
    return RankNcclLinks(host, communicator, nccl)
