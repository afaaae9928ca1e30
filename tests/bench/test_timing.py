"""Turns, batches and their spread."""

from __future__ import annotations

import time

import pytest

from wollemi_bench import Contender, Timing, interleave
from wollemi_bench.flush import HostFlush, cache_bytes
from wollemi_bench.timing import Lost, Pace


def sleeper(name: str, seconds: float) -> Contender:
    return Contender(name, lambda: time.sleep(seconds) or 0.0)


def test_a_planted_slow_down_shows():
    times = interleave(
        [sleeper("fast", 1e-3), sleeper("slow", 2e-3)], batches=5, batch_seconds=0.01
    )
    assert times["fast"].median >= 1e-3
    assert times["fast"].ratio_of(times["slow"]) > 1.4


def test_equal_contenders_come_out_equal():
    times = interleave([sleeper("a", 2e-3), sleeper("b", 2e-3)], batches=7, batch_seconds=0.01)
    assert 0.7 < times["a"].ratio_of(times["b"]) < 1.4


def test_everybody_has_a_turn_in_every_round_and_the_order_rotates():
    order = []
    contenders = [Contender(n, lambda n=n: order.append(n) or time.sleep(1e-3)) for n in "abc"]
    times = interleave(contenders, batches=3, batch_seconds=1e-4)
    assert {n: len(t.samples) for n, t in times.items()} == {"a": 3, "b": 3, "c": 3}
    rounds = [n for n, before in zip(order, [None, *order], strict=False) if n != before]
    assert "".join(rounds).endswith("abcbcacab")


def test_quick_calls_are_timed_in_batches():
    times = interleave([Contender("quick", lambda: None)], batches=3, batch_seconds=1e-3)
    assert times["quick"].calls > 100


def test_a_long_call_is_not_made_twice_to_be_warm():
    made = []
    pace = Pace(batch=0.03, warm_up=0.01, long=1e-3)
    long = Contender("long", lambda: made.append(1) or time.sleep(5e-3), pace=pace)
    interleave([long], batches=4, batch_seconds=1e-3)
    assert len(made) == 1 + 4


def test_a_budget_ends_the_rounds_but_not_before_there_are_three():
    times = interleave([sleeper("s", 0.01)], batches=100, batch_seconds=0.01, budget=0.0)
    assert len(times["s"].samples) == 3


def test_work_that_is_only_submitted_is_waited_for():
    queue = []
    late = Contender("late", lambda: queue.append(1), lambda: time.sleep(2e-3 * len(queue[:1])))
    assert interleave([late], batches=3, batch_seconds=1e-3)["late"].median > 1e-5


def test_a_timing_knows_its_spread():
    timing = Timing((1.0, 2.0, 3.0, 4.0, 100.0), 1)
    assert timing.median == 3.0
    assert timing.quartiles == (2.0, 4.0)
    assert timing.ratio_of(Timing((2.0, 4.0, 6.0, 8.0, 1.0), 1)) == 2.0


def test_who_fails_on_the_way_is_lost_and_the_others_go_on():
    calls = []

    def sometimes():
        calls.append(1)
        if len(calls) > 9:
            raise OSError("worn out")
        time.sleep(1e-3)

    lost = {}
    contenders = [sleeper("good", 1e-3), Contender("bad", sometimes)]
    times = interleave(contenders, batches=9, batch_seconds=1e-3, lost=lost)
    assert times.keys() == {"good"} and len(times["good"].samples) == 9
    assert lost == {"bad": "OSError: worn out"}
    with pytest.raises(Lost, match="worn out"):
        interleave([Contender("bad", sometimes)], batches=3, batch_seconds=1e-3)


def test_with_cold_caches_each_call_comes_after_a_flush():
    order = []
    contender = Contender("c", lambda: order.append("call"), flush=lambda: order.append("flush"))
    interleave([contender], batches=3, cold=True)
    assert order == ["flush", "call"] * 9


def test_a_flush_writes_more_than_the_last_cache():
    flush = HostFlush()
    flush()
    assert sum(part.nbytes for part in flush._parts) >= 2 * cache_bytes() > 0
