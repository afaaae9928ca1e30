"""Small arrays that lie side by side in a device's memory, copied at once.

A copy takes the host some 3 microseconds whatever its size, and a solve has a dozen of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.executor import Array

#: Bytes that places of arrays in a piece of memory are multiples of.
ALIGNMENT = 16

#: Bytes of one piece of memory that are copied at once for the arrays in it, with what lies between
#: them: no more than beginning another copy takes.
LARGEST_SPAN = 1 << 14


class Span(NamedTuple):
    """Bytes of a device that are copied at once, and where they go.

    Attributes
    ----------
    source : int
        Their address.
    begin, end : int
        Their place on the host.
    """

    source: int
    begin: int
    end: int


def padded(sizes: Iterable[int]) -> list[int]:
    """Return where pieces of so many bytes begin if they follow each other, and where all end.

    Examples
    --------
    >>> from wollemi.backends.cuda.runtime.copies import padded
    >>> padded([1, 4, 40])
    [0, 16, 32, 80]
    """
    begins = [0]
    for size in sizes:
        begins.append(begins[-1] + _aligned(int(size)))
    return begins


def side_by_side(
    pairs: Iterable[tuple[Array, np.ndarray[Any, Any]]],
) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Yield addresses and what goes there: neighbours of one piece of memory together."""
    held, address, end, memory = list[np.ndarray[Any, Any]](), 0, 0, None
    for target, source in pairs:
        place, of = int(target.data.ptr), target.data.mem
        if not held or place != end or of is not memory:
            if held:
                yield address, _joined(held)
            held, address, memory = [], place, of
        held.append(source)
        end = place + _aligned(source.nbytes)
    if held:
        yield address, _joined(held)


def _joined(arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    if len(arrays) == 1:
        return arrays[0]
    begins = padded(array.nbytes for array in arrays)
    joined = np.empty(begins[-2] + arrays[-1].nbytes, np.uint8)
    for array, begin in zip(arrays, begins, strict=False):
        joined[begin : begin + array.nbytes] = array.reshape(-1).view(np.uint8)
    return joined


def spans_of(arrays: Sequence[Array]) -> tuple[list[int], list[Span]]:
    """Return where each array is on the host, and what is copied there."""
    if len(arrays) == 1:
        return [0], [Span(int(arrays[0].data.ptr), 0, int(arrays[0].nbytes))]
    of_memory: dict[int, list[int]] = {}
    for at, array in enumerate(arrays):
        of_memory.setdefault(id(array.data.mem), []).append(at)
    begins, spans, end = [0] * len(arrays), list[Span](), 0
    for members in of_memory.values():
        places = [int(arrays[at].data.ptr) for at in members]
        low = min(places)
        high = max(place + arrays[at].nbytes for place, at in zip(places, members, strict=True))
        together = high - low <= LARGEST_SPAN
        for at, place in zip(members, places, strict=True):
            begins[at] = end + place - low if together else end
            if not together:
                spans.append(Span(place, end, end + int(arrays[at].nbytes)))
                end = _aligned(spans[-1].end)
        if together:
            spans.append(Span(low, end, end + int(high) - low))
            end = _aligned(spans[-1].end)
    return begins, spans


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
