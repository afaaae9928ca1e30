"""Links between the members of a group of executors, which make totals of sums.

A member of a group runs each operation on its own rows. An operation that sums over rows has two
halves, with the total over the group between them: the *visit* of the elements and the *finish* of
each column. ``executor.links`` makes the totals; it is None for an executor outside of groups,
where one kernel does both halves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .dtypes import is_complex, real_dtype
from .step.numeric import own_largest, own_sum, totals

if TYPE_CHECKING:
    from .executor import Array, Executor
    from .iteration import Iteration
    from .operation import Operation


#: A part of an array at another member: the member's rank, and the range ``begin, end`` of indices.
Part = tuple[int, int, int]


class Move(NamedTuple):
    """Parts of arrays that members send to each other.

    Attributes
    ----------
    arrays : sequence of array
        Flat arrays of the member, with the same dtypes on all members.
    sends : sequence of (int, int, int)
        The rank of the receiver, and the range ``begin, end`` of the indices to send from every
        array.
    receives : sequence of (int, int, int)
        The rank of the sender, and the position of its part in the results, which have no gaps.
    """

    arrays: Sequence[Array]
    sends: Sequence[Part]
    receives: Sequence[Part]


class Links(ABC):
    """The totals over a group, as one of its members makes them.

    All members call the same methods in the same order, and get bitwise equal results.

    Attributes
    ----------
    rank, size : int
        Number of this member, and number of members.
    one_process : bool
        Whether the members are threads of one process; an object that they send is then shared.
    alone : bool
        Whether this member is the whole group, so that its own sums are the totals. Operations then
        run as on an executor without links.
    on_device : bool
        Whether all communication is work on a device stream. If not, the host takes part, and it
        drives loops that a device would otherwise run alone.
    fuses : bool
        Whether kernels communicate with the other members: the kernel that finishes a sum makes the
        total, and :meth:`push` stores rows at other members.
    graph_runs : bool
        Whether a device graph that contains totals may still run; executors set this.
    reason : str
        Why the members have no faster links, if that is known.
    block : int
        Rows of a block. Partial sums of blocks at fixed positions of the whole vectors are made
        first. With 0, each member sums its rows in the order of its executor.
    """

    rank: int = 0
    size: int = 1
    one_process: bool = False
    alone: bool = False
    on_device: bool = False
    fuses: bool = False
    reason: str = ""
    block: int = 0
    graph_runs: bool = False

    @property
    def resets(self) -> int:
        """The number of times that the members were brought back into step.

        Programs made before may differ: a member may have failed before it had made its own.
        """
        return 0

    def records(self, function: Any) -> bool:
        """Return whether a function is a method of these links that records native steps."""
        return False

    def run(self, executor: Executor, operation: Operation, arguments: tuple[Any, ...]) -> bool:
        """Run an operation whose kernel makes the totals over all members.

        Returns
        -------
        bool
            Whether the operation ran. If not, its halves and totals are run separately.
        """
        return False

    def record_for(self, operation: Operation, arguments: tuple[Any, ...]) -> Array | None:
        """Return the memory by which an operation's kernel communicates with other members.

        None means that the totals are made after the visit of the elements.
        """
        return None

    def programs(self, operation: Operation, arguments: tuple[Any, ...]) -> Iterable[Any]:
        """Return the programs of kernels that only groups run, so that they can be compiled."""
        return ()

    @abstractmethod
    def sum(self, array: Array) -> None:
        """Overwrite a real array of this member with the sum over all members."""

    @abstractmethod
    def largest(self, array: Array) -> None:
        """Overwrite a real array with the element-wise maximum; NaN where any element is NaN."""

    @abstractmethod
    def norm(self, array: Array) -> None:
        """Overwrite a real array with the square root of the sum of squares."""

    def all(self, thing: Any) -> list[Any]:
        """Return the small host objects that the members pass, in the order of ranks."""
        return [thing]

    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to member ``r``; return the objects sent to this member."""
        return [things[0]]

    def swap(self, moves: Sequence[Move]) -> list[list[Array]]:
        """Send parts of arrays in one message; all members pass the same number of moves.

        Returns
        -------
        list of list of array
            For each move and each of its arrays: the parts that the other members sent to this one.
        """
        sent: list[Any] = [[None] * len(moves) for _ in range(self.size)]
        for at, move in enumerate(moves):
            for rank, begin, end in move.sends:
                sent[rank][at] = [array[begin:end] for array in move.arrays]
        found = self.alltoall(sent)
        return [
            [
                np.concatenate([array[:0], *(found[rank][at][i] for rank, _, _ in move.receives)])
                for i, array in enumerate(move.arrays)
            ]
            for at, move in enumerate(moves)
        ]

    def any(self, answer: bool) -> bool:
        """Return whether any member answers yes."""
        return any(self.all(bool(answer)))

    def gathered(self, blocks: Array) -> Array:
        """Return the rows of the NumPy arrays of all members, in the order of ranks."""
        return np.concatenate(self.all(blocks))

    def check(self) -> None:
        """Raise KeyboardInterrupt on all members if one of them was interrupted."""
        return None

    def await_graph(self) -> None:
        """Wait for a device graph that would wait forever if a member failed."""
        return None

    def begin_program(self) -> None:
        """Prepare for a program that the members will run."""
        return None

    def end_program(self, ended: bool) -> None:
        """Clean up after a program; ``ended`` says whether all members completed it."""
        return None

    def guarded(self) -> AbstractContextManager[None]:
        """Return a context that tells the other members if this one fails."""
        return nullcontext()

    def send(self, halo: Any, ghosts: Array, packed: Array) -> None:
        """Send the packed rows of a vector that other members need; may return before arrival.

        :meth:`receive` stores the rows from the others in ``ghosts``.
        """
        raise NotImplementedError(f"{type(self).__name__} exchanges no rows of vectors")

    def exchange(self, halo: Any, x: Array, ghosts: Array) -> Any:
        """Return how a product's kernel can do :meth:`push` itself; all members call this."""
        raise NotImplementedError(f"{type(self).__name__} stores no rows at other members")

    def push(self, halo: Any, x: Array, ghosts: Array) -> None:
        """Store rows of a vector in the ghosts of other members, and wait for the rows of others.

        Only links with :attr:`fuses` implement this.
        """
        raise NotImplementedError(f"{type(self).__name__} stores no rows at other members")

    def pusher(self, halo: Any, x: Array, ghosts: Array) -> Callable[[Array], None]:
        """Return a function that does :meth:`push` for these arrays; all members call this."""
        return partial(self.push, halo, x)

    def receive(self, halo: Any, ghosts: Array) -> None:
        """Wait for the rows that other members sent, and store them."""
        raise NotImplementedError(f"{type(self).__name__} exchanges no rows of vectors")


