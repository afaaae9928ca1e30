"""The links of the members of a group of executors: totals of sums.

A member of a group runs every operation on its own rows. Where an operation adds up over rows, the
total over the group stands between its two halves: the *visit* of the elements and the *finish* of
each column. ``executor.links`` makes the totals; it is None for an executor that is alone, and then
both halves are one kernel.
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


#: A member, and the first and last number of a part of an array.
Part = tuple[int, int, int]


class Move(NamedTuple):
    """Parts of arrays that members send to each other.

    Attributes
    ----------
    arrays : sequence of array
        Flat arrays of the member, of the same dtypes on all members.
    sends : sequence of (int, int, int)
        The other member, and the first and last number of its part of every array.
    receives : sequence of (int, int, int)
        The other member, and where its part is in the results, which have no gaps.
    """

    arrays: Sequence[Array]
    sends: Sequence[Part]
    receives: Sequence[Part]


class Links(ABC):
    """Totals over a group, seen by one of its members.

    All members call the same methods in the same order, and all get the same bits.

    Attributes
    ----------
    rank, size : int
        Which member this is, and how many there are.
    one_process : bool
        Whether the members are threads of one process: an object that they hand over is shared.
    alone : bool
        Whether this member is the whole group and its own sums are the totals. Operations then run
        as on an executor without links.
    on_device : bool
        Whether all of it is work on the stream of a device. Otherwise the host takes part, and
        loops that a device runs by itself are driven by the host instead.
    fuses : bool
        Whether kernels meet the other members: the kernel that finishes a sum makes the total, and
        :meth:`push` stores rows at other members.
    graph_runs : bool
        Whether a graph of the device's, with totals in it, may still run: set by executors.
    reason : str
        Why the members have no faster links, where that is known.
    block : int
        Rows of a block with sums that are formed first, at fixed positions of the whole vectors; 0
        where each member adds up its rows as its executor does.
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

    def records(self, function: Any) -> bool:
        """Return whether a function is a method of these links that puts native steps on tapes."""
        return False

    def run(self, executor: Executor, operation: Operation, arguments: tuple[Any, ...]) -> bool:
        """Run an operation with the totals of all members in its kernel.

        Returns
        -------
        bool
            Whether it ran. If not, the halves of the operation and its totals are run instead.
        """
        return False

    def record_for(self, operation: Operation, arguments: tuple[Any, ...]) -> Array | None:
        """Return the memory by which the kernel of an operation meets the other members.

        None says that its totals are made after the visit of the elements.
        """
        return None

    def programs(self, operation: Operation, arguments: tuple[Any, ...]) -> Iterable[Any]:
        """Return the programs of kernels that only members of a group run, for compilers."""
        return ()

    @abstractmethod
    def sum(self, array: Array) -> None:
        """Replace a real array of this member by the sum over all members."""

    @abstractmethod
    def largest(self, array: Array) -> None:
        """Replace a real array by the element-wise maximum; NaN where any is NaN."""

    @abstractmethod
    def norm(self, array: Array) -> None:
        """Replace a real array by the root of the sum of the squares."""

    def all(self, thing: Any) -> list[Any]:
        """Return the small objects of the host that the members hand over, in order of ranks."""
        return [thing]

    def alltoall(self, things: Sequence[Any]) -> list[Any]:
        """Send ``things[r]`` to member ``r``; return the objects sent to this one."""
        return [things[0]]

    def swap(self, moves: Sequence[Move]) -> list[list[Array]]:
        """Send parts of arrays to other members, in one message; all members have as many moves.

        Returns
        -------
        list of list of array
            For each move, the parts that the others send to this member of each of its arrays.
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
        """Return whether a member says yes."""
        return any(self.all(bool(answer)))

    def gathered(self, blocks: Array) -> Array:
        """Return the rows of the NumPy arrays of all members, one below the other."""
        return np.concatenate(self.all(blocks))

    def check(self) -> None:
        """Raise KeyboardInterrupt on all members if one of them was asked to stop."""
        return None

    def await_graph(self) -> None:
        """Wait for a graph of the device's, where a failed member would make it wait for ever."""
        return None

    def begin_program(self) -> None:
        """Make ready for a program that the members are about to run."""
        return None

    def end_program(self, ended: bool) -> None:
        """Clear up after a program; ``ended`` says whether all members came to its end."""
        return None

    def guarded(self) -> AbstractContextManager[None]:
        """Return a context in which the other members hear of it if this one fails."""
        return nullcontext()

    def send(self, halo: Any, ghosts: Array, packed: Array) -> None:
        """Send the packed rows of a vector that other members need; may return before they go.

        :meth:`receive` stores the rows of the others in ``ghosts``.
        """
        raise NotImplementedError(f"{type(self).__name__} exchanges no rows of vectors")

    def exchange(self, halo: Any, x: Array, ghosts: Array) -> Any:
        """Return how the kernel of a product does the work of :meth:`push`; all members ask."""
        raise NotImplementedError(f"{type(self).__name__} stores no rows at other members")

    def push(self, halo: Any, x: Array, ghosts: Array) -> None:
        """Store rows of a vector into the ghosts of other members, and wait for the others' rows.

        Only links that say :attr:`fuses` have this.
        """
        raise NotImplementedError(f"{type(self).__name__} stores no rows at other members")

    def pusher(self, halo: Any, x: Array, ghosts: Array) -> Callable[[Array], None]:
        """Return a function that does the work of :meth:`push` for these arrays; all must ask."""
        return partial(self.push, halo, x)

    def receive(self, halo: Any, ghosts: Array) -> None:
        """Wait for the rows that other members sent, and write them."""
        raise NotImplementedError(f"{type(self).__name__} exchanges no rows of vectors")


