"""Copy small arrays that are adjacent in a device's memory with a single copy.

A copy of any small size costs the host some 3 microseconds, and a solve makes a dozen of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ....core.capture import FROM_HOST, TO_HOST
from ....core.executor import Array, Executor
from ....core.transfer import HostArray, Transfer
from . import later
from .graphs import unused

if TYPE_CHECKING:
    from .executor import CudaExecutor

#: Alignment, in bytes, of arrays in a buffer.
ALIGNMENT = 16

#: Arrays in one piece of memory are copied together if the gap between them is at most this many
#: bytes: copying the gap takes no longer than starting another copy.
LARGEST_GAP = 1 << 14


class CopiedSpan(NamedTuple):
    """A contiguous span of device memory to copy at once, and its destination.

    Attributes
    ----------
    source : int
        Address on the device.
    begin, end : int
        Bounds of the span in host memory.
    """

    source: int
    begin: int
    end: int


def padded(sizes: Iterable[int]) -> list[int]:
    """Return the offsets of aligned buffers of the given sizes, and the total size.

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
    """Yield addresses and bytes to write there; adjacent arrays of a buffer are combined."""
    given = list(pairs)
    for first, behind in _neighbours(given):
        sources = [source for _, source in given[first:behind]]
        yield int(given[first][0].data.ptr), _joined(sources)


