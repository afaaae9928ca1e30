"""Links between ranks on one host through shared memory.

Loops of ``omp`` run totals and exchanges of rows as native steps, without calls of Python. Other
messages use the links of the host.
"""

from __future__ import annotations

import mmap
import os
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.distributed.ranks import GRACE, RankLinks, RankTransport
from ...core.executor import Array
from ...core.host import cores
from .kernels import called
from .level import native

if TYPE_CHECKING:
    from ...core.distributed.halo import Halo

HostArray = np.ndarray[Any, Any]

#: Folders for the files of shared memory: in memory, or on disk if that is full.
PLACES = ("/dev/shm", tempfile.gettempdir())

#: The kinds of totals, numbered as in ``rank_memory.hpp``.
_SUM, _LARGEST, _NORM = 0, 1, 2

#: Seconds between two checks for the file of another rank.
_LOOK = 1e-4


class SharedFile:
    """Named shared memory that this process created.

    Parameters
    ----------
    name : str
        The file's name without its folder.
    size : int
        Size in bytes.
    begin : callable
        Initializes the memory before other processes can open it.
    """

    def __init__(
        self, name: str, size: int, begin: Callable[[HostArray], None] = lambda memory: None
    ) -> None:
        problem = OSError("there is no place for shared memory")
        for place in PLACES:
            try:
                self._make(Path(place, name), size, begin)
            except OSError as error:
                problem = error
            else:
                return
        raise problem

    def _make(self, path: Path, size: int, begin: Callable[[HostArray], None]) -> None:
        unfinished = path.with_name(path.name + ".new")
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)  # a missing page would be a bus error later
            self.memory = _mapped(descriptor, size)
            begin(self.memory)
            unfinished.rename(path)
        except BaseException:  # also on Ctrl-C, remove the incomplete file
            unfinished.unlink()
            raise
        finally:
            os.close(descriptor)


def remove(name: str) -> None:
    """Remove the name of shared memory; the memory lives until all processes have closed it."""
    for place in PLACES:
        with suppress(OSError):
            Path(place, name).unlink()


def _mapped(descriptor: int, size: int) -> HostArray:
    return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


