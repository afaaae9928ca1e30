"""Groups of executors that work together."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from functools import partial
from typing import Any

import numpy as np

from ..described import rows_table, side_by_side
from ..errors import GroupMismatch, InvalidArgument, MemberFailed, UnsupportedOperation
from ..executor import Executor
from ..links import Links
from ..registry import backend
from ..registry import executor as executor_by_name
from .signals import interrupts_go_to
from .threads import Deserted, LoneLinks, Stage, ThreadLinks, Worker

#: Number of rows in a block of a reproducible sum.
REPRODUCIBLE_BLOCK = 512

#: The kinds of links between members on devices, from the preferred to the last one.
LINKS = ("peer", "nccl", "host")

#: Time in seconds that members get to finish after one has failed, or after Ctrl-C. Then the caller
#: continues without them.
PATIENCE = 4.0


class Group:
    """Executors that work together: they share the rows of matrices and vectors.

    The members are threads of this process. :func:`wollemi.distributed.world` makes a group of
    processes instead.

    Parameters
    ----------
    executors : str, or sequence of str or Executor
        The members: ``["cuda:0", "cuda:1"]``, ``["omp:4", "omp:4"]``, or ``"cuda:*"`` for all
        devices of a backend.
    reproducible : bool
        Whether sums are bitwise equal for any number of members. Blocks of 512 rows at fixed
        positions are then summed first, and the sums of the blocks are added in order. NumPy
        computes them, which is slower, and only ``reference`` and ``omp`` executors can be members.
    links : {'peer', 'nccl', 'host'}, optional
        How members on GPUs communicate: by loads and stores in each other's memory, by NCCL, or
        through the host. By default it is the first of these that can connect the members.

    Attributes
    ----------
    members : tuple of Executor
        The executors with the links of the group.
    size : int
        Number of members.

    Raises
    ------
    InvalidArgument
        If there are no members, or if their kinds cannot be in one group.
    ExecutorUnavailable
        If an executor is not available here.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.distributed.Group(["omp:1", "omp:1"])
    <Group of 2: omp:1, omp:1>
    """

    def __init__(
        self,
        executors: str | Sequence[str | Executor],
        *,
        reproducible: bool = False,
        links: str | None = None,
    ) -> None:
        if links not in (None, *LINKS):
            raise InvalidArgument(f"links: expected one of {', '.join(LINKS)}, got {links!r}")
        alone = _executors(executors)
        block = checked_block(alone, reproducible)
        self.reproducible = reproducible
        self._stage = Stage(len(alone))
        kind = LoneLinks if len(alone) == 1 and not block else ThreadLinks
        made: Sequence[Links] = [
            kind(self._stage, member, rank, block) for rank, member in enumerate(alone)
        ]
        self.members = tuple(member.as_member(one) for member, one in zip(alone, made, strict=True))
        self._threads = [Worker(f"wollemi-member-{rank}") for rank in range(self.size)]
        self._one_program = threading.Lock()
        self._inside = threading.local()
        weakref.finalize(self, _end, self._threads, self._stage)
        self._broken: str | None = None
        self._connect(links)

    def _connect(self, kind: str | None) -> None:
        """Let members on devices make totals there, if they can."""
        stage, members = self._stage, list(self.members)
        if self.size == 1 or kind == "host":
            return
        made = members[0].link(members, stage, kind)
        if made is None and kind is not None:
            raise UnsupportedOperation(
                f"links={kind!r} do not join {self.name}: they are for NVIDIA GPUs of one process, "
                "one for each member; leave links out for the fastest that there are"
            )
        if made is not None:
            for member, links in zip(self.members, made, strict=True):
                member.links = links

    @property
    def size(self) -> int:
        """The number of members."""
        return self._stage.size

    @property
    def block(self) -> int:
        """The number of rows in a block of a reproducible sum, or 0."""
        links = self.members[0].links
        return 0 if links is None else links.block

    @property
    def name(self) -> str:
        """The names of the members."""
        return ", ".join(member.name for member in self.members)

    @property
    def full_name(self) -> str:
        """The name of the group in messages."""
        return f"a group of {self.size}: {self.name}"

    @property
    def backend(self) -> str:
        """The backend of the first member."""
        return self.members[0].backend

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of the first member's device, and the number of members."""
        return {**self.members[0].properties, "members": self.size}

    def __repr__(self) -> str:
        return f"<Group of {self.size}: {self.name}>"

    def _repr_html_(self) -> str:
        """Return the card for notebooks: a row for each member."""
        rows = [
            (rank, member.name, member.properties.get("name", ""), type(member.links).__name__)
            for rank, member in enumerate(self.members)
        ]
        head = ("member", "executor", "device", "links")
        return side_by_side(rows_table(f"Group of {self.size}", head, rows))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidArgument("a group cannot be pickled; pickle A.to_local()")

    def run(self, program: Callable[[Executor], Any]) -> list[Any]:
        """Run a function on every member, and return the results in the order of ranks.

        Parameters
        ----------
        program : callable
            It is called as ``program(executor)`` in the thread of each member. All members must run
            the same operations in the same order.

        Raises
        ------
        BaseException
            The exception of the first member that failed, with a note that names the member.
        MemberFailed
            If members did not end after one of them had failed; the group is then unusable.
        """
        if getattr(self._inside, "now", False):
            raise UnsupportedOperation(
                f"{self.full_name} is at work: within its solves, as in a callback, whole "
                "vectors can be used, and operators that its members share cannot"
            )
        with self._one_program:
            return self._run(program)

    def call(self, program: Callable[[Executor], Any]) -> list[Any]:
        """Run a function in which no capture begins; otherwise like :meth:`run`.

        Members check for captures once, at the beginning: each check calls CUDA, and meanwhile
        another thread may take Python's lock.

        Parameters
        ----------
        program : callable
            It is called with the executor of each member.

        Returns
        -------
        list
            The results in the order of the members.
        """
        return self.run(partial(_uncaptured, program))

    def _run(self, program: Callable[[Executor], Any]) -> list[Any]:
        if self._broken is not None:
            raise MemberFailed(
                f"{self.full_name} failed before ({self._broken}); make another group"
            )
        links = [member.links for member in self.members if member.links is not None]
        if len(self.members) == 1 and self.members[0].xp is np:
            return [self._run_here(program, links)]
        futures: list[Future[Any]] = []
        for link in links:
            link.begin_program()
        try:
            for thread, member in zip(self._threads, self.members, strict=True):
                futures.append(thread.submit(self._on_member, program, member))
            asked, aborted = self._wait(futures)
        finally:
            ended = all(future.done() for future in futures)
            for link in links:
                link.end_program(ended)
        errors = [
            (rank, error)
            for rank, future in enumerate(futures)
            if future.done() and (error := future.exception()) is not None
        ]
        if not ended:
            cause = errors[0][1] if errors else KeyboardInterrupt()
            self._broken = f"{type(cause).__name__}: {cause}"
        if errors:
            self._stage.reset()
            self._raise(errors, aborted)
        if asked:
            raise KeyboardInterrupt
        return [future.result() for future in futures]

    def _run_here(self, program: Callable[[Executor], Any], links: list[Any]) -> Any:
        """Run a function on the only member in this thread; Ctrl-C ends its native work."""
        for link in links:
            link.begin_program()
        try:
            return self._on_member(program, self.members[0])
        except BaseException:  # also Ctrl-C: reset for the next program
            self._stage.reset()
            raise
        finally:
            for link in links:
                link.end_program(True)

    def barrier(self) -> None:
        """Return immediately: within one process each call waits for all members.

        Groups of processes have this method too, so that programs work with both kinds.
        """

    def interrupt(self) -> None:
        """Ask all members to stop, as Ctrl-C does; they stop in the next sum."""
        self._stage.interrupts += 1

    def _on_member(self, program: Callable[[Executor], Any], member: Executor) -> Any:
        self._inside.now = True
        try:
            member.make_current()
            return program(member)
        except KeyboardInterrupt:
            raise  # all members raise it in the same total
        except BaseException:  # the others must not wait for it
            self._stage.abort()
            raise
        finally:
            self._inside.now = False

    def _wait(self, futures: list[Future[Any]]) -> tuple[bool, set[int]]:
        """Wait for the members to finish.

        Returns
        -------
        asked : bool
            Whether Ctrl-C has asked them to stop.
        aborted : set of int
            Ranks that were still working on their devices when their links were aborted.
        """
        aborted: set[int] = set()
        with interrupts_go_to(self._asked_to_stop) as asked:
            _, left = wait(futures, return_when=FIRST_EXCEPTION)
            if left:  # the others end at the next barrier
                _, left = wait(futures, timeout=PATIENCE / 2)
            if left:  # they wait for their devices
                aborted = {rank for rank, future in enumerate(futures) if future in left}
                for member in self.members:
                    getattr(member.links, "abort", lambda: None)()
                wait(futures, timeout=PATIENCE / 2)
        return bool(asked), aborted

    def _asked_to_stop(self, times: int) -> None:
        self.interrupt()
        if times > 1:  # without a sum, members end at the barrier
            self._stage.abort()

    def _raise(self, errors: list[tuple[int, BaseException]], aborted: set[int]) -> None:
        """Raise the first error, with the name of the member."""
        # Errors that report the failure of another member, or of aborted links, are not the cause.
        errors = [(r, e) for r, e in errors if r not in aborted] or errors
        causes = [(r, e) for r, e in errors if not isinstance(e, (Deserted, GroupMismatch))]
        causes = causes or [(r, e) for r, e in errors if not isinstance(e, Deserted)] or errors
        rank, error = causes[0]
        agreed = len(causes) == self.size and len({str(e) for _, e in causes}) == 1
        if not agreed:
            error.add_note(f"on member {rank} of {self.size}, {self.members[rank].name}")
        raise error


