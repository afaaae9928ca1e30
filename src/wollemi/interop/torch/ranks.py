"""Members that are PyTorch processes: ``torchrun``, SLURM, or a process group of the user.

Messages of the hosts use gloo, as tensors of bytes; news of failures use the store of the process
group.
"""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from ...core.distributed.launched import require_launched
from ...core.distributed.ranks import GRACE, RankGroup, RankLinks, default_executor
from ...core.errors import ExecutorUnavailable, InvalidArgument, MemberFailed
from ...core.executor import Executor
from ...core.registry import executor as executor_by_name

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup, Store, Work

    from ...core.distributed.halo import Halo

HostArray = np.ndarray[Any, Any]

#: Polls of a waiting rank before it yields the core to other threads, and seconds between two
#: checks for failures.
SPINS, LOOK = 200, 0.05

#: Group numbers, equal on all ranks: the members of a group create their groups in one order.
_NUMBERS = count()


def _torch() -> Any:
    """Return torch.distributed."""
    import torch.distributed as found

    if not found.is_available() or not found.is_gloo_available():
        raise ExecutorUnavailable(
            "this build of PyTorch has no gloo, by which the hosts exchange; install another one"
        )
    return found


class Processes:
    """A process group with gloo for tensors of the host, and its pending messages.

    A gloo thread that is about to release a tensor needs Python's lock. An interpreter that shuts
    down aborts such a thread, and the process with it. PyTorch joins these threads when the last
    reference to the process group is gone. Therefore, only this object keeps a reference, and
    :func:`_end` drops it while the interpreter is still intact.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup
        The ranks.
    is_ours : bool
        Whether this module has created the process group, and therefore destroys it.
    """

    def __init__(self, group: ProcessGroup, is_ours: bool) -> None:
        self.group: ProcessGroup | None = group
        self.is_ours = is_ours
        self._on_the_way: set[Work] = set()
        _IN_USE.add(self)
        if is_ours:
            _OURS.append(self)

    def started(self, work: Work) -> Work:
        """Remember a pending message, and return it."""
        self._on_the_way.add(work)
        return work

    def finished(self, works: Sequence[Work]) -> None:
        """Forget messages that have completed."""
        self._on_the_way.difference_update(works)

    def end(self) -> None:
        """Release the process group, unless a message is pending: the release would wait for it."""
        if not all(work.is_completed() for work in self._on_the_way):
            return
        self._on_the_way.clear()
        group, self.group = self.group, None
        if self.is_ours:
            with suppress(ValueError):  # the user has destroyed all process groups
                _torch().destroy_process_group(group)


#: Process groups of existing groups, and process groups that PyTorch keeps because this module
#: created them.
_IN_USE: WeakSet[Processes] = WeakSet()
_OURS: list[Processes] = []


#: Links of existing groups.
_LINKS: WeakSet[TorchLinks] = WeakSet()


@atexit.register
def _end() -> None:
    """Release the process groups when the program ends; if an error ends it, tell the other ranks.

    Their connections break with this process, and their errors then name this rank and its error. A
    rank that ends because another one has failed ends after it, because a launcher reports the rank
    that ended first.
    """
    error = getattr(sys, "last_value", None)
    if isinstance(error, MemberFailed):
        time.sleep(2 * GRACE)
    elif error is not None:
        for links in list(_LINKS):
            with suppress(RuntimeError):  # the store has ended with its rank
                links.tell(error)
    for processes in list(_IN_USE):
        processes.end()


