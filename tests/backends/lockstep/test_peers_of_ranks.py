"""Links by mapped memory between two processes, with kernels on an emulated wave.

Files that both processes map stand for the memory of GPUs, their names for handles of CUDA's IPC,
and pipes for MPI and for NCCL.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from wollemi.backends.cuda.peers import ranks
from wollemi.backends.cuda.peers.mapped import MappedMemory
from wollemi.backends.cuda.runtime.nccl import RankNcclLinks
from wollemi.core.distributed.halo import Halo
from wollemi.core.errors import MemberFailed
from wollemi.core.operation import Shrunk

from ..needs import tool
from .build import compiler
from .test_peers import flat_library

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

BYTES = 1 << 21


class DeviceArray(np.ndarray):
    """An array with an address where CuPy's have it."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


class Runtime:
    """The functions of ``cupy.cuda.runtime`` that map memory of other processes."""

    cudaIpcMemLazyEnablePeerAccess = 1

    def __init__(self, name: Path) -> None:
        self.begin, self.name, self.opened = mapped(name), name, 0

    def ipcGetMemHandle(self, begin: int) -> bytes:
        assert begin == self.begin
        return str(self.name).encode()

    def ipcOpenMemHandle(self, handle: bytes, flags: int) -> int:
        self.opened += 1
        return mapped(Path(handle.decode()))

    def ipcCloseMemHandle(self, place: int) -> None:
        self.opened -= 1


def mapped(name: Path) -> int:
    with name.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), BYTES)
    KEPT.append(memory)
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


KEPT: list[Any] = []


class Gpu:
    """The part of an executor on a GPU that links use; kernels run in a thread."""

    backend, dry, making_program, captures_nothing = "cuda", False, False, False

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.used, self.running = runtime, 0, threading.Thread()
        self.xp = SimpleNamespace(
            cuda=SimpleNamespace(
                runtime=runtime,
                alloc_pinned_memory=bytearray,
                get_current_stream=lambda: Stream(self),
            )
        )
        self.device = SimpleNamespace(function=lambda name, texts: name, multiprocessors=2)

    def allocate(self, shape: Any, dtype: Any) -> Any:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        place, self.used = self.runtime.begin + self.used, self.used + -(-size // 256) * 256
        memory = (ctypes.c_char * size).from_address(place)
        return np.frombuffer(memory, dtype).reshape(shape).view(DeviceArray)

    def zeros(self, shape: Any, dtype: Any) -> Any:
        made = self.allocate(shape, dtype)
        made[...] = 0
        return made

    def from_host(self, array: Any) -> Any:
        made = self.allocate(array.shape, array.dtype)
        made[...] = array
        return made

    def to_host(self, array: Any) -> Any:
        return np.array(array)

    def copy_into(self, target: Any, source: Any) -> None:
        target[...] = source

    def synchronize(self) -> None:
        pass

    def launch(self, function: Any, blocks: int, arguments: Any, block: int) -> None:
        given = [
            ctypes.c_double(a) if isinstance(a, np.float64) else ctypes.c_int64(int(a))
            for a in arguments
        ]
        if self.running.is_alive():
            self.running.join()  # kernels of a stream follow each other
        self.running = threading.Thread(
            target=flat_library().run, args=(function, blocks, *given), daemon=True
        )
        self.running.start()


class Stream:
    """A stream that is done when the kernel's thread has ended."""

    ptr = 0

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    @property
    def done(self) -> bool:
        return not self.gpu.running.is_alive()

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        self.gpu.running.join()


class Host:
    """Messages of the hosts of two ranks."""

    size, block, reason = 2, 0, ""

    def __init__(self, rank: int, pipe: Connection, news: Connection, gpu: Gpu) -> None:
        self.rank, self.pipe, self.news, self.executor = rank, pipe, news, gpu
        self.heard: dict[int, str] = {}

    def all(self, thing: Any) -> list[Any]:
        self.pipe.send(thing)
        other = self.pipe.recv()
        return [thing, other] if self.rank == 0 else [other, thing]

    def listen(self) -> bool:
        if self.news.poll():
            self.heard[1 - self.rank] = self.news.recv()
        return bool(self.heard)

    def give_up(self) -> None:
        raise MemberFailed(f"another rank failed: {self.heard}")


class Nccl:
    """A communicator of NCCL, and its functions."""

    NCCL_FLOAT32, NCCL_FLOAT64 = 7, 8

    def __init__(self, host: Host) -> None:
        self.host, self.sent, self.wanted = host, b"", (0, 0)

    def groupStart(self) -> None:
        self.sent, self.wanted = b"", (0, 0)

    def send(self, place: int, count: int, kind: int, rank: int, stream: int) -> None:
        self.sent = ctypes.string_at(place, count * (4 if kind == 7 else 8))

    def recv(self, place: int, count: int, kind: int, rank: int, stream: int) -> None:
        self.wanted = place, count * (4 if kind == 7 else 8)

    def groupEnd(self) -> None:
        found = self.host.all(self.sent)[1 - self.host.rank]
        place, size = self.wanted
        ctypes.memmove(place, found[:size], size)

    def abort(self) -> None:
        pass


Program = Callable[[RankNcclLinks, MappedMemory], Any]


def of_two_processes(program: Program, folder: Path) -> list[Any]:
    """Return the results of a program of two ranks, each in a process of its own."""
    flat_library()  # compiled once
    names = [folder / "0", folder / "1"]
    for name in names:
        name.write_bytes(bytes(BYTES))
    hosts, news, results = Pipe(), Pipe(), [Pipe(), Pipe()]
    children = []
    for rank in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads hold no locks here
            child = os.fork()
        if child == 0:
            found: Any = None
            try:
                found = program(*links_of(rank, hosts[rank], news[rank], names[rank]))
            except BaseException:
                found = traceback.format_exc()
            results[rank][1].send(found)
            os._exit(0)
        children.append(child)
    try:
        assert all(mine.poll(20) for mine, _ in results), "no answer of a rank"
        return [mine.recv() for mine, _ in results]
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)


