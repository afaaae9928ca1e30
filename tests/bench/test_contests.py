"""Wrong results, failures and crashes are records, and the others go on."""

from __future__ import annotations

import importlib
from contextlib import closing

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import Cost
from wollemi_bench import Contest, Timing, case, spmv
from wollemi_bench.contest import Outcome, Settings
from wollemi_bench.measure import run
from wollemi_bench.peers import Absent, Peer, PyAmg, SciPy
from wollemi_bench.problem import Offer, OfferFacts, Problem, libraries
from wollemi_bench.report import break_even
from wollemi_bench.worker import Runners, pack, unpack

QUICK = Settings(batches=3, batch_seconds=1e-4, budget=1.0)
REFERENCE = wl.ReferenceExecutor()


class Toy(Problem):
    """Contenders that are called by their names."""

    def __init__(self, calls, cost=None):
        self.S, self.calls, self.cost = case("stencil5:2").matrix(), calls, cost

    def ours(self, executor):
        facts = OfferFacts(cost=self.cost)
        return [
            Offer(name, lambda call=call: call, facts=lambda: facts)
            for name, call in self.calls.items()
        ]

    def theirs(self, peer):
        raise Absent("not installed")

    def wrong(self, result):
        return "" if result == 1.0 else f"got {result}"


def hold(calls, peers=(), cost=None):
    with closing(Runners(own_process=False)) as runners:
        return Contest(Toy(calls, cost), libraries(REFERENCE, peers)).run(runners, QUICK)


def test_a_wrong_result_is_reported_and_not_timed():
    (good, bad), _ = hold({"good": lambda: 1.0, "bad": lambda: 2.0})
    assert good.timing is not None and good.trouble == ""
    assert bad.timing is None and bad.trouble == "wrong: got 2.0"


def test_a_failing_contender_does_not_end_the_others():
    def fail():
        raise RuntimeError("out of order")

    (good, bad), _ = hold({"good": lambda: 1.0, "bad": fail})
    assert good.timing is not None
    assert bad.trouble == "failed: RuntimeError: out of order"


def test_absent_peers_are_named():
    outcomes, _ = hold({"good": lambda: 1.0}, [PyAmg()])
    assert (outcomes[1].name, outcomes[1].timing) == ("pyamg", None)
    assert outcomes[1].trouble.startswith("absent: not installed")


def test_the_memory_is_measured_with_a_cost():
    _, bandwidth = hold({"good": lambda: 1.0}, cost=Cost(1 << 20, 0))
    assert bandwidth.keys() == {"read", "triad", "copy"}
    assert all(rate > 1e8 for rate in bandwidth.values())


def test_what_comes_once_is_paid_for_after_so_many_calls():
    def outcome(name, first, each):
        return Outcome(name, Timing((each,) * 3, 1), facts=OfferFacts(first=first))

    baseline = outcome("scipy", 3.0, 3.0)
    assert break_even(outcome("wollemi", 11.0, 1.0), baseline) == 5.0
    assert break_even(outcome("wollemi", 11.0, 4.0), baseline) is None
    assert break_even(outcome("wollemi", 1.0, 1.0), baseline) == 0.0
    assert break_even(outcome("wollemi", 11.0, 1.0), None) is None


# ---- peers that cheat or are missing


class Cheating(Peer):
    """A library with a fast and wrong product."""

    name = "cheating"

    def version(self):
        return "1"

    def spmv(self, S, x):
        return lambda: np.zeros(S.shape[0])


class Missing(Peer):
    """A library that is not here."""

    name = "missing"

    def version(self):
        raise Absent("not installed")


def test_a_cheating_peer_is_caught_and_a_missing_one_named():
    peers = [SciPy(), Cheating(), Missing()]
    with closing(Runners(own_process=False)) as runners:
        held = run(spmv.tasks([case("stencil5:6")]), REFERENCE, peers, runners, QUICK)
        by_name = {record.contender: record for record in held}
    assert by_name["wollemi"].seconds and by_name["wollemi"].times_ours == 1.0
    assert by_name["scipy"].seconds and by_name["scipy"].times_ours
    assert by_name["cheating"].seconds is None
    assert by_name["cheating"].trouble.startswith("wrong: row 0 is 0")
    assert by_name["missing"].trouble == "absent: not installed"


# ---- processes

PLANTED = """
import os, signal
from wollemi_bench.peers import Peer

class Named(Peer):
    def __init__(self, name):
        self.name = name
    def version(self):
        return "1"

class Crashing(Named):
    def spmv(self, S, x):
        return lambda: os.kill(os.getpid(), signal.SIGSEGV)

class Leaving(Named):
    def spmv(self, S, x):
        calls = []
        def call():
            calls.append(1)
            if len(calls) > 3:
                os._exit(3)
            return S @ x
        return call

class Telling(Named):
    def spmv(self, S, x):
        print("printed text is discarded")
        return lambda: S @ x + 0 * os.getpid()

class Wrong(Named):
    def spmv(self, S, x):
        return lambda: 0 * x
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    (tmp_path / "planted_peers.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("planted_peers")


def test_a_crash_is_a_record_and_the_others_go_on(planted):
    peers = [
        planted.Crashing("crashing"),
        planted.Leaving("leaving"),
        planted.Wrong("wrong"),
        planted.Telling("telling"),
    ]
    with closing(Runners(own_process=True)) as runners:
        for _ in range(2):  # and a crashed library is back in the next contest
            held = run(spmv.tasks([case("stencil5:6")]), REFERENCE, peers, runners, QUICK)
            by_name = {record.contender: record for record in held}
            assert by_name["crashing"].trouble == "failed: its process ended with SIGSEGV"
            assert by_name["leaving"].trouble == "failed: its process ended with status 3"
            assert by_name["wrong"].trouble.startswith("wrong: row 0 is 0")
            assert by_name["telling"].trouble == by_name["wollemi"].trouble == ""
            assert by_name["telling"].seconds and by_name["telling"].peak_memory is not None


def test_a_problem_travels_with_its_arrays(tmp_path):
    problem = spmv.Product(case("circuit:300").matrix())
    pack(problem, tmp_path / "p")
    made = unpack(tmp_path / "p")
    assert (made.S != problem.S).nnz == 0
    assert np.array_equal(made.x, problem.x)
    assert made.x.flags.writeable and made.S.data.flags.writeable
