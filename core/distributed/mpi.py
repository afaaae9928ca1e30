"""Members that are MPI ranks, through mpi4py. Messages are started and then polled."""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ExecutorUnavailable
from ..executor import Executor
from ..host import cores as usable_cores
from ..registry import executor as executor_by_name
from .launched import from_torch, was_launched
from .ranks import GRACE, RankGroup, RankLinks, default_executor

if TYPE_CHECKING:
    from .halo import Halo

HostArray = np.ndarray[Any, Any]

#: Message tags: rows of vectors, and notices that a rank has failed.
ROWS, FAILED = 1, 2

#: A waiting rank polls ``SPINS`` times before it yields the core between two polls (earlier if
#: ranks share cores). It checks for failed ranks at every ``LOOKS``-th poll.
SPINS, LOOKS = 200, 50


def _mpi() -> Any:
    """Return mpi4py's MPI module, whose first import initializes MPI."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ExecutorUnavailable(
            f"groups of processes need mpi4py and an MPI ({error}): pip install "
            '"wollemi[mpi]", and pip install mpich where the site has no MPI'
        ) from None
    except RuntimeError as error:  # no MPI library was found
        raise ExecutorUnavailable(
            f"mpi4py finds no MPI: {error}; load the site's module, or pip install mpich"
        ) from None
    return MPI


class MpiLinks(RankLinks):
    """The links of a member that is an MPI rank.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm
        The communicator of the members; the links use a duplicate of it.
    executor : Executor
        The executor of this rank without links.
    block : int
        Number of rows in a block of a reproducible sum, or 0.
    """

    def __init__(self, communicator: Any, executor: Executor, block: int) -> None:
        self.MPI = _mpi()
        super().__init__(executor, communicator.rank, communicator.size, block)
        self.comm, self.news = communicator.Dup(), communicator.Dup()
        host = communicator.Split_type(self.MPI.COMM_TYPE_SHARED)
        crowded = host.size > usable_cores()
        host.Free()
        self._spins = 2 if crowded else SPINS
        self._sent: list[Any] = []

    # ---- waiting, and failing

    def wait(self, *requests: Any) -> None:
        """Wait for messages; raise MemberFailed if a failed rank will not send them."""
        waiting, every, since = list(requests), self.MPI.Request.Testall, None
        began = 0.0
        for turn in range(sys.maxsize):
            if every(waiting):
                return
            if turn % LOOKS == LOOKS - 1:
                now = time.perf_counter()
                began = began or now
                if self.listen():
                    # A rank may have sent this message before it failed.
                    since = since or now
                    if now - since > GRACE:
                        self.give_up()
                self.remind(began)
            if turn >= self._spins:
                time.sleep(0 if turn < 10 * self._spins else 1e-4)

    def listen(self) -> bool:
        """Receive notices of failures; return whether a rank has failed."""
        status = self.MPI.Status()
        while self.news.Iprobe(source=self.MPI.ANY_SOURCE, tag=FAILED, status=status):
            self.heard[status.source] = str(self.news.recv(source=status.source, tag=FAILED))
        return bool(self.heard)

    def announce(self, message: str) -> None:
        """Send a notice to all other ranks that this rank has failed."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._sent = [self.news.isend(message, dest=r, tag=FAILED) for r in others]

    def forget(self) -> None:
        """Discard the notices that were sent."""
        self._sent = []

    # ---- messages

    def arrays(self, array: HostArray) -> list[HostArray]:
        """Return the arrays of all ranks, in the order of ranks."""
        self.require_usable()
        found = np.empty((self.size, array.size), array.dtype)
        self.wait(self.comm.Iallgather(np.ascontiguousarray(array), found))
        return [row.reshape(array.shape) for row in found]

    def all(self, thing: Any) -> list[Any]:
        """Return the objects that the ranks pass, in the order of ranks."""
        text = np.frombuffer(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), np.uint8)
        sizes = [int(size[0]) for size in self.arrays(np.array([text.size], np.int64))]
        found = self._gatherv(text, sizes)
        ends = np.cumsum([0, *sizes])
        return [pickle.loads(found[a:b].data) for a, b in pairwise(ends)]

    def _gatherv(self, sent: HostArray, sizes: list[int]) -> HostArray:
        result = np.empty(sum(sizes), np.uint8)
        self.wait(self.comm.Iallgatherv([sent, self.MPI.BYTE], [result, sizes, self.MPI.BYTE]))
        return result

    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to rank ``r``; return the objects sent to this rank."""
        self.require_usable()
        texts = [pickle.dumps(thing, pickle.HIGHEST_PROTOCOL) for thing in things]
        sent = np.array([len(text) for text in texts], np.int64)
        received = np.empty_like(sent)
        self.wait(self.comm.Ialltoall(sent, received))
        mine = np.frombuffer(b"".join(texts), np.uint8)
        found = np.empty(int(received.sum()), np.uint8)
        byte = self.MPI.BYTE
        self.wait(
            self.comm.Ialltoallv(
                [mine, (sent, _starts(sent)), byte], [found, (received, _starts(received)), byte]
            )
        )
        ends = np.cumsum([0, *received.tolist()])
        return [pickle.loads(found[a:b].data) for a, b in pairwise(ends)]

    def gathered(self, blocks: HostArray) -> HostArray:
        """Return the rows of the arrays of all ranks, in the order of ranks."""
        mine = np.ascontiguousarray(blocks)
        width = int(np.prod(mine.shape[1:])) * mine.itemsize
        sizes = [int(rows[0]) * width for rows in self.arrays(np.array([mine.shape[0]], np.int64))]
        found = self._gatherv(mine.reshape(-1).view(np.uint8), sizes)
        return found.view(mine.dtype).reshape(-1, *mine.shape[1:])

    def begin(self, halo: Halo, packed: HostArray) -> None:
        """Start to send rows, and to receive rows from other ranks."""
        self.require_usable()
        width = int(np.prod(packed.shape[1:])) * packed.itemsize
        halo.mine = (packed, np.empty(halo.ghosts * width, np.uint8), [])
        _, arriving, requests = halo.mine
        for rank, begin, end in halo.receives:
            part = arriving[begin * width : end * width]
            requests.append(self.comm.Irecv([part, self.MPI.BYTE], source=rank, tag=ROWS))
        for rank, begin, end in halo.sends:
            requests.append(self.comm.Isend([packed[begin:end], self.MPI.BYTE], rank, ROWS))

    def finish(self, halo: Halo, ghosts: HostArray) -> None:
        """Wait for the rows of other ranks, and store them."""
        _, arriving, requests = halo.mine
        if requests:
            self.wait(*requests)
        ghosts[...] = arriving.view(ghosts.dtype).reshape(ghosts.shape)
        halo.mine = None


def _starts(sizes: HostArray) -> HostArray:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


class MpiGroup(RankGroup):
    """The ranks of a communicator as members of a group; every rank has its own object."""

    kind = "mpi"


def world(
    executor: Executor | str | None = None,
    *,
    communicator: Any = None,
    reproducible: bool = False,
) -> RankGroup:
    """Return the ranks of MPI, or of ``torchrun``, as a group; collective.

    If a launcher has set ``RANK``, ``WORLD_SIZE`` and ``MASTER_ADDR``, and MPI has not started this
    process, :func:`wollemi.distributed.from_torch` makes the group.

    Parameters
    ----------
    executor : Executor or str, optional
        Executor of this rank. If the host has a GPU for each of its ranks, the default is the GPU
        with the number of the rank on its host; otherwise it is ``omp`` with this rank's share of
        the cores. NVIDIA GPUs communicate by NCCL.
    communicator : mpi4py.MPI.Comm, optional
        The communicator whose ranks are the members; ``MPI.COMM_WORLD`` by default.
    reproducible : bool
        As for :class:`wollemi.distributed.Group`.

    Notes
    -----
    Start the ranks by ``mpiexec -n 4 python -m mpi4py solve.py``. This function ensures that an
    uncaught error ends all ranks, with and without ``-m mpi4py``.

    Raises
    ------
    ExecutorUnavailable
        If mpi4py or MPI is missing, or if the launcher belongs to another MPI installation, so that
        each rank would solve the whole problem alone.
    """
    if communicator is None and was_launched() and not _started_by_mpi():
        return from_torch(None, executor, reproducible=reproducible)
    MPI = _mpi()
    if communicator is None:
        communicator = MPI.COMM_WORLD
        _require_all_ranks(MPI)
    member = executor_by_name(_own_executor(communicator) if executor is None else executor)
    group = MpiGroup(partial(MpiLinks, communicator), member, reproducible)
    _end_all_on_errors(MPI)
    atexit.register(_end_if_failed, MPI, group.host)
    return group


#: Environment variables by which MPI launchers give a process its rank.
_MPI_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")
#: Environment variables by which MPI launchers give a process the number of ranks.
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def _require_all_ranks(MPI: Any) -> None:
    """Raise an error if the launcher started several ranks but the MPI library sees only one."""
    started = max(int(os.environ.get(name, "1")) for name in SIZE_VARIABLES)
    if started > 1 and MPI.COMM_WORLD.size == 1:
        library = MPI.Get_library_version().splitlines()[0].strip(" \0")
        raise ExecutorUnavailable(
            f"the launcher has started {started} ranks, and the MPI of mpi4py ({library}) sees "
            "one: the launcher belongs to another MPI. Use the mpiexec of that MPI, or install "
            "mpi4py for the MPI of the launcher: "
            "pip install --no-binary mpi4py --force-reinstall mpi4py"
        )


def is_rank() -> bool:
    """Return whether an MPI launcher, or ``torchrun``, started this process as a rank."""
    return was_launched() or any(name in os.environ for name in _MPI_VARIABLES)


def _started_by_mpi() -> bool:
    """Return whether MPI runs in this process, or an MPI launcher started the process."""
    loaded = "mpi4py.MPI" in sys.modules
    return loaded or any(name in os.environ for name in _MPI_VARIABLES)


def _own_executor(communicator: Any) -> str:
    """Return the default executor of a rank."""
    host = communicator.Split_type(_mpi().COMM_TYPE_SHARED)
    rank, size = host.rank, host.size
    host.Free()
    return default_executor(rank, size)


_HOOKED: list[Any] = []


def _end_all_on_errors(MPI: Any) -> None:
    """Make an uncaught error end all ranks: otherwise the others would wait for this one."""
    if _HOOKED:
        return
    before = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        before(kind, error, traceback)
        sys.stderr.flush()
        sys.stdout.flush()
        if MPI.Is_initialized() and not MPI.Is_finalized():
            time.sleep(GRACE)  # mpiexec must print the message before Abort ends it
            MPI.COMM_WORLD.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = hook
    _HOOKED.append(hook)


def _end_if_failed(MPI: Any, links: RankLinks) -> None:
    """End all ranks with this one if messages of a failed group are still in transit."""
    time.sleep(0 if links.failed is None else 2 * GRACE)  # so that the others receive the notice
    if not links.recover() and MPI.Is_initialized() and not MPI.Is_finalized():
        print(f"wollemi: all ranks end, because one has failed: {links.failed}", file=sys.stderr)
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
