"""Members that are ranks of MPI, by mpi4py.

Messages are started and then polled, so that a waiting rank hears of failed ranks, and of Ctrl-C.
"""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ExecutorUnavailable, MemberFailed
from ..executor import Executor
from ..host import cores as usable_cores
from ..registry import backend_names, host_name
from ..registry import executor as executor_by_name
from .group import PATIENCE, checked_block
from .host_links import HostLinks
from .signals import interrupts_go_to

if TYPE_CHECKING:
    from .halo import Halo

HostArray = np.ndarray[Any, Any]

#: Tags of rows of vectors, and of the news that a rank has failed.
ROWS, FAILED = 1, 2

#: How often a waiting rank asks before it lets others have the core between two questions (sooner
#: where ranks share cores), and how often before it looks whether another rank has failed.
SPINS, LOOKS = 200, 50

#: Seconds that a message may still take after a rank is known to have failed.
GRACE = 1.0


def _mpi() -> Any:
    """Return mpi4py's MPI, which is initialized when it is first imported."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ExecutorUnavailable(
            f"groups of processes need mpi4py and an MPI ({error}): pip install "
            '"wollemi[mpi]", and pip install mpich where the site has no MPI'
        ) from None
    except RuntimeError as error:  # no library of MPI is found
        raise ExecutorUnavailable(
            f"mpi4py finds no MPI: {error}; load the site's module, or pip install mpich"
        ) from None
    return MPI


class MpiLinks(HostLinks):
    """The links of a member that is a rank of MPI.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm
        The communicator of the members; a duplicate of it is used.
    executor : Executor
        Of this rank, as one that is alone.
    block : int
        Rows of a block of reproducible sums, or 0.
    """

    def __init__(self, communicator: Any, executor: Executor, block: int) -> None:
        self.MPI = _mpi()
        super().__init__(executor, communicator.rank, communicator.size, block)
        self.comm, self.news = communicator.Dup(), communicator.Dup()
        host = communicator.Split_type(self.MPI.COMM_TYPE_SHARED)
        crowded = host.size > usable_cores()
        host.Free()
        self._spins = 2 if crowded else SPINS
        self.asked = 0
        #: The reason why the group cannot go on, and the messages of the failed ranks.
        self.failed: str | None = None
        self.heard: dict[int, str] = {}
        self._told: list[Any] = []

    # ---- waiting, and failing

    def wait(self, *requests: Any) -> None:
        """Wait for messages; raise MemberFailed if they do not come because a rank has failed."""
        waiting, every, since = list(requests), self.MPI.Request.Testall, None
        for turn in range(sys.maxsize):
            if every(waiting):
                return
            if turn % LOOKS == LOOKS - 1 and self._listen():
                # Who has failed may have sent this message before.
                since = since or time.perf_counter()
                if time.perf_counter() - since > GRACE:
                    self.failed = next(iter(self.heard.values()))
                    self._raise()
            if turn >= self._spins:
                time.sleep(0 if turn < 10 * self._spins else 1e-4)

    def _listen(self) -> bool:
        """Take the news that have come; return whether a rank has failed."""
        status = self.MPI.Status()
        while self.news.Iprobe(source=self.MPI.ANY_SOURCE, tag=FAILED, status=status):
            self.heard[status.source] = str(self.news.recv(source=status.source, tag=FAILED))
        return bool(self.heard)

    def _raise(self) -> None:
        raise MemberFailed(
            f"another rank failed: {self.failed}; the group is of no more use, and all ranks end "
            "when this one does"
        )

    def tell(self, error: BaseException) -> None:
        """Tell the other ranks that this one has failed."""
        if self.failed is None:
            name = f"rank {self.rank} of {self.size}, {self.executor.name}"
            self.failed = f"{name}: {type(error).__name__}: {error}"
            others = [rank for rank in range(self.size) if rank != self.rank]
            self._told = [self.news.isend(self.failed, dest=r, tag=FAILED) for r in others]

    def recover(self, patience: float = PATIENCE) -> bool:
        """Return whether messages may be sent: no rank failed, or all did in the same call.

        All ranks raise errors that follow from sums, such as a right-hand side that is not finite.
        Then no rank waits for another one. Then none of them waits for another one.
        """
        if self.failed is None:
            return True
        until = time.perf_counter() + patience
        while self._told and time.perf_counter() < until:
            self._listen()
            if len(self.heard) == self.size - 1:
                self.failed, self.heard, self._told = None, {}, []
                return True
            time.sleep(1e-3)
        return self.size == 1

    def _usable(self) -> None:
        if not self.recover():
            self._raise()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Within, Ctrl-C is a request to stop, and errors are told to the other ranks."""
        before = self.interrupts_seen

        def asked(times: int) -> None:
            self.asked += 1

        with interrupts_go_to(asked) as mine:
            try:
                yield
            except (KeyboardInterrupt, MemberFailed):
                self.asked = self.interrupts_seen = max(self.asked, self.interrupts_seen)
                raise
            except Exception as error:  # the other members must hear of any error
                self.tell(error)
                raise
        if mine and self.interrupts_seen == before:
            raise KeyboardInterrupt

    # ---- messages

    def arrays(self, array: HostArray) -> list[HostArray]:
        """Return the arrays of all ranks, in order of ranks."""
        self._usable()
        found = np.empty((self.size, array.size), array.dtype)
        self.wait(self.comm.Iallgather(np.ascontiguousarray(array), found))
        return [row.reshape(array.shape) for row in found]

    def all(self, thing: Any) -> list[Any]:
        """Return the objects that the ranks hand over, in order of ranks."""
        text = np.frombuffer(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), np.uint8)
        sizes = [int(size[0]) for size in self.arrays(np.array([text.size], np.int64))]
        found = self._gatherv(text, sizes)
        ends = np.cumsum([0, *sizes])
        return [pickle.loads(found[a:b].data) for a, b in pairwise(ends)]

    def _gatherv(self, mine: HostArray, sizes: list[int]) -> HostArray:
        found = np.empty(sum(sizes), np.uint8)
        self.wait(self.comm.Iallgatherv([mine, self.MPI.BYTE], [found, sizes, self.MPI.BYTE]))
        return found

    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to rank ``r``; return the objects that the ranks sent to this one."""
        self._usable()
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
        """Return the rows of the arrays of all ranks, one below the other."""
        mine = np.ascontiguousarray(blocks)
        width = int(np.prod(mine.shape[1:])) * mine.itemsize
        sizes = [int(rows[0]) * width for rows in self.arrays(np.array([mine.shape[0]], np.int64))]
        found = self._gatherv(mine.reshape(-1).view(np.uint8), sizes)
        return found.view(mine.dtype).reshape(-1, *mine.shape[1:])

    def interrupts(self) -> int:
        """Return how often this rank was asked to stop."""
        return self.asked

    def begin(self, halo: Halo, packed: HostArray) -> None:
        """Start to send rows, and to receive the rows of others."""
        self._usable()
        width = int(np.prod(packed.shape[1:])) * packed.itemsize
        halo.mine = (packed, np.empty(halo.ghosts * width, np.uint8), [])
        _, arriving, requests = halo.mine
        for rank, begin, end in halo.receives:
            part = arriving[begin * width : end * width]
            requests.append(self.comm.Irecv([part, self.MPI.BYTE], source=rank, tag=ROWS))
        for rank, begin, end in halo.sends:
            requests.append(self.comm.Isend([packed[begin:end], self.MPI.BYTE], rank, ROWS))

    def finish(self, halo: Halo, ghosts: HostArray) -> None:
        """Wait for the rows of others, and write them."""
        _, arriving, requests = halo.mine
        if requests:
            self.wait(*requests)
        ghosts[...] = arriving.view(ghosts.dtype).reshape(ghosts.shape)
        halo.mine = None


def _starts(sizes: HostArray) -> HostArray:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


class MpiGroup:
    """The ranks of a communicator as members of a group; every rank has one of its own.

    Made by :func:`world`.

    Attributes
    ----------
    executor : Executor
        This rank's member.
    rank, size : int
        Which rank this is, and of how many.
    """

    def __init__(self, communicator: Any, executor: Executor, reproducible: bool) -> None:
        alone = executor.as_member(None)
        self.links = MpiLinks(communicator, alone, checked_block([alone], reproducible))
        self.reproducible = reproducible
        self.executor = alone.as_member(self.links)
        self.rank, self.size = self.links.rank, self.links.size

    @property
    def block(self) -> int:
        """Rows of a block of reproducible sums, or 0."""
        return self.links.block

    @property
    def name(self) -> str:
        """Its kind, and this rank's executor."""
        return f"mpi:{self.size} ({self.executor.name} on rank {self.rank})"

    @property
    def full_name(self) -> str:
        """The name, as messages have it."""
        return f"a group of {self.size} ranks"

    def __repr__(self) -> str:
        return f"<MpiGroup of {self.size}: rank {self.rank} on {self.executor.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from ..errors import InvalidArgument

        raise InvalidArgument("a group cannot be pickled; pickle A.to_local()")

    def run(self, program: Callable[[Executor], Any]) -> Any:
        """Run a function on this rank's member and return its result.

        While it runs, Ctrl-C is a request that all ranks obey in the same sum, and an exception of
        this rank is sent to the others, which raise :class:`wollemi.errors.MemberFailed`.
        """
        with self.links.guarded():
            return program(self.executor)


