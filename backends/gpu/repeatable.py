"""Launches, and kernels that do nothing else, so that these are repeated on other arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.executor import Array

if TYPE_CHECKING:
    from .types import KernelArgument, LoadedKernel

#: The index of an array that is none of the arguments.
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
        """Launch it on the current stream."""
        self.function(self.grid, self.block, self.arguments, self.shared)


class Span(NamedTuple):
    """The addresses of an array, or of scratch memory."""

    begin: int
    end: int


class PointerPlace(NamedTuple):
    """An argument of a launch that is an address: of which array, and how far behind it."""

    argument: int
    array: int
    offset: int


def pointer_places(arguments: Sequence[Any], spans: Sequence[Span]) -> list[PointerPlace]:
    """Return which arguments are addresses within ``spans``.

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


class Repeatable(NamedTuple):
    """The result of a kernel if ``launches(executor, addresses)`` is all that it ran on arrays.

    ``owner`` has the memory that the launches use besides.
    """

    owner: object
    launches: Callable[..., None]
    arrays: Sequence[Array | None]


def places_of(told: object, arrays: Sequence[Array | None]) -> list[int | None] | None:
    """Return which of ``arrays`` each array of a kernel's is, or None if it cannot be repeated.

    The index of an omitted argument is None: its address is 0.
    """
    if not isinstance(told, Repeatable):
        return None
    known = {id(array): place for place, array in enumerate(arrays) if array is not None}
    places = [None if its is None else known.get(id(its), MADE) for its in told.arrays]
    return None if MADE in places else places
