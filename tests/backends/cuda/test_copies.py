"""Small arrays that are copied to a device and back at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from wollemi.backends.cuda.runtime.copies import LARGEST_GAP, padded, side_by_side, spans_of


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
