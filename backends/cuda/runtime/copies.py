"""Small arrays that lie side by side in a device's memory, copied at once.

A copy takes the host some 3 microseconds for any size, and a solve has a dozen of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.exchange import Exchange
from ....core.executor import Array, Executor

#: Addresses of arrays in a buffer are multiples of this number of bytes.
ALIGNMENT = 16

#: Bytes between two arrays of one piece of memory that are copied with them: no more than beginning
#: another copy takes.
LARGEST_GAP = 1 << 14


class Span(NamedTuple):
    """Bytes of a device that are copied at once, and where they go.

    Attributes
    ----------
    source : int
        Their address.
    begin, end : int
        The spans of host memory.
    """

    source: int
    begin: int
    end: int


def padded(sizes: Iterable[int]) -> list[int]:
    """Return the offsets of buffers of these sizes if they follow each other, and the end of all.

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
    """Yield addresses and the bytes to write there: adjacent arrays of one buffer together."""
    given = list(pairs)
    for first, behind in _neighbours(given):
        sources = [source for _, source in given[first:behind]]
        yield int(given[first][0].data.ptr), _joined(sources)


def _neighbours(
    pairs: Sequence[tuple[Array, np.ndarray[Any, Any]]],
) -> Iterator[tuple[int, int]]:
    """Yield the first and the number behind the last of arrays that lie side by side."""
    first, end, memory = 0, 0, None
    for at, (target, source) in enumerate(pairs):
        place, of = int(target.data.ptr), target.data.mem
        if at > first and (place != end or of is not memory):
            yield first, at
            first = at
        end, memory = place + _aligned(source.nbytes), of
    if pairs:
        yield first, len(pairs)


def _joined(arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    if len(arrays) == 1:
        return arrays[0]
    begins = padded(array.nbytes for array in arrays)
    joined = np.empty(begins[-2] + arrays[-1].nbytes, np.uint8)
    for array, begin in zip(arrays, begins, strict=False):
        joined[begin : begin + array.nbytes] = array.reshape(-1).view(np.uint8)
    return joined


def spans_of(arrays: Sequence[Array]) -> tuple[list[int], list[Span]]:
    """Return the offset of each array on the host, and the spans to copy."""
    if len(arrays) == 1:
        return [0], [Span(int(arrays[0].data.ptr), 0, int(arrays[0].nbytes))]
    of_memory: dict[int, list[int]] = {}
    for at, array in enumerate(arrays):
        of_memory.setdefault(id(array.data.mem), []).append(at)
    begins, spans, end = [0] * len(arrays), list[Span](), 0
    for members in of_memory.values():
        places = sorted((int(arrays[at].data.ptr), at) for at in members)
        source = reached = places[0][0]
        begin = end
        for place, at in places:
            if place - reached > LARGEST_GAP:
                spans.append(Span(source, begin, begin + reached - source))
                source, begin = place, _aligned(begin + reached - source)
            begins[at] = begin + place - source
            reached = max(reached, place + int(arrays[at].nbytes))
        spans.append(Span(source, begin, begin + reached - source))
        end = _aligned(begin + reached - source)
    return begins, spans


class CudaExchange(Exchange):
    """An exchange with planned copies: addresses, and offsets in two buffers of host memory."""

    def __init__(
        self, executor: Executor, written: Sequence[Array], arrays: Sequence[Array]
    ) -> None:
        self.executor = executor
        self.written, self.arrays = tuple(written), tuple(arrays)
        begins = padded(int(a.nbytes) for a in written)
        image = np.zeros(begins[-1], np.uint8)
        self.host = [_part(image, a, begin) for a, begin in zip(written, begins, strict=False)]
        #: Where to, where from, and how many bytes.
        self.writes: list[tuple[int, int, int]] = []
        for first, behind in _neighbours(list(zip(written, self.host, strict=True))):
            source = image.ctypes.data + begins[first]
            end = begins[behind - 1] + self.host[behind - 1].nbytes
            self.writes.append((int(written[first].data.ptr), source, end - begins[first]))
        self.begins, self.spans = spans_of(arrays)
        self.nbytes = self.spans[-1].end
        self._shapes = [
            (tuple(a.shape), np.dtype(a.dtype), begin)
            for a, begin in zip(arrays, self.begins, strict=True)
        ]

    def parts(self, memory: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        """Return the arrays that were read in a piece of memory."""
        return [np.ndarray(shape, dtype, memory, begin) for shape, dtype, begin in self._shapes]


def _part(memory: np.ndarray[Any, Any], array: Array, begin: int) -> np.ndarray[Any, Any]:
    return np.ndarray(tuple(array.shape), np.dtype(array.dtype), memory, begin)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