def _uncaptured(program: Callable[[Executor], Any], member: Executor) -> Any:
    with member.uncaptured():
        return program(member)


def _end(threads: list[Worker], stage: Stage) -> None:
    stage.abort()
    for thread in threads:
        thread.end()


def _executors(names_or_executors: Any) -> list[Executor]:
    """Return the executors of the requested members."""
    if not isinstance(names_or_executors, (str, Executor, Iterable)):
        raise InvalidArgument(
            f"a group: expected a list of the members' executors, such as ['omp:1'] * 2, or "
            f"'cuda:*'; got {names_or_executors!r}"
        )
    if isinstance(names_or_executors, str) and "," in names_or_executors:
        listed = [name.strip() for name in names_or_executors.split(",")]
        raise InvalidArgument(
            f"a group: {names_or_executors!r} is one name; give the list {listed}"
        )
    if isinstance(names_or_executors, str) and names_or_executors.endswith(":*"):
        names: Any = backend(names_or_executors[:-2]).devices()
    elif isinstance(names_or_executors, (str, Executor)):
        names = [names_or_executors]
    else:
        names = list(names_or_executors)
    if not names:
        raise InvalidArgument("a group has at least one member")
    found = [executor_by_name(name) for name in names]
    if any(member.links is not None for member in found):
        raise InvalidArgument("a member of one group is not a member of another")
    return [member.as_member(None) for member in found]


def checked_block(members: Sequence[Executor], reproducible: bool) -> int:
    """Return the block size of sums, or 0; NumPy must compute reproducible sums."""
    if not reproducible:
        return 0
    for member in members:
        if member.xp is not np:
            raise UnsupportedOperation(
                f"reproducible sums are computed by NumPy: {member.name} cannot be a member; use "
                "reference or omp, or reproducible=False"
            )
    return REPRODUCIBLE_BLOCK