def world(
    executor: Executor | str | None = None,
    *,
    communicator: Any = None,
    reproducible: bool = False,
) -> MpiGroup:
    """Return the ranks of MPI as a group.

    Parameters
    ----------
    executor : Executor or str, optional
        Of this rank. By default its GPU, by the number of the rank on its host, where there are
        GPUs for all ranks of the host, else ``omp`` with its share of the cores.
    communicator : mpi4py.MPI.Comm, optional
        The communicator with the members as ranks; ``MPI.COMM_WORLD`` by default.
    reproducible : bool
        As for :class:`wollemi.distributed.Group`.

    Notes
    -----
    Start the ranks by ``mpiexec -n 4 python -m mpi4py solve.py``. An uncaught error ends all ranks,
    with and without ``-m mpi4py``: this function ensures it.

    Raises
    ------
    ExecutorUnavailable
        If mpi4py or MPI is missing.
    """
    MPI = _mpi()
    communicator = MPI.COMM_WORLD if communicator is None else communicator
    member = executor_by_name(_own_executor(communicator) if executor is None else executor)
    group = MpiGroup(communicator, member, reproducible)
    _end_all_on_errors(MPI)
    atexit.register(_end_if_failed, MPI, group.links)
    return group


def _own_executor(communicator: Any) -> str:
    """Return the executor that a rank has by default."""
    host = communicator.Split_type(_mpi().COMM_TYPE_SHARED)
    rank, size = host.rank, host.size
    host.Free()
    for name in ("cuda", "hip"):
        if name in backend_names():
            try:
                from ..registry import backend

                devices = backend(name).devices()
            except Exception:  # no library, no driver or no device: each vendor has its own errors
                continue
            if len(devices) >= size:
                return devices[rank]
            if len(devices) == 1 and os.environ.get("SLURM_JOB_ID"):
                return devices[0]  # the system shows each rank its own
    cores = usable_cores()
    everybody = os.cpu_count() or cores
    if host_name() != "omp":
        return host_name()
    # Ranks with cores of their own use them all; others share the available cores.
    return f"omp:{max(1, cores if cores <= everybody // size else cores // size)}"


_HOOKED: list[Any] = []


def _end_all_on_errors(MPI: Any) -> None:
    """Let an uncaught error end all ranks: the others would wait for this one."""
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
            time.sleep(GRACE)  # mpiexec passes on the message, and Abort ends it
            MPI.COMM_WORLD.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = hook
    _HOOKED.append(hook)


def _end_if_failed(MPI: Any, links: MpiLinks) -> None:
    """End all ranks with this one if messages of a failed group are under way."""
    time.sleep(0 if links.failed is None else 2 * GRACE)  # for the others to hear of it, too
    if not links.recover() and MPI.Is_initialized() and not MPI.Is_finalized():
        print(f"wollemi: all ranks end, because one has failed: {links.failed}", file=sys.stderr)
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