class TorchLinks(RankLinks):
    """The links of a member that is a rank of a PyTorch process group.

    Parameters
    ----------
    processes : Processes
        The ranks' processes.
    store : torch.distributed.Store
        Holds the news of failures.
    executor : Executor
        This rank's executor, as a single executor.
    block : int
        Rows per block of reproducible sums, or 0.
    """

    def __init__(self, processes: Processes, store: Store, executor: Executor, block: int) -> None:
        self.distributed = _torch()
        assert processes.group is not None
        super().__init__(executor, processes.group.rank(), processes.group.size(), block)
        self.processes, self.store = processes, store
        self._epoch = 0
        _LINKS.add(self)

    # ---- waiting, and failing

    def wait(self, *works: Work) -> None:
        """Wait for messages; raise MemberFailed if they do not arrive because a rank has failed."""
        since, began = None, time.perf_counter()
        looked = began
        for turn in range(sys.maxsize):
            if all(work.is_completed() for work in works):
                break
            now = time.perf_counter()
            if now - looked > LOOK:
                looked = now
                self.remind(began)
                if self.listen():
                    # A failed rank may have sent this message before it failed.
                    since = since or now
                    if now - since > GRACE:
                        self.give_up()
            if turn >= SPINS:
                time.sleep(0 if turn < 10 * SPINS else 1e-4)
        try:
            for work in works:
                work.wait()
        except RuntimeError as error:  # the connected process has ended
            with suppress(RuntimeError):  # the rank with the store has ended
                self.listen()
            self.heard.setdefault(-1, f"a connection was lost: {error}")
            self.give_up()
        self.processes.finished(works)

    def listen(self) -> bool:
        """Read the pending news; return whether a rank has failed."""
        for rank in range(self.size):
            if rank != self.rank and rank not in self.heard and self.store.check([self._key(rank)]):
                self.heard[rank] = self.store.get(self._key(rank)).decode()
        return bool(self.heard)

    def _key(self, rank: int) -> str:
        return f"failed/{self._epoch}/{rank}"

    def announce(self, message: str) -> None:
        """Store the news that this rank has failed."""
        self.store.set(self._key(self.rank), message)

    def forget(self) -> None:
        """Start a new list of news."""
        self._epoch += 1

    # ---- messages

    def arrays(self, array: HostArray) -> list[HostArray]:
        """Return the arrays of all ranks, in order of ranks."""
        self.require_usable()
        return [found.view(array.dtype).reshape(array.shape) for found in self._bytes_of_all(array)]

    def _bytes_of_all(self, array: HostArray) -> list[HostArray]:
        """Return the bytes of the arrays of all ranks, which have equal sizes."""
        mine = _tensor(array)
        found = [mine.new_empty(mine.shape) for _ in range(self.size)]
        work = self.distributed.all_gather(found, mine, group=self.processes.group, async_op=True)
        self.wait(self.processes.started(work))
        return [one.numpy() for one in found]

    def all(self, thing: object) -> list[Any]:
        """Return the objects of all ranks, in the order of ranks."""
        return [pickle.loads(text.data) for text in self._of_all_sizes(_pickled(thing))]

    def _of_all_sizes(self, sent: HostArray) -> list[HostArray]:
        """Return byte arrays of different sizes of all ranks: gloo gathers only equal sizes."""
        sizes = [int(size[0]) for size in self.arrays(np.array([sent.size], np.int64))]
        padded = np.zeros(max(*sizes, 1), np.uint8)
        padded[: sent.size] = sent
        found = self._bytes_of_all(padded)
        return [one[:size] for one, size in zip(found, sizes, strict=True)]

    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to rank ``r``; return the objects that this rank has received."""
        texts = [_pickled(thing) for thing in things]
        sizes = self.arrays(np.array([text.size for text in texts], np.int64))
        arriving = [int(row[self.rank]) for row in sizes]
        found = np.empty(sum(arriving), np.uint8)
        self.wait(self._sent(np.concatenate(texts), [text.size for text in texts], found, arriving))
        ends = np.cumsum([0, *arriving])
        return [pickle.loads(found[a:b].data) for a, b in pairwise(ends)]

    def _sent(
        self, sent: HostArray, leaving: list[int], received: HostArray, arriving: list[int]
    ) -> Any:
        """Start to send bytes to each rank, and to receive bytes from each rank.

        Gloo's point-to-point messages cannot be polled for completion.
        """
        work = self.distributed.all_to_all_single(
            _tensor(received),
            _tensor(sent),
            arriving,
            leaving,
            group=self.processes.group,
            async_op=True,
        )
        return self.processes.started(work)

    def gathered(self, blocks: HostArray) -> HostArray:
        """Return the rows of the arrays of all ranks, concatenated."""
        mine = np.ascontiguousarray(blocks)
        parts = self._of_all_sizes(mine.reshape(-1).view(np.uint8))
        return np.concatenate(parts).view(mine.dtype).reshape(-1, *mine.shape[1:])

    def begin(self, halo: Halo, packed: HostArray) -> None:
        """Start to send rows, and to receive rows of other ranks."""
        self.require_usable()
        width = int(np.prod(packed.shape[1:])) * packed.itemsize
        arriving = np.empty(halo.ghosts * width, np.uint8)
        leaving = _of_ranks(halo.sends, self.size, width)
        work = self._sent(packed, leaving, arriving, _of_ranks(halo.receives, self.size, width))
        halo.mine = (packed, arriving, work)

    def finish(self, halo: Halo, ghosts: HostArray) -> None:
        """Wait for the rows of other ranks, and store them."""
        _, arriving, work = halo.mine
        self.wait(work)
        ghosts[...] = arriving.view(ghosts.dtype).reshape(ghosts.shape)
        halo.mine = None


def _of_ranks(runs: list[tuple[int, int, int]], size: int, width: int) -> list[int]:
    """Return the bytes of each rank's rows, 0 if it has none."""
    result = [0] * size
    for rank, begin, end in runs:
        result[rank] = (end - begin) * width
    return result