#: Seconds that a lone member works between two looks for Ctrl-C, about.
BETWEEN_LOOKS = 0.1


def drive_alone(
    executor: Executor,
    iteration: Iteration,
    limit: int,
    drive: Callable[[Iteration, int], None],
) -> None:
    """Drive an iteration of the one member of a group, in batches.

    Ctrl-C reaches the main thread only. The thread of the member looks for it between two batches.
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
    """Return whether sums of an operation go over other members of a group too."""
    if links is None or links.alone:
        return False
    return operation.adds_up or bool(operation.totals)


def works_alone(executor: Executor) -> bool:
    """Return whether no other member takes part in the sums of an executor."""
    return executor.links is None or executor.links.alone


def run_on_member(
    executor: Executor, operation: Operation, arguments: tuple[Any, ...], kernel: Any
) -> None:
    """Run an operation that adds up over rows on a member of a group."""
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
    """Make the totals of sums in slots, and finish every column with them."""
    halves = executor.kernels.find_halves()
    assert halves is not None
    _total(executor, operation, slots)
    halves[1](executor, operation, slots, arguments)


def _run_in_blocks(
    executor: Executor, operation: Operation, arguments: tuple[Any, ...], _: Array
) -> None:
    """Run the reference's kernel on sums of blocks of rows.

    The blocks lie at fixed positions of the whole vectors, and their sums are added in their order:
    so the bits do not depend on the number of members.
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
    """Find the columns with sums that an operation will recompute, before it runs."""
    assert operation.changed is not None
    executor.copy_into(changed, operation.changed(arguments).astype(np.uint8))


def _total_of_changed(
    executor: Executor, total: Callable[[Array], None], changed: Array, array: Array
) -> None:
    """Make the totals of the columns that a kernel changed; the others have theirs already."""
    made = executor.copy(array)
    total(made)
    executor.copy_into(array, executor.xp.where(changed != 0, made, array))


def shape_of_slots(operation: Operation, arguments: tuple[Any, ...]) -> tuple[tuple[int, int], Any]:
    """Return the shape and the dtype of the slots of an operation's sums: words, columns."""
    first = next(
        argument
        for parameter, argument in zip(operation.parameters, arguments, strict=True)
        if parameter.is_block and parameter.kind == "T"
    )
    count = sum(width for _, width in _words(operation, is_complex(first.dtype)))
    return (count, int(first.shape[1])), real_dtype(first.dtype)


def _words(operation: Operation, pairs: bool) -> list[tuple[str, int]]:
    """Return the sums in order: the name of the total's function, and their real numbers."""
    return [
        ("largest" if kind == "largest" else "sum", 2 if kind == "T" and pairs else 1)
        for kind in operation.sums
    ]


def _total(executor: Executor, operation: Operation, slots: Array) -> None:
    """Make the totals; sums that lie side by side are one message."""
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
