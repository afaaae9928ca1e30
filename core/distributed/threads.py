"""Members that are threads of one process: they meet at a barrier and share their memory."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import numpy as np

from ..errors import MemberFailed
from .host_links import HostLinks

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .halo import Halo


Ts = TypeVarTuple("Ts")
R = TypeVar("R")

HostArray = np.ndarray[Any, Any]


class Deserted(MemberFailed):
    """Raised on a member because another member has failed, whose error is the cause."""


class Stage:
    """The meeting point of the threads of a group.

    Attributes
    ----------
    interrupts : int
        Number of requests to stop the group.
    resets : int
        Number of times that the members were brought back into step after a failure.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.interrupts = self.resets = 0
        #: The objects that members exchange. Two lists alternate: a member that has begun the next
        #: exchange has read its objects of this one.
        self.slots: tuple[list[Any], list[Any]] = ([None] * size, [None] * size)
        self._condition = threading.Condition()
        self._arrived = self._meetings = 0
        self._aborted = False

    def meet(self) -> None:
        """Wait until all members have called this method.

        Raises
        ------
        Deserted
            If another member has failed and will not come. After a completed exchange a member
            continues, even if another member fails immediately afterwards.
        """
        with self._condition:
            meeting = self._meetings
            self._arrived += 1
            if self._arrived == self.size:
                self._arrived = 0
                self._meetings += 1
                self._condition.notify_all()
            while self._meetings == meeting and not self._aborted:
                self._condition.wait()
            if self._meetings == meeting:
                raise Deserted("another member of the group has failed")

    def abort(self) -> None:
        """Wake all waiting members, because a member will not come."""
        with self._condition:
            self._aborted = True
            self._condition.notify_all()

    def reset(self) -> None:
        """Prepare for another program; no member may be waiting."""
        with self._condition:
            self._aborted, self._arrived = False, 0
            self.resets += 1


#: Time in seconds for which the exit of the process waits for the threads of members.
LAST = 1.0

#: The existing threads of members, with their task queues.
_TASKS: weakref.WeakKeyDictionary[threading.Thread, SimpleQueue[Any]]
_TASKS = weakref.WeakKeyDictionary()


@atexit.register
def _end_all() -> None:
    """End the threads of members before the interpreter and the device drivers shut down.

    A thread frees its objects when it ends, such as memory that a driver has pinned. A member that
    still works gets at most :data:`LAST` seconds.
    """
    found, until = list(_TASKS.items()), perf_counter() + LAST
    for _, tasks in found:
        tasks.put(None)
    for thread, _ in found:
        thread.join(max(until - perf_counter(), 0.0))


class Worker:
    """The thread of a member."""

    def __init__(self, name: str) -> None:
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        thread = threading.Thread(target=_work, args=(self._tasks,), name=name, daemon=True)
        _TASKS[thread] = self._tasks
        thread.start()

    def submit(self, function: Callable[[*Ts], R], *operands: *Ts) -> Future[R]:
        """Make the thread call a function; return the future of its result."""
        future: Future[R] = Future()
        self._tasks.put((future, function, operands))
        return future

    def end(self) -> None:
        """End the thread after its current task."""
        self._tasks.put(None)


def _work(tasks: SimpleQueue[Any]) -> None:
    while _did(tasks.get()):
        pass


def _did(task: Any) -> bool:
    """Run a task without keeping a reference to it; return whether there was one."""
    if task is None:
        return False
    future, function, arguments = task
    try:
        future.set_result(function(*arguments))
    except BaseException as error:
        future.set_exception(error)
    return True


class ThreadLinks(HostLinks):
    """The links of a member that is a thread."""

    one_process = True

    def __init__(self, stage: Stage, executor: Executor, rank: int, block: int) -> None:
        super().__init__(executor, rank, stage.size, block)
        self.stage = stage
        self.turn = 0

    @property
    def resets(self) -> int:
        """The number of times that the members were brought back into step."""
        return self.stage.resets

    def begin_program(self) -> None:
        """Discard unfinished exchanges, so that the next program begins in step with others."""
        self.turn = 0
        self.interrupts_seen = self.stage.interrupts

    def all(self, thing: Any) -> list[Any]:
        """Return the objects that the members pass, in the order of ranks; they are shared."""
        slots = self.stage.slots[self.turn]
        self.turn = 1 - self.turn
        slots[self.rank] = thing
        self.stage.meet()
        return list(slots)

    def arrays(self, array: HostArray) -> list[HostArray]:
        """Return the arrays of all members, in the order of ranks; they are read-only."""
        return self.all(array)

    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to member ``r``; return the objects sent to this member."""
        return [row[self.rank] for row in self.all(things)]

    def interrupts(self) -> int:
        """Return the number of requests to stop the group."""
        return self.stage.interrupts

    def begin(self, halo: Halo, packed: HostArray) -> None:
        """Store the packed rows where the other members read them; this does not wait."""
        halo.mine = (packed, halo.sends)

    def finish(self, halo: Halo, ghosts: HostArray) -> None:
        """Meet the other members, and read the rows from their memory."""
        found = self.all(halo.mine)
        for rank, begin, end in halo.receives:
            packed, sends = found[rank]
            first, last = next((b, e) for r, b, e in sends if r == self.rank)
            ghosts[begin:end] = packed[first:last]

    def gathered(self, blocks: HostArray) -> HostArray:
        """Return the rows of all members, in the order of ranks, in one shared array."""
        parts = self.all(blocks)
        whole = np.concatenate(parts) if self.rank == 0 else None
        return np.asarray(self.all(whole)[0])


class LoneLinks(ThreadLinks):
    """The links in a group of one member, whose sums are the totals."""

    alone = True

    def __init__(self, stage: Stage, executor: Executor, rank: int, block: int) -> None:
        super().__init__(stage, executor, rank, block)
        self.on_device = executor.xp is not np

    def sum(self, array: Array) -> None:
        """Leave the sum unchanged."""

    largest = norm = sum

    def check(self) -> None:
        """Raise KeyboardInterrupt if a caller has requested the group to stop."""
        self.obey(self.interrupts())
