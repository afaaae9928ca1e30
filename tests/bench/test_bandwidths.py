"""The memory: all streams once for a size, then the streams that a contest needs."""

from __future__ import annotations

import pytest

import wollemi as wl
from wollemi.core.operation import Cost
from wollemi_bench import Timing, bandwidths
from wollemi_bench.bandwidth import Streams, within_reason
from wollemi_bench.bandwidths import Bandwidths
from wollemi_bench.problem import OfferFacts
from wollemi_bench.runner import Ready

REFERENCE = wl.ReferenceExecutor()
MEGABYTE = 1 << 20


def stream(name):
    return Ready(name, "", OfferFacts(cost=Cost(MEGABYTE, 0)))


def timing(*seconds):
    return Timing(seconds, 1)


@pytest.mark.parametrize("nbytes", [MEGABYTE, 3 * MEGABYTE])
def test_streams_move_about_as_many_bytes_as_they_are_asked_to(nbytes):
    for one in Streams(nbytes).ours(REFERENCE):
        one.make()()
        assert 0.9 * nbytes <= one.facts().cost.bytes <= nbytes


def test_neither_too_few_bytes_are_moved_nor_more_than_leave_the_caches_behind():
    assert within_reason(0, 0) == MEGABYTE
    assert within_reason(100 * MEGABYTE, 0) == 100 * MEGABYTE
    assert within_reason(10_000 * MEGABYTE, 60 * MEGABYTE) == 480 * MEGABYTE
    assert Bandwidths().streams(0, False).nbytes == MEGABYTE


def test_after_the_first_contest_of_a_size_only_the_fastest_read_is_timed():
    seen = Bandwidths()
    names = {offer.name for offer in seen.streams(MEGABYTE, False).ours(REFERENCE)}
    assert {"read: norm", "read: dot", "copy", "triad: axpby", "read: numpy.dot"} <= names
    times = {"read: dot": timing(1.0, 2.0), "read: norm": timing(0.5, 0.5), "copy": timing(1.0)}
    rates, reads = seen.note(Streams(MEGABYTE), False, [stream(name) for name in times], times)
    assert rates == {"read": 2 * MEGABYTE, "copy": MEGABYTE}
    assert list(reads) == [2 * MEGABYTE, 2 * MEGABYTE]
    (left,) = seen.streams(MEGABYTE + 1000, False).ours(REFERENCE)
    assert left.name == "read: norm"
    assert len(seen.streams(2 * MEGABYTE, False).ours(REFERENCE)) == len(names)
    assert len(seen.streams(MEGABYTE, True).ours(REFERENCE)) == len(names)
    rates, reads = seen.note(
        Streams(MEGABYTE), False, [stream("read: norm")], {"read: norm": timing(1.0, 4.0)}
    )
    assert rates == {"read": MEGABYTE * 0.625, "copy": MEGABYTE}  # the copy from before
    assert list(reads) == [MEGABYTE, MEGABYTE / 4]


def test_where_nothing_could_be_read_there_is_no_rate():
    assert Bandwidths().note(Streams(MEGABYTE), False, [stream("read: dot")], {}) == ({}, None)


def test_the_memory_of_a_gpu_is_measured_once_for_a_size(monkeypatch):
    asked = []

    class Fake:
        def load(self, streams):
            asked.append(streams.nbytes)

        def prepare(self, library):
            return [stream("read: dot"), stream("copy"), Ready("triad", "failed: no", OfferFacts())]

        def clear(self):
            pass

    def timed(slots, **_):
        return {slot.name: timing(1e-3) for slot in slots}

    monkeypatch.setattr(bandwidths, "Runner", Fake)
    monkeypatch.setattr(bandwidths, "interleave", timed)
    seen = Bandwidths()
    for nbytes in (MEGABYTE, MEGABYTE + 10_000, 100 * MEGABYTE):
        rates = seen.of_gpu(REFERENCE, nbytes, False)
        assert rates == {"read": MEGABYTE * 1e3, "copy": MEGABYTE * 1e3}
    first, second = asked
    assert first == MEGABYTE
    assert second == pytest.approx(100 * MEGABYTE, rel=0.1)
