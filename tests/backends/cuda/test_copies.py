"""Small arrays that are copied to a device and back at once."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from wollemi.backends.cuda.runtime import later
from wollemi.backends.cuda.runtime.copies import (
    LARGEST_GAP,
    CudaTransfer,
    Staging,
    padded,
    side_by_side,
    spans_of,
)


def array(memory: object, place: int, nbytes: int) -> Any:
    return SimpleNamespace(data=SimpleNamespace(ptr=place, mem=memory), nbytes=nbytes)


def test_neighbours_of_one_piece_of_memory_are_one_copy() -> None:
    one, other = object(), object()
    sources = [np.arange(count, dtype=np.uint8) + 1 for count in (1, 4, 16, 8)]
    places = [(one, 1024), (one, 1040), (one, 1072), (other, 1088)]
    pairs = [
        (array(memory, place, s.nbytes), s)
        for (memory, place), s in zip(places, sources, strict=True)
    ]
    found = list(side_by_side(pairs))
    assert [place for place, _ in found] == [1024, 1072, 1088]
    together = found[0][1]
    assert together.nbytes == 20
    np.testing.assert_array_equal(together[:1], sources[0])
    np.testing.assert_array_equal(together[16:], sources[1])


def test_spans_cover_arrays_where_they_are() -> None:
    one, other = object(), object()
    arrays = [
        array(one, 4096, 8), array(other, 64, 12), array(one, 4160, 4), array(one, 4112, 16),
    ]  # fmt: skip
    begins, spans = spans_of(arrays)
    for a, begin in zip(arrays, begins, strict=True):
        inside = [s for s in spans if s.begin <= begin and begin + a.nbytes <= s.end]
        assert [s.source + begin - s.begin for s in inside] == [a.data.ptr]
    assert len(spans) == 2
    assert spans[1].begin % 16 == 0


def test_what_lies_far_apart_is_copied_alone() -> None:
    memory = object()
    far = [array(memory, 0, 8), array(memory, 2 * LARGEST_GAP, 8)]
    begins, spans = spans_of(far)
    assert [(s.source, s.end - s.begin) for s in spans] == [(0, 8), (2 * LARGEST_GAP, 8)]
    assert begins == [s.begin for s in spans]
    assert padded([]) == [0]


def in_one_piece(*shapes: tuple[tuple[int, ...], Any]) -> tuple[np.ndarray[Any, Any], list[Any]]:
    """Return memory, and adjacent arrays in it, like arrays of a device."""
    sizes = [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in shapes]
    begins = padded(sizes)
    memory = np.zeros(begins[-1], np.uint8)
    arrays = [
        SimpleNamespace(
            data=SimpleNamespace(ptr=memory.ctypes.data + begin, mem=memory),
            nbytes=size,
            shape=shape,
            dtype=np.dtype(dtype),
        )
        for (shape, dtype), begin, size in zip(shapes, begins, sizes, strict=False)
    ]
    return memory, arrays


def of(memory: np.ndarray[Any, Any], array: Any) -> np.ndarray[Any, Any]:
    return np.ndarray(array.shape, array.dtype, memory, array.data.ptr - memory.ctypes.data)


class Device:
    """As much of an executor on CuPy as transfers need: its memory is the host's."""

    links = None
    refuse_host = staticmethod(lambda reason: None)
    _guarded = staticmethod(lambda work, nbytes, function, *operands: function(*operands))

    def __init__(self) -> None:
        self.copies: list[int] = []
        self.waits = 0
        self.staging = Staging()
        stream = SimpleNamespace(ptr=0, synchronize=self.wait)
        self.xp = SimpleNamespace(
            cuda=SimpleNamespace(
                get_current_stream=lambda: stream,
                alloc_pinned_memory=Pinned,
                runtime=SimpleNamespace(
                    memcpyAsync=self.copy, memcpyHostToDevice=1, memcpyDeviceToHost=2
                ),
            )
        )

    def copy(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self.copies.append(kind)
        ctypes.memmove(target, source, nbytes)

    def wait(self) -> None:
        self.waits += 1


class Pinned(bytearray):
    @property
    def mem(self) -> Any:
        return SimpleNamespace(size=len(self))


def test_a_transfer_is_one_copy_each_way() -> None:
    reals = ((1,), np.float32)
    memory, arrays = in_one_piece(
        ((1,), np.uint8), ((1,), np.int32), reals, ((1,), np.int64), reals, reals, ((1024, 1), "f4")
    )
    on = Device()
    written, read = arrays[:4], [arrays[6], arrays[0], arrays[3], arrays[5]]
    transfer = CudaTransfer(on, read, written)  # type: ignore[arg-type]
    for number, source in enumerate(transfer.host):
        source[:] = number + 1
    of(memory, arrays[4])[:] = 77
    transfer.write()
    assert on.copies == [1]
    assert [of(memory, a).item() for a in arrays[:5]] == [1, 2, 3, 4, 77]
    of(memory, arrays[6])[:, 0] = np.arange(1024)
    of(memory, arrays[5])[:] = 5
    ring, stop, iterations, last = transfer.peek()
    assert on.copies == [1, 2] and on.waits == 1
    np.testing.assert_array_equal(ring[:, 0], np.arange(1024))
    assert (stop.item(), iterations.item(), last.item()) == (1, 4, 5)
    assert (ring.dtype, ring.shape) == (np.dtype(np.float32), (1024, 1))


def test_arrays_that_were_read_are_copies_and_others_are_overwritten() -> None:
    memory, arrays = in_one_piece(((2,), np.int64), ((0,), np.float64))
    transfer = CudaTransfer(Device(), arrays)  # type: ignore[arg-type]
    of(memory, arrays[0])[:] = 1
    (lasting, empty), (passing, _) = transfer.read(), transfer.peek()
    of(memory, arrays[0])[:] = 2
    transfer.peek()
    assert lasting.tolist() == [1, 1] and passing.tolist() == [2, 2] and empty.shape == (0,)


def test_given_values_are_written_in_place_of_the_transfer_s_own() -> None:
    on = Device()
    memory, arrays = in_one_piece(*[((2,), np.float64)] * 3)
    transfer = CudaTransfer(on, [], arrays)  # type: ignore[arg-type]
    transfer.write(*(np.full(2, value) for value in (1.0, 2.0, 3.0)))
    assert on.copies == [1]
    assert [of(memory, a).tolist() for a in arrays] == [[1, 1], [2, 2], [3, 3]]


def test_what_lies_between_the_written_arrays_is_left_alone() -> None:
    on = Device()
    memory, arrays = in_one_piece(*[((2,), np.float64)] * 3)
    transfer = CudaTransfer(on, arrays, [arrays[0], arrays[2]])  # type: ignore[arg-type]
    of(memory, arrays[1])[:] = 9
    transfer.host[0][:], transfer.host[1][:] = 1, 3
    transfer.write()
    assert on.copies == [1, 1]
    assert [of(memory, a).tolist() for a in arrays] == [[1, 1], [9, 9], [3, 3]]


class LateDevice:
    """As much of CuPy as copies for later need: they arrive when their event is waited for."""

    def __init__(self) -> None:
        self.pending: list[Any] = []
        self.pinned = 0
        self.cuda = SimpleNamespace(
            Event=lambda disable_timing: SimpleNamespace(
                record=lambda stream: None, synchronize=self.arrive
            ),
            alloc_pinned_memory=self.pin,
            get_current_stream=lambda: SimpleNamespace(ptr=0),
            runtime=SimpleNamespace(
                memcpyAsync=lambda *copy: self.pending.append(copy), memcpyDeviceToHost=2
            ),
        )

    def pin(self, nbytes: int) -> bytearray:
        self.pinned += 1
        return bytearray(nbytes)

    def arrive(self) -> None:
        for place, source, nbytes, _, _ in self.pending:
            ctypes.memmove(place, source, nbytes)
        self.pending.clear()


def test_a_copy_for_later_arrives_when_it_is_waited_for() -> None:
    device, copies = LateDevice(), later.Copies()
    memory, (one, other) = in_one_piece(((2,), np.int32), ((1, 3), np.float64))
    of(memory, one)[:], of(memory, other)[:] = [3, 5], 0.25
    waits = [copies.ask(device, array) for array in (one, other)]
    assert len(device.pending) == 2
    found = [wait() for wait in waits]
    np.testing.assert_array_equal(found[0], [3, 5])
    np.testing.assert_array_equal(found[1], np.full((1, 3), 0.25))


def test_copies_for_later_use_memory_again() -> None:
    device, copies = LateDevice(), later.Copies()
    memory, (one,) = in_one_piece(((2,), np.int32))
    kept = []
    for number in range(3):
        of(memory, one)[:] = number
        kept.append(copies.ask(device, one)())
    assert device.pinned == 1
    np.testing.assert_array_equal(kept, [[0, 0], [1, 1], [2, 2]])