#: Target time in seconds between two checks for Ctrl-C in a group of one member.
BETWEEN_LOOKS = 0.1


def drive_alone(
    executor: Executor,
    iteration: Iteration,
    limit: int,
    drive: Callable[[Iteration, int], None],
) -> None:
    """Drive an iteration on the only member of a group, in batches.

    Only the main thread receives Ctrl-C. The thread of the member checks for it after each batch.
    """
    assert executor.links is not None
    while limit > 0:
        batch, began = min(iteration.batch, limit), perf_counter()
        drive(iteration, batch)
        limit -= batch
        if limit <= 0 or not executor.to_host(iteration.status.running)[0]:
            break
        executor.links.check()
        elapsed = perf_counter() - began
        if elapsed < BETWEEN_LOOKS:
            iteration.batch *= 2
        elif elapsed > 4 * BETWEEN_LOOKS:
            iteration.batch = max(iteration.batch // 2, 1)


def makes_totals(links: Links | None, operation: Operation) -> bool:
    """Return whether the sums of an operation also go over other members of a group."""
    if links is None or links.alone:
        return False
    return operation.adds_up or bool(operation.totals)


def resets_of(executor: Executor) -> int:
    """Return the number of times that an executor's group was brought back into step."""
    return 0 if executor.links is None else executor.links.resets


def works_alone(executor: Executor) -> bool:
    """Return whether no other member contributes to the sums of an executor."""
    return executor.links is None or executor.links.alone


def run_on_member(
    executor: Executor, operation: Operation, arguments: tuple[Any, ...], kernel: Any
) -> None:
    """Run an operation that sums over rows on a member of a group."""
    assert executor.links is not None
    if executor.links.block:
        first = next(a for p, a in zip(operation.parameters, arguments, strict=True) if p.is_array)
        executor.call_links(partial(_run_in_blocks, executor, operation, arguments), first)
        return
    if executor.links.run(executor, operation, arguments):
        return
    halves = executor.kernels.find_halves()
    if operation.adds_up and halves is not None:
        slots = executor.slots(operation, arguments)
        halves[0](executor, operation, slots, arguments)
        finish_on_member(executor, operation, arguments, slots)
        return
    named = {p.name: (p, a) for p, a in zip(operation.parameters, arguments, strict=True)}
    totals = []
    for name, kind in operation.totals.items():
        parameter, argument = named[name]
        total = getattr(executor.links, kind)
        if parameter.intent == "inout":
            changed = executor.allocate(argument.shape, np.uint8)
            arguments_of = {name: argument for name, (_, argument) in named.items()}
            executor.call_links(partial(_find_changed, executor, operation, arguments_of), changed)
            total = partial(_total_of_changed, executor, total, changed)
        totals.append((total, argument))
    kernel(executor, *arguments)
    for total, argument in totals:
        executor.call_links(total, argument)


def finish_on_member(
    executor: Executor, operation: Operation, arguments: tuple[Any, ...], slots: Array
) -> None:
    """Make the totals of partial sums in slots, and finish every column with them."""
    halves = executor.kernels.find_halves()
    assert halves is not None
    _total(executor, operation, slots)
    halves[1](executor, operation, slots, arguments)


def _run_in_blocks(
    executor: Executor, operation: Operation, arguments: tuple[Any, ...], _: Array
) -> None:
    """Run the reference kernel on sums of blocks of rows.

    The blocks are at fixed positions of the whole vectors, and their sums are added in their order.
    Therefore the bits do not depend on the number of members.
    """
    from .registry import backend

    kernel = backend("reference").kernels().find(operation)
    assert kernel is not None
    assert executor.links is not None
    with totals(partial(total_of_terms, executor.links)), np.errstate(all="ignore"):
        kernel(executor, *arguments)


def total_of_terms(links: Links, terms: Array, kind: str) -> Array:
    """Return the total over the group of each column of a member's terms."""
    if links.block and kind == "sum":
        blocks = [terms[at : at + links.block] for at in range(0, terms.shape[0], links.block)]
        sums = np.array([own_sum(block) for block in blocks], terms.dtype)
        return own_sum(links.gathered(sums.reshape(len(blocks), *terms.shape[1:])))
    own = own_sum(terms) if kind == "sum" else own_largest(terms)
    numbers = np.array(own, ndmin=2)
    getattr(links, kind)(numbers.view(real_dtype(numbers.dtype)))
    return numbers[0]


def _find_changed(
    executor: Executor, operation: Operation, arguments: dict[str, Any], changed: Array
) -> None:
    """Find the columns for which an operation will recompute sums, before it runs."""
    assert operation.changed is not None
    executor.copy_into(changed, operation.changed(arguments).astype(np.uint8))


def _total_of_changed(
    executor: Executor, total: Callable[[Array], None], changed: Array, array: Array
) -> None:
    """Make the totals of the columns that a kernel changed; the other columns keep theirs."""
    made = executor.copy(array)
    total(made)
    executor.copy_into(array, executor.xp.where(changed != 0, made, array))


def shape_of_slots(operation: Operation, arguments: tuple[Any, ...]) -> tuple[tuple[int, int], Any]:
    """Return the shape (words, columns) and the dtype of the slots of an operation's sums."""
    first = next(
        argument
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_block and parameter.kind == "T"
    )
    count = sum(width for _, width in _words(operation, is_complex(first.dtype)))
    return (count, int(first.shape[1])), real_dtype(first.dtype)


def _words(operation: Operation, pairs: bool) -> list[tuple[str, int]]:
    """Return the sums in order: the method that makes each total, and its real numbers."""
    return [
        ("largest" if kind == "largest" else "sum", 2 if kind == "T" and pairs else 1)
        for kind in operation.sums
    ]


def _total(executor: Executor, operation: Operation, slots: Array) -> None:
    """Make the totals; adjacent sums with the same kind of total share one message."""
    pairs = slots.shape[0] > len(operation.sums)
    runs: list[tuple[str, int]] = []
    for kind, width in _words(operation, pairs):
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + width)
        else:
            runs.append((kind, width))
    begin = 0
    for kind, width in runs:
        executor.call_links(getattr(executor.links, kind), slots[begin : begin + width])
        begin += width