def links_of(
    rank: int, pipe: Connection, news: Connection, name: Path
) -> tuple[RankNcclLinks, MappedMemory]:
    runtime = Runtime(name)
    host: Any = Host(rank, pipe, news, Gpu(runtime))
    nccl = Nccl(host)
    return RankNcclLinks(host, nccl, nccl), MappedMemory(runtime, lambda place: runtime.begin)


def exchanges(nccl: RankNcclLinks, memory: MappedMemory) -> Any:
    """Make totals and exchange rows, by stores and by NCCL in turn."""
    links: Any = ranks.joined_by_memory(nccl, memory)
    gpu, rank = links.gpu, links.rank
    rows, none = np.array([2, 0, 1]), np.zeros(0, np.int64)
    halo = Halo(gpu, [none, rows] if rank == 0 else [rows, none], [3 * rank, 3 - 3 * rank], 3)
    ghosts, found = gpu.zeros((3, 2), np.float64), []
    for turn in range(4):
        x = gpu.from_host(np.arange(6.0).reshape(3, 2) + 10 * rank + 100 * turn)
        if turn % 2:
            links.push(halo, x, ghosts)  # outside of loops: by NCCL
        else:
            links.pusher(halo, x, ghosts)(ghosts)
        numbers = gpu.from_host(np.array([rank + turn + 0.1, 7.0], np.float32))
        links.largest(numbers)
        found.append((ghosts.tolist(), numbers.tolist(), x.tolist()))
    return type(links).__name__, links.fuses, found, memory._runtime.opened


def test_ranks_of_a_host_store_into_each_others_memory(tmp_path: Path) -> None:
    found = of_two_processes(exchanges, tmp_path)
    for mine, other in (found, found[::-1]):
        assert mine[:2] == ("RankPeerLinks", True), mine
        assert mine[3] == 1  # an allocation is mapped once
        for turn, (ghosts, numbers, _) in enumerate(mine[2]):
            sent = np.array(other[2][turn][2])
            np.testing.assert_array_equal(ghosts, sent[[2, 0, 1]])
            np.testing.assert_array_equal(np.float32(numbers), np.float32([turn + 1.1, 7.0]))


SUMS = SimpleNamespace(
    parameters=[SimpleNamespace(name=n) for n in ("h", "before", "after", "status")],
    totals={"h": "sum", "before": "norm"},
    changed=None,
)
SOME_SUMS = SimpleNamespace(
    parameters=SUMS.parameters, totals={"h": "sum"}, changed=Shrunk("after", "before", 0.1)
)


