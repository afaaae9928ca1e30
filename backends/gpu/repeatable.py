"""Recorded launches, which are repeated for other arrays if a kernel does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.executor import Array
from .function import Function, packing

if TYPE_CHECKING:
    from .base import GpuExecutor
    from .types import KernelArgument, LoadedKernel

#: Alignment, in bytes, of memory between kernels.
ALIGNMENT = 256

#: The index of an array that is not one of the arguments.
MADE = -1


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A kernel with its launch arguments."""

    function: LoadedKernel
    grid: tuple[int]
    block: tuple[int]
    arguments: Sequence[KernelArgument]
    shared: int

    def __call__(self) -> None:
        """Launch the kernel on the current stream."""
        self.function(self.grid, self.block, self.arguments, self.shared)


class Span(NamedTuple):
    """The address range of an array or of scratch memory."""

    begin: int
    end: int


#: An empty span.
NOWHERE = Span(0, 0)


class PointerPlace(NamedTuple):
    """A launch argument that is an address: its array, and the offset in the array."""

    argument: int
    array: int
    offset: int


def pointer_places(arguments: Sequence[Any], spans: Sequence[Span]) -> list[PointerPlace]:
    """Return the arguments that are addresses within ``spans``.

    Examples
    --------
    >>> pointer_places([7, 1024, 2056], [Span(1024, 2048), Span(2048, 4096)])
    [PointerPlace(argument=1, array=0, offset=0), PointerPlace(argument=2, array=1, offset=8)]
    """
    return [
        PointerPlace(at, array, argument - begin)
        for at, argument in enumerate(arguments)
        if type(argument) is int
        for array, (begin, end) in enumerate(spans)
        if begin <= argument < end
    ]


def arguments_at(
    launch: RecordedLaunch, places: Sequence[PointerPlace], addresses: Sequence[int]
) -> list[KernelArgument]:
    """Return the arguments of a launch for arrays at other addresses."""
    arguments = list(launch.arguments)
    for argument, array, offset in places:
        arguments[argument] = addresses[array] + offset
    return arguments


def packed_launch(
    function: LoadedKernel, arguments: Sequence[KernelArgument]
) -> Callable[..., None] | None:
    """Return a launch of packed arguments of these types, or None for an unknown layout."""
    layout = packing(*map(type, arguments))
    if layout is None or not isinstance(function, Function):
        return None
    return partial(function.launch_packed, layout)


class RepeatedLaunches:
    """The launches of a product, which can be repeated for arrays at other addresses.

    Parameters
    ----------
    launches : sequence of RecordedLaunch
        The launches in their original form.
    arrays : sequence of Span
        The original spans of the product's arrays.
    between : sequence of Span
        Scratch memory and arrays between kernels; when repeated, all of it is scratch memory.
    counters : Span, optional
        The original span of the kernels' counters.
    """

    __slots__ = ("_counters", "_offsets", "_scratch", "_steps")

    def __init__(
        self,
        launches: Sequence[RecordedLaunch],
        arrays: Sequence[Span],
        between: Sequence[Span],
        counters: Span = NOWHERE,
    ) -> None:
        spans = [*arrays, *between, counters]
        self._steps = [
            (
                made,
                packed_launch(made.function, made.arguments),
                pointer_places(made.arguments, spans),
            )
            for made in launches
        ]
        ends = list(accumulate(-(-(s.end - s.begin) // ALIGNMENT) * ALIGNMENT for s in between))
        self._offsets, self._scratch = [0, *ends[:-1]], ends[-1] if ends else 0
        self._counters = (counters.end - counters.begin) // 4

    def launch(self, executor: GpuExecutor, addresses: tuple[int, ...]) -> None:
        """Launch them for arrays at these addresses, without informing observers."""
        addresses = self._with_scratch(executor, addresses)
        for made, packed, places in self._steps:
            arguments = arguments_at(made, places, addresses)
            if packed is None:
                made.function(made.grid, made.block, arguments, made.shared)
            else:
                packed(made.grid[0], made.block[0], arguments, made.shared)

    def run(self, executor: GpuExecutor, addresses: tuple[int, ...]) -> None:
        """Launch them for arrays at these addresses; recordings receive them."""
        if not executor.records_launches:
            self.launch(executor, addresses)
            return
        addresses = self._with_scratch(executor, addresses)
        for made, _, places in self._steps:
            arguments = arguments_at(made, places, addresses)
            executor.launch(made.function, made.grid[0], arguments, made.block[0], made.shared)

    def _with_scratch(self, executor: GpuExecutor, addresses: tuple[int, ...]) -> tuple[int, ...]:
        if not self._scratch and not self._counters:
            return addresses
        begin, counters = executor.scratch(self._scratch, self._counters)
        return (*addresses, *[begin + offset for offset in self._offsets], counters)


class Repeatable(NamedTuple):
    """The result of a kernel that consists only of ``launches(executor, addresses)``.

    ``owner`` keeps additional memory of the launches alive.
    """

    owner: object
    launches: Callable[..., None]
    arrays: Sequence[Array | None]


def places_of(repeatable: object, arrays: Sequence[Array | None]) -> list[int | None] | None:
    """Return the index in ``arrays`` of each of a kernel's arrays; None if it cannot be repeated.

    The index of an omitted argument is None: its address is 0.
    """
    if not isinstance(repeatable, Repeatable):
        return None
    known = {id(array): place for place, array in enumerate(arrays) if array is not None}
    places = [None if its is None else known.get(id(its), MADE) for its in repeatable.arrays]
    return None if MADE in places else places