def _neighbours(
    pairs: Sequence[tuple[Array, np.ndarray[Any, Any]]],
) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of arrays that are adjacent in memory."""
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


def spans_of(arrays: Sequence[Array]) -> tuple[list[int], list[CopiedSpan]]:
    """Return the offset of each array on the host, and the spans to copy."""
    if len(arrays) == 1:
        return [0], [CopiedSpan(int(arrays[0].data.ptr), 0, int(arrays[0].nbytes))]
    of_memory: dict[int, list[int]] = {}
    for at, array in enumerate(arrays):
        of_memory.setdefault(id(array.data.mem), []).append(at)
    begins, spans, end = [0] * len(arrays), list[CopiedSpan](), 0
    for members in of_memory.values():
        places = sorted((int(arrays[at].data.ptr), at) for at in members)
        source = reached = places[0][0]
        begin = end
        for place, at in places:
            if place - reached > LARGEST_GAP:
                spans.append(CopiedSpan(source, begin, begin + reached - source))
                source, begin = place, _aligned(begin + reached - source)
            begins[at] = begin + place - source
            reached = max(reached, place + int(arrays[at].nbytes))
        spans.append(CopiedSpan(source, begin, begin + reached - source))
        end = _aligned(begin + reached - source)
    return begins, spans


class Staging(threading.local):
    """Pinned host memory, one piece per thread, to which the device copies directly."""

    memory: Any = None

    def bytes(self, xp: Any, nbytes: int) -> HostArray:
        """Return ``nbytes`` of the memory; the next call returns the same memory."""
        if self.memory is None or self.memory.mem.size < nbytes:
            self.memory = xp.cuda.alloc_pinned_memory(max(nbytes, 1 << 14))
        return np.frombuffer(self.memory, np.uint8, nbytes)


class CudaTransfer(Transfer):
    """Transfers with prepared copies: addresses, and offsets in two host buffers.

    CuPy's own copies take five times as long.
    """

    executor: CudaExecutor

    @classmethod
    def allocate(
        cls, executor: Executor, *wanted: tuple[tuple[int, ...], DTypeLike]
    ) -> list[Array]:
        """Return uninitialized arrays in one piece of memory."""
        sizes = [prod(shape) * np.dtype(dtype).itemsize for shape, dtype in wanted]
        begins = padded(sizes)
        memory = executor.allocate((begins[-1],), np.uint8)
        return [
            memory[begin : begin + size].view(dtype).reshape(shape)
            for (shape, dtype), begin, size in zip(wanted, begins, sizes, strict=False)
        ]

    @cached_property
    def host(self) -> list[HostArray]:
        """The values that :meth:`write` writes, in one buffer."""
        begins = padded(int(a.nbytes) for a in self.written)
        image = np.zeros(begins[-1], np.uint8)
        return [_part(image, a, begin) for a, begin in zip(self.written, begins, strict=False)]

    @cached_property
    def writes(self) -> list[tuple[int, int, int]]:
        """The copies of :attr:`host`: destination, source, and size in bytes."""
        host, result = self.host, []
        for first, behind in _neighbours(list(zip(self.written, host, strict=True))):
            begin, last = host[first].ctypes.data, host[behind - 1]
            nbytes = last.ctypes.data + last.nbytes - begin
            result.append((int(self.written[first].data.ptr), begin, nbytes))
        return result

    @cached_property
    def reads(self) -> tuple[list[CopiedSpan], list[tuple[tuple[int, ...], np.dtype[Any], int]]]:
        """The copies to a host buffer; the shape, dtype and offset of each array in it."""
        begins, spans = spans_of(self.arrays)
        return spans, [
            (tuple(a.shape), np.dtype(a.dtype), begin)
            for a, begin in zip(self.arrays, begins, strict=True)
        ]

    def write(self, *values: HostArray) -> None:
        """Overwrite small arrays; adjacent arrays of :meth:`allocate` need a single copy.

        The driver copies the host arrays, so they may be freed at once.
        """
        executor = self.executor
        executor.refuse_host(FROM_HOST)
        executor._guarded("copy from the host", 0, self._write, values)

    def _write(self, values: tuple[HostArray, ...]) -> None:
        cuda = self.executor.xp.cuda
        runtime, stream = cuda.runtime, cuda.get_current_stream().ptr
        if not values:
            for target, source, nbytes in self.writes:
                runtime.memcpyAsync(target, source, nbytes, runtime.memcpyHostToDevice, stream)
            return
        for target, joined in side_by_side(zip(self.written, values, strict=True)):
            place = joined.ctypes.data
            runtime.memcpyAsync(target, place, joined.nbytes, runtime.memcpyHostToDevice, stream)

    def read(self) -> list[HostArray]:
        """Return NumPy copies of the arrays, after the work that computes them."""
        return [array.copy() for array in self.peek()]

    def peek(self) -> list[HostArray]:
        """Return the arrays in memory that the thread's next transfer overwrites."""
        executor = self.executor
        executor.refuse_host(TO_HOST)
        spans, parts = self.reads
        memory = executor._guarded("copy to the host", 0, self._brought, spans)
        return [np.ndarray(shape, dtype, memory, begin) for shape, dtype, begin in parts]

    def _brought(self, spans: Sequence[CopiedSpan]) -> HostArray:
        executor, nbytes = self.executor, spans[-1].end
        if executor.links is not None and executor.links.graph_runs:
            executor.links.await_graph()
        cuda = executor.xp.cuda
        memory = (
            executor.staging.bytes(executor.xp, nbytes)
            if not unused.group_at_work  # see CudaExecutor.from_host
            else np.empty(nbytes, np.uint8)
        )
        stream, place = cuda.get_current_stream(), memory.ctypes.data
        for span in spans:
            cuda.runtime.memcpyAsync(
                place + span.begin, span.source, span.end - span.begin,
                cuda.runtime.memcpyDeviceToHost, stream.ptr,
            )  # fmt: skip
        stream.synchronize()
        return memory

    def ask(self) -> Callable[[], list[HostArray]]:
        """Request NumPy copies of small arrays; return a function that waits for them."""
        executor = self.executor
        executor.refuse_host(TO_HOST)
        if unused.group_at_work or any(a.nbytes > later.LARGEST for a in self.arrays):
            return super().ask()
        waits = executor._guarded("copy to the host", 0, self._asked)
        return lambda: executor.call("copy to the host", lambda: [wait() for wait in waits])

    def _asked(self) -> list[Callable[[], HostArray]]:
        executor = self.executor
        return [executor.later.ask(executor.xp, array) for array in self.arrays]


def _part(memory: np.ndarray[Any, Any], array: Array, begin: int) -> np.ndarray[Any, Any]:
    return np.ndarray(tuple(array.shape), np.dtype(array.dtype), memory, begin)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