def _tensor(array: HostArray) -> Any:
    """Return the bytes of an array as a tensor, sharing memory if the array is contiguous."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _pickled(thing: object) -> HostArray:
    return np.frombuffer(bytearray(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)), np.uint8)


class TorchGroup(RankGroup):
    """The ranks of a process group as members of a group; each rank creates its own object."""

    kind = "torch"


def group_of(
    process_group: ProcessGroup | None, executor: Executor | str | None, reproducible: bool
) -> TorchGroup:
    """Return the group of a process group's ranks; see :func:`wollemi.distributed.from_torch`."""
    distributed = _torch()
    if not distributed.is_initialized():
        require_launched()
        distributed.init_process_group("gloo")
        Processes(distributed.group.WORLD, is_ours=True)
    world = distributed.group.WORLD
    asked = world if process_group is None else process_group
    if asked == distributed.GroupMember.NON_GROUP_MEMBER or distributed.get_rank(asked) < 0:
        raise InvalidArgument("from_torch: this process is no rank of the process group")
    ranks = distributed.get_process_group_ranks(asked)
    if "gloo" in distributed.get_backend(asked):
        hosts = Processes(asked, is_ours=False)
    else:
        made = distributed.new_group(ranks, backend="gloo", use_local_synchronization=True)
        hosts = Processes(made, is_ours=True)
    number = next(_NUMBERS)
    name = f"wollemi/{number}/{'-'.join(map(str, ranks))}"
    store = distributed.PrefixStore(name, distributed.distributed_c10d._get_default_store())
    local, count_of_host = _place_on_host(distributed.get_rank(asked), len(ranks))
    asked_executor = default_executor(local, count_of_host) if executor is None else executor
    member = executor_by_name(asked_executor)
    return TorchGroup(partial(TorchLinks, hosts, store), member, reproducible)


def _place_on_host(rank: int, size: int) -> tuple[int, int]:
    """Return this rank's number on its host, and the number of ranks on the host."""
    for mine, whole in (
        ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
        ("SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    ):
        if mine in os.environ:
            return int(os.environ[mine]), int(os.environ.get(whole, size))
    return rank, size
