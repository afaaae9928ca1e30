"""Members that are processes: notices of failures, and groups of processes.

A rank waits by polling, so that it notices failed ranks and Ctrl-C.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ..caller import warn_caller
from ..errors import InvalidArgument, MemberFailed
from ..executor import Array, Executor
from ..host import cores
from ..links import Links
from ..registry import backend, backend_names, host_name
from .group import PATIENCE, checked_block
from .host_links import HostLinks
from .signals import interrupts_go_to

HostArray = np.ndarray[Any, Any]

#: Time in seconds for which a rank still waits for messages after it has learned of a failure.
GRACE = 1.0

#: Time in seconds for which a rank waits for other ranks before it warns its user.
LONG_WAIT = 30.0


class RankLinks(HostLinks):
    """The links of a member that is a process.

    Parameters
    ----------
    executor : Executor
        The executor of this rank without links.
    rank, size : int
        Number of this rank, and number of ranks.
    block : int
        Number of rows in a block of a reproducible sum, or 0.

    Attributes
    ----------
    failed : str or None
        The reason why the group cannot continue.
    heard : dict
        The messages of the failed ranks, by rank.
    requests : array of int64, shape (2,)
        The number of stop requests that this rank has received, and the number that the group has
        obeyed. Native code reads them.
    """

    def __init__(self, executor: Executor, rank: int, size: int, block: int) -> None:
        self.requests = np.zeros(2, np.int64)
        super().__init__(executor, rank, size, block)
        self._told = self._reminded = False
        self.failed: str | None = None
        self.heard: dict[int, str] = {}

    @property
    def interrupts_received(self) -> int:
        """The number of stop requests that this rank has received."""
        return int(self.requests[0])

    @interrupts_received.setter
    def interrupts_received(self, times: int) -> None:
        self.requests[0] = times

    @property
    def interrupts_seen(self) -> int:
        """The number of stop requests that the group has obeyed."""
        return int(self.requests[1])

    @interrupts_seen.setter
    def interrupts_seen(self, times: int) -> None:
        self.requests[1] = times

    # methods of a subclass

    @abstractmethod
    def announce(self, message: str) -> None:
        """Send a notice to all other ranks that this rank has failed, without waiting."""

    @abstractmethod
    def listen(self) -> bool:
        """Store received notices in ``heard``; return whether a rank has failed."""

    def forget(self) -> None:
        """Discard the notices: all ranks failed in the same call, and can continue."""

    # ---- waiting

    def remind(self, began: float) -> None:
        """Warn once per group if this rank has waited long for other ranks since ``began``.

        A collective call that only one rank makes waits forever. The warning refers to its line.
        """
        if self._reminded or time.perf_counter() - began < LONG_WAIT:
            return
        self._reminded = True
        warn_caller(
            f"rank {self.rank} of {self.size} has waited {LONG_WAIT:.0f} s in this call for other "
            "ranks. Calls on a group and its matrices are collective: all ranks make them, in the "
            "same order. If it is within `if group.rank == 0:`, move it out; if other ranks still "
            "compute or read files, this warning has no meaning",
            RuntimeWarning,
        )

    # ---- failing

    def give_up(self) -> None:
        """Raise MemberFailed, because a failed rank will not send a message."""
        self.failed = self.failed or next(iter(self.heard.values()), "its connection is lost")
        raise MemberFailed(
            f"another rank failed: {self.failed}; this group cannot be used again, and the end of "
            "this rank ends all ranks"
        )

    def tell(self, error: BaseException) -> None:
        """Tell the other ranks that this rank has failed."""
        if self.failed is None:
            name = f"rank {self.rank} of {self.size}, {self.executor.name}"
            self.failed, self._told = f"{name}: {type(error).__name__}: {error}", True
            self.announce(self.failed)

    def recover(self, patience: float = PATIENCE) -> bool:
        """Return whether messages may be sent: no rank failed, or all failed in the same call.

        All ranks raise errors that follow from sums, such as a right-hand side that is not finite.
        Then no rank waits for another one.
        """
        if self.failed is None:
            return True
        until = time.perf_counter() + patience
        while self._told and time.perf_counter() < until:
            self.listen()
            if len(self.heard) == self.size - 1:
                self.failed, self.heard, self._told = None, {}, False
                self.forget()
                return True
            time.sleep(1e-3)
        return self.size == 1

    def require_usable(self) -> None:
        """Raise MemberFailed if a rank has failed before."""
        if not self.recover():
            self.give_up()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Treat Ctrl-C as a stop request inside, and report errors to the other ranks."""
        before = self.interrupts_seen

        def count_interrupt(times: int) -> None:
            self.interrupts_received += 1

        with interrupts_go_to(count_interrupt) as mine:
            try:
                yield
            except (KeyboardInterrupt, MemberFailed):
                self.interrupts_received = self.interrupts_seen = max(
                    self.interrupts_received, self.interrupts_seen
                )
                raise
            except Exception as error:  # report any error to the other members
                self.tell(error)
                raise
        if mine and self.interrupts_seen == before:
            raise KeyboardInterrupt

    def interrupts(self) -> int:
        """Return the number of stop requests that this rank has received."""
        return self.interrupts_received