def numbers_of(rank: int, turn: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng([rank, turn]).standard_normal(shape)


def many_messages(nccl: RankNcclLinks, memory: MappedMemory) -> Any:
    """Send messages of all kinds and sizes in a random order; a rank is late now and then."""
    links: Any = ranks.joined_by_memory(nccl, memory)
    gpu, rank = links.gpu, links.rank
    executor: Any = SimpleNamespace(kernels=SimpleNamespace(find=lambda _: lambda *given: None))
    rows, none = np.array([2, 0, 1]), np.zeros(0, np.int64)
    halo = Halo(gpu, [none, rows] if rank == 0 else [rows, none], [3 * rank, 3 - 3 * rank], 3)
    pushed = [(gpu.zeros((3, 2), np.float64), gpu.zeros((3, 2), np.float64)) for _ in range(2)]
    pushes = [links.pusher(halo, x, ghosts) for x, ghosts in pushed]
    h, before, after = (gpu.zeros(shape, np.float64) for shape in ((2, 2), (2,), (2,)))
    long, status = gpu.zeros((3,), np.float64), SimpleNamespace(stop=gpu.zeros((2,), np.uint8))
    order, late = np.random.default_rng(7), np.random.default_rng(rank)
    for turn in range(16):
        if late.random() < 0.2:
            time.sleep(2e-3 * late.random())
        kind = order.integers(5)
        if kind == 0:
            count = int(order.integers(1, 4))
            long[:count] = numbers_of(rank, turn, (count,))
            links.sum(long[:count])
            same = long[:count] == sum(numbers_of(r, turn, (count,)) for r in range(2))
        elif kind < 3:
            x, ghosts = pushed[kind - 1]
            x[...] = numbers_of(rank, turn, (3, 2))
            pushes[kind - 1](ghosts)
            same = ghosts == numbers_of(1 - rank, turn, (3, 2))[rows]
        else:
            h[...], before[...] = (
                numbers_of(rank, turn, (2, 2)),
                numbers_of(rank, turn + 1000, (2,)),
            )
            some = kind == 4
            if some:
                before[...] = 1
                after[...] = np.where(order.random(2) < 0.4, 0.05, 0.5)
            links._run_with_totals(
                executor, SOME_SUMS if some else SUMS, (h, before, after, status)
            )
            totals = sum(numbers_of(r, turn, (2, 2)) for r in range(2))
            own = numbers_of(rank, turn, (2, 2))
            same = h == (np.where(after < 0.1, totals, own) if some else totals)
        if not np.all(same):
            return turn, int(kind)
    return "right"


def test_messages_of_all_kinds_follow_each_other(tmp_path: Path) -> None:
    assert of_two_processes(many_messages, tmp_path) == ["right"] * 2


def without_handles(nccl: RankNcclLinks, memory: MappedMemory) -> Any:
    def refused(handle: bytes, flags: int) -> int:
        raise RuntimeError("invalid device context")

    if nccl.rank == 1:
        memory._runtime.ipcOpenMemHandle = refused
    links = ranks.joined_by_memory(nccl, memory)
    return links is nccl, links.reason, memory._runtime.opened


def test_ranks_that_cannot_map_memory_keep_nccl_and_say_why(tmp_path: Path) -> None:
    why = "no memory of other ranks: rank 1: RuntimeError: invalid device context"
    assert of_two_processes(without_handles, tmp_path) == [(True, why, 0)] * 2


def with_another_memory(nccl: RankNcclLinks, memory: MappedMemory) -> Any:
    ranks.PATIENCE_OF_TEST = 0.1
    if nccl.rank == 0:
        wrong = (ctypes.c_char * BYTES)()
        KEPT.append(wrong)
        memory._runtime.ipcOpenMemHandle = lambda handle, flags: ctypes.addressof(wrong)
    began = time.perf_counter()
    links = ranks.joined_by_memory(nccl, memory)
    return links is nccl, links.reason, time.perf_counter() - began < 2


def test_stores_that_do_not_arrive_are_noticed(tmp_path: Path) -> None:
    for is_nccl, reason, is_soon in of_two_processes(with_another_memory, tmp_path):
        assert is_nccl and is_soon and "no answer within 0.1 s" in reason


def on_two_hosts(nccl: RankNcclLinks, memory: MappedMemory) -> Any:
    ranks.socket = SimpleNamespace(gethostname=lambda: f"host-{nccl.rank}")
    return ranks.joined_by_memory(nccl, memory).reason


def test_ranks_of_two_hosts_keep_nccl(tmp_path: Path) -> None:
    assert of_two_processes(on_two_hosts, tmp_path) == ["2 ranks on 2 hosts"] * 2


def left_alone(nccl: RankNcclLinks, memory: MappedMemory) -> Any:
    links: Any = ranks.joined_by_memory(nccl, memory)
    if links.rank == 1:
        time.sleep(0.1)
        links.host.news.send("no memory left (on purpose)")
        return None
    began = time.perf_counter()
    try:
        links.sum(links.gpu.zeros((4,), np.float64))
    except MemberFailed as error:
        return str(error), time.perf_counter() - began < 2


def test_a_rank_does_not_wait_on_its_gpu_for_one_that_failed(tmp_path: Path) -> None:
    why = "another rank failed: {1: 'no memory left (on purpose)'}"
    assert of_two_processes(left_alone, tmp_path) == [(why, True), None]