def opened(name: str) -> HostArray | None:
    """Return the memory that another process created, or None if it does not exist yet."""
    for place in PLACES:
        try:
            descriptor = os.open(Path(place, name), os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            return _mapped(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
    return None


class Health:
    """Checks, while this rank waits for another one, that the other ranks are alive."""

    def __init__(self, host: RankLinks, processes: list[int]) -> None:
        self.host, self.processes = host, processes
        #: Names of shared memory that other ranks may not have opened yet.
        self.names: set[str] = set()
        self._since: float | None = None

    def look(self, rank: int, waited: float = 0.0) -> None:
        """Raise MemberFailed if a rank has failed and the message of ``rank`` does not arrive.

        ``waited`` are the seconds of this wait; a long one warns.
        """
        host, now = self.host, time.perf_counter()
        host.remind(now - waited)
        if not host.listen() and not is_alive(self.processes[rank]):
            host.heard[rank] = f"the process of rank {rank} has ended"
        if not host.heard:
            self._since = None
            return
        self._since = self._since or now
        if now - self._since > GRACE:
            for name in self.names:
                remove(name)
            host.give_up()


def is_alive(process: int) -> bool:
    """Return whether a process of this host is still running."""
    try:
        about = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return about.rpartition(")")[2].split()[0] not in "ZX"  # ended, not yet waited for


def rows_in_memory(links: MemoryLinks, halo: Halo, width: int, name: str) -> Any:
    """Return the native exchange of one halo's rows, which have ``width`` bytes each.

    The memory of a sending rank begins with a 64-byte line for itself and one for each rank. The
    line of a rank holds: the turn that it has read, the offset of its part among the packed bytes,
    the number of packed bytes, whether it reads any, and whether it has opened the file.

    Parameters
    ----------
    width : int
        Bytes per row.
    name : str
        A name for this exchange, unique on the host and equal on all ranks.
    """
    packed, memory = halo.packed * width, None
    if packed:
        size = native().RankRows.memory_bytes(links.size, packed)
        mine = f"{name}-{links.rank}"
        memory = SharedFile(mine, size, partial(_describe, halo, width)).memory
        links.health.names.add(mine)
    sources = [(rank, begin * width, (end - begin) * width) for rank, begin, end in halo.receives]
    names = {rank: f"{name}-{rank}" for rank, _, _ in halo.receives}
    return native().RankRows(
        links.memory,
        links.rank,
        memory,
        packed,
        [rank for rank, _, _ in halo.sends],
        sources,
        partial(_sources, names, links.rank, links.size, links.health.look),
    )


#: Words per line of a header, and the positions of the fields.
_LINE, _BEGIN, _PACKED, _READS, _OPENED = 8, 1, 2, 3, 4


def _header(memory: HostArray, size: int) -> HostArray:
    """Return the lines of the ranks at the beginning of a sending rank's memory."""
    return memory[: 8 * _LINE * (1 + size)].view(np.int64).reshape(1 + size, _LINE)[1:]


def _describe(halo: Halo, width: int, memory: HostArray) -> None:
    """Write the position of each rank's rows."""
    for rank, begin, _ in halo.sends:
        line = _header(memory, rank + 1)[rank]
        line[[_BEGIN, _PACKED, _READS]] = begin * width, halo.packed * width, 1


def _sources(
    names: dict[int, str], rank: int, size: int, look: Callable[[int], None]
) -> list[HostArray]:
    """Wait for the memory of other ranks; the last rank that opens it removes its name."""
    result = []
    for source, name in names.items():
        while (memory := opened(name)) is None:
            look(source)
            time.sleep(_LOOK)
        header = _header(memory, size)
        header[rank, _OPENED] = 1
        if np.array_equal(header[:, _OPENED], header[:, _READS]):
            remove(name)
        result.append(memory)
    return result


class MemoryLinks(RankTransport):
    """The links of a rank that shares memory with the other ranks of its host.

    Parameters
    ----------
    host : RankLinks
        Carries all other messages.
    name : str
        Prefix of the file names; equal on all ranks.
    window : array of uint8
        Memory shared by all ranks.
    processes : list of int
        The process ids of the ranks.
    """

    def __init__(self, host: RankLinks, name: str, window: HostArray, processes: list[int]) -> None:
        super().__init__(host)
        self.name, self.health = name, Health(host, processes)
        self.memory = native().RankMemory(
            window, host.rank, host.size, host.requests, host.size > cores(),
            self.health.look, host.obey,
        )  # fmt: skip
        self._numbers = 0

    def records(self, function: Any) -> bool:
        """Return whether a function is a method of these links: all record native steps."""
        method = getattr(function, "func", function)
        return getattr(method, "__self__", None) is self

    # ---- totals

    def sum(self, array: Array) -> None:
        """Replace a real array by the sum of the arrays of all ranks, in the order of ranks."""
        self._total(array, _SUM, self.host.sum)

    def largest(self, array: Array) -> None:
        """Replace a real array by the element-wise maximum; NaN where any is NaN."""
        self._total(array, _LARGEST, self.host.largest)

    def norm(self, array: Array) -> None:
        """Replace a real array by the root of the sum of the squares over all ranks."""
        self._total(array, _NORM, self.host.norm)

    def _total(self, array: Array, kind: int, otherwise: Callable[[Array], None]) -> None:
        real = array.dtype in (np.float32, np.float64)
        if real and array.flags.c_contiguous and array.nbytes <= native().RankMemory.most:
            self.memory.total(array, kind)
        else:
            called(otherwise, (array,))

    # ---- rows of vectors

    def send(self, halo: Halo, ghosts: Array, packed: Array) -> None:
        """Store the packed rows where the other ranks read them."""
        width = int(packed.shape[1]) * packed.dtype.itemsize
        if width not in halo.tables:
            self._numbers += 1
            halo.tables[width] = rows_in_memory(self, halo, width, f"{self.name}-{self._numbers}")
        halo.mine = halo.tables[width]
        halo.mine.send(packed)

    def receive(self, halo: Halo, ghosts: Array) -> None:
        """Wait for the rows of other ranks, and copy them from their memory."""
        halo.mine.receive(ghosts)


def joined_by_memory(host: RankLinks) -> MemoryLinks | None:
    """Return links through shared memory, or None, with the reason, if ranks cannot share memory.

    All ranks call this function, and either all get links or none does.
    """
    if host.size == 1 or host.block:
        return None
    about = host.all((socket.gethostname(), os.getpid()))
    processes = [process for _, process in about]
    if sys.platform != "linux" or len({place for place, _ in about}) > 1:
        host.reason = "ranks share no memory: they are on several hosts, or not on Linux"
        return None
    name = host.all(f"wollemi-{secrets.token_hex(8)}" if host.rank == 0 else None)[0]
    window, why = None, None
    try:
        if host.rank == 0:
            window = SharedFile(name, native().RankMemory.bytes(host.size)).memory
    except OSError as error:
        why = str(error)
    host.all(None)  # wait until the first rank has created the window
    window = opened(name) if window is None else window
    if window is None or not all(is_alive(process) for process in processes):
        why = why or "it does not see the memory or the processes of other ranks"
    reasons = host.all(why)
    if host.rank == 0:
        remove(name)
    found = next((f"rank {r}: {reason}" for r, reason in enumerate(reasons) if reason), None)
    if found is not None or window is None:
        host.reason = f"no shared memory: {found}"
        return None
    return MemoryLinks(host, name, window, processes)
