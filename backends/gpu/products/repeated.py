"""Repeated products: the launches of one are reused for the next of the same layout.

The cost of a small product is in Python: a shape for the lanes, constants that name a kernel,
arguments of operands, 36 of the 67 microseconds of an spmm (H200, 22 November). All of that follows
from the plan, the factors, and of each array its shape, distances and alignment. Where these equal
the layout of an earlier product, its launches are repeated with the addresses of the new arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from ....core.executor import Array
from ..base import GpuExecutor
from ..repeatable import RecordedLaunch, Span, arguments_at, pointer_places
from .declarations import VECTOR_BYTES

#: Layouts that a plan knows at most: a factor that changes from call to call makes new ones.
MOST_LAYOUTS = 64


#: Bytes: memory between kernels begins at multiples of it.
ALIGNMENT = 256

#: Bytes that repetitions have between kernels at most: scratch memory is never given back.
MOST_BETWEEN = 1 << 26


class Repeated:
    """The launches of a product.

    Parameters
    ----------
    launches : sequence of RecordedLaunch
        As they were made.
    arrays : sequence of Span
        Where its arrays were.
    between : sequence of Span
        Scratch memory and arrays between its kernels; repetitions have scratch memory for all.
    """

    __slots__ = ("_launches", "_offsets", "_scratch")

    def __init__(
        self,
        launches: Sequence[RecordedLaunch],
        arrays: Sequence[Span],
        between: Sequence[Span],
    ) -> None:
        spans = [*arrays, *between]
        self._launches = [(made, pointer_places(made.arguments, spans)) for made in launches]
        ends = list(accumulate(-(-(s.end - s.begin) // ALIGNMENT) * ALIGNMENT for s in between))
        self._offsets, self._scratch = [0, *ends[:-1]], ends[-1] if ends else 0

    def __call__(self, executor: GpuExecutor, addresses: tuple[int, ...]) -> None:
        """Launch them for the arrays at these addresses."""
        if self._scratch:
            begin = executor.scratch(self._scratch)[0]
            addresses = (*addresses, *[begin + offset for offset in self._offsets])
        for made, places in self._launches:
            arguments = arguments_at(made, places, addresses)
            executor.launch(made.function, made.grid[0], arguments, made.block[0], made.shared)


def addresses_of(arrays: Sequence[Array | None]) -> tuple[int, ...]:
    """Return where arrays begin, 0 for None."""
    return tuple([0 if array is None else array.data.ptr for array in arrays])


def layout_of(
    arrays: Sequence[Array | None], addresses: tuple[int, ...], factors: Sequence[Any]
) -> Hashable:
    """Return the data that determine the launches of a product, besides its plan."""
    return (
        *factors,
        *[None if array is None else (array.shape, array.strides) for array in arrays],
        # whether vectors may begin there
        *[address % VECTOR_BYTES for address in addresses],
        # an operand that is another one is loaded once
        *[addresses.index(address) for address in addresses],
    )


def scratch_of(asked: Iterable[Span]) -> list[Span]:
    """Return the pieces of scratch memory; requests at one address are for one piece.

    Examples
    --------
    >>> scratch_of({Span(1024, 1088), Span(1024, 2048)})
    [Span(begin=1024, end=2048)]
    """
    ends: dict[int, int] = {}
    for begin, end in asked:
        ends[begin] = max(end, ends.get(begin, end))
    return [Span(*piece) for piece in ends.items()]


def spans_of(arrays: Sequence[Array | None], addresses: tuple[int, ...]) -> list[Span] | None:
    """Return where arrays are, or None if an address would not tell which of them it belongs to.

    Examples
    --------
    >>> from types import SimpleNamespace as Given
    >>> row = Given(shape=(1, 4), strides=(32, 8), size=4, itemsize=8)
    >>> spans_of([row, row], (1024, 2048))
    [Span(begin=1024, end=1056), Span(begin=2048, end=2080)]
    >>> spans_of([row, row], (1024, 1032)) is None
    True
    """
    spans = []
    for array, begin in zip(arrays, addresses, strict=True):
        if array is None:
            spans.append(Span(0, 0))
        elif not array.size or min(array.strides) < 0:
            return None
        else:
            apart = zip(array.shape, array.strides, strict=True)
            last = sum((count - 1) * distance for count, distance in apart)
            spans.append(Span(begin, begin + last + array.itemsize))
    within = (one.begin < other.begin < one.end for one in spans for other in spans)
    return None if any(within) else spans