class RankTransport(Links):
    """Links between ranks that implement totals and rows of vectors themselves.

    Parameters
    ----------
    host : RankLinks
        The links that carry the messages of the hosts.
    """

    def __init__(self, host: RankLinks) -> None:
        self.host = host
        self.rank, self.size, self.block = host.rank, host.size, host.block

    def all(self, thing: Any) -> list[Any]:
        """Return the small host objects that the ranks pass, in the order of ranks."""
        return self.host.all(thing)

    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to rank ``r``; return the objects sent to this rank."""
        return self.host.alltoall(things)

    def gathered(self, blocks: Array) -> Array:
        """Return the rows of the NumPy arrays of all ranks, in the order of ranks."""
        return self.host.gathered(blocks)

    def check(self) -> None:
        """Raise KeyboardInterrupt on all ranks if one of them was interrupted."""
        self.host.check()

    def guarded(self) -> AbstractContextManager[None]:
        """Return a context that tells the other ranks if this one fails."""
        return self.host.guarded()


class RankGroup:
    """Processes as members of a group; every rank has its own object.

    :func:`wollemi.distributed.world` and :func:`wollemi.distributed.from_torch` make it.

    Parameters
    ----------
    make : callable
        Returns the links of this rank's executor for a block size of reproducible sums.
    executor : Executor
        The executor of this rank.
    reproducible : bool
        As for :class:`wollemi.distributed.Group`.

    Attributes
    ----------
    executor : Executor
        This rank's executor with its links.
    rank, size : int
        Number of this rank, and number of ranks.
    """

    #: The library of the processes, in the name of the group.
    kind = "ranks"

    def __init__(
        self, make: Callable[[Executor, int], RankLinks], executor: Executor, reproducible: bool
    ) -> None:
        alone = executor.as_member(None)
        #: The links that carry the messages of the hosts.
        self.host = make(alone, checked_block([alone], reproducible))
        self.links: Links = self.host
        if set(self.host.all(alone.backend)) == {alone.backend}:
            self.links = alone.link_ranks(self.host) or self.host
        self.reproducible = reproducible
        self.executor = alone.as_member(self.links)
        self.rank, self.size = self.links.rank, self.links.size

    @property
    def block(self) -> int:
        """The number of rows in a block of a reproducible sum, or 0."""
        return self.links.block

    @property
    def name(self) -> str:
        """The kind of the group, and this rank's executor."""
        return f"{self.kind}:{self.size} ({self.executor.name} on rank {self.rank})"

    @property
    def full_name(self) -> str:
        """The name of the group in messages."""
        return f"a group of {self.size} ranks"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size}: rank {self.rank} on {self.executor.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidArgument("a group cannot be pickled; pickle A.to_local()")

    def run(self, program: Callable[[Executor], Any]) -> Any:
        """Run a function on this rank's member, and return its result; collective.

        During the run, Ctrl-C is a request that all ranks obey in the same sum. An exception on
        this rank is sent to the others, which raise :class:`wollemi.errors.MemberFailed`.
        """
        with self.links.guarded():
            return program(self.executor)

    def barrier(self) -> None:
        """Wait until all ranks have reached this call.

        A file that one rank has written before exists for all ranks afterwards:
        ``if group.rank == 0: A.partition.save("parts.npz")`` and then ``group.barrier()``.

        Raises
        ------
        MemberFailed
            If another rank failed.
        """
        with self.links.guarded():
            self.host.all(None)


def device_of_rank(rank: int, size: int) -> str | None:
    """Return the name of the default GPU of a rank on its host, or None.

    Parameters
    ----------
    rank, size : int
        Number of the rank on its host, and number of ranks on that host.
    """
    for name in ("cuda", "hip"):
        if name in backend_names():
            try:
                devices = backend(name).devices()
            except Exception:  # no library, driver or device; each vendor has its own errors
                continue
            if len(devices) >= size:
                return devices[rank]
            if len(devices) == 1 and os.environ.get("SLURM_JOB_ID"):
                return devices[0]  # the system shows each rank only its own GPU
    return None


def default_executor(rank: int, size: int) -> str:
    """Return the default executor of a rank: its GPU, or its share of the cores.

    Parameters
    ----------
    rank, size : int
        As for :func:`device_of_rank`.
    """
    gpu = device_of_rank(rank, size)
    if gpu is not None:
        return gpu
    if host_name() != "omp":
        return host_name()
    usable = cores()
    everybody = os.cpu_count() or usable
    # Ranks that are pinned to their own cores use all of them; others share the available cores.
    return f"omp:{max(1, usable if usable <= everybody // size else usable // size)}"
