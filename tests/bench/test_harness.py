"""The harness itself: wrong results and slow-downs are caught, absent peers are named."""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import wollemi as wl
from wollemi.bench import Contender, Contest, Report, Timing, case, interleave, ml, spmv
from wollemi.bench.bandwidth import Streams
from wollemi.bench.contest import Outcome, Settings
from wollemi.bench.flush import HostFlush, cache_bytes
from wollemi.bench.load import Neighbours
from wollemi.bench.measure import run
from wollemi.bench.peers import Absent, Mkl, Numba, Peer, PyAmg, SciPy, Torch, peers
from wollemi.bench.peers_numba import kernels
from wollemi.bench.problem import Facts, Offer, Problem, entrants
from wollemi.bench.report import (
    Record,
    Subject,
    break_even,
    environment,
    records_of,
    seconds_text,
    table,
)
from wollemi.bench.settle import settle
from wollemi.bench.timing import Lost, Pace
from wollemi.bench.worker import Stations, pack, unpack
from wollemi.core.errors import InvalidArgument
from wollemi.core.operation import Cost

QUICK = Settings(batches=3, batch_seconds=1e-4, budget=1.0)
REFERENCE = wl.ReferenceExecutor()


def right(_):
    return ""


def sleeper(name: str, seconds: float) -> Contender:
    return Contender(name, lambda: time.sleep(seconds) or 0.0)


# ---- timing


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


# ---- contests


class Toy(Problem):
    """Contenders that are called by their names."""

    def __init__(self, calls, cost=None):
        self.S, self.calls, self.cost = case("stencil5:2").matrix(), calls, cost

    def ours(self, executor):
        facts = Facts(cost=self.cost)
        return [
            Offer(name, lambda call=call: call, facts=lambda: facts)
            for name, call in self.calls.items()
        ]

    def theirs(self, peer):
        raise Absent("not installed")

    def wrong(self, result):
        return "" if result == 1.0 else f"got {result}"


def hold(calls, peers=(), cost=None):
    with Stations(own_process=False) as stations:
        return Contest(Toy(calls, cost), entrants(REFERENCE, peers)).run(stations, QUICK)


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


@pytest.mark.parametrize("nbytes", [0, 3 << 20])
def test_streams_move_about_as_many_bytes_as_they_are_asked_to(nbytes):
    for stream in Streams(nbytes).ours(REFERENCE):
        stream.make()()
        assert 0.9 * max(nbytes, 1 << 20) <= stream.facts().cost.bytes <= max(nbytes, 1 << 20)


def test_what_comes_once_is_paid_for_after_so_many_calls():
    def outcome(name, first, each):
        return Outcome(name, Timing((each,) * 3, 1), facts=Facts(first=first))

    baseline = outcome("scipy", 3.0, 3.0)
    assert break_even(outcome("wollemi", 11.0, 1.0), baseline) == 5.0
    assert break_even(outcome("wollemi", 11.0, 4.0), baseline) is None
    assert break_even(outcome("wollemi", 1.0, 1.0), baseline) == 0.0
    assert break_even(outcome("wollemi", 11.0, 1.0), None) is None


# ---- processes

PLANTED = """
import os, signal
from wollemi.bench.peers import Peer

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
        print("what is printed goes nowhere")
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
    with Stations(own_process=True) as stations:
        for _ in range(2):  # and what crashed is there again in the next contest
            held = run(spmv.tasks([case("stencil5:6")]), REFERENCE, peers, stations, QUICK)
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


def test_a_busy_neighbour_is_noted(monkeypatch):
    monkeypatch.setattr("wollemi.bench.load.Neighbours._others", lambda self: self._seen)
    neighbours = Neighbours.__new__(Neighbours)
    neighbours._began, neighbours._before, neighbours._seen = time.perf_counter() - 10, 3.0, 18.0
    (note,) = neighbours.note()
    assert "other programs used 1.5 of" in note
    neighbours._seen = 3.1
    assert neighbours.note() == []
    neighbours._seen = None
    assert neighbours.note() == []


def test_what_we_do_ourselves_is_no_neighbour():
    def burn():
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass

    ours, nobody = Neighbours([os.getpid()]), Neighbours([])
    burn()
    assert ours.cores() < nobody.cores()


def test_threads_that_sleep_are_settled_and_those_that_spin_are_not(monkeypatch):
    monkeypatch.setattr("wollemi.bench.settle.PATIENCE", 0.02)
    monkeypatch.setattr("wollemi.bench.settle._runs", lambda thread: False)
    assert settle()
    monkeypatch.setattr("wollemi.bench.settle._threads", lambda: [1, 2])
    monkeypatch.setattr("wollemi.bench.settle._runs", lambda thread: True)
    assert not settle()


# ---- checks of products


def test_a_product_that_is_off_in_one_row_is_wrong():
    S = case("stencil5:8").matrix()
    x = spmv.random_vector(S.shape[1], S.dtype)
    check = spmv.Product(S).wrong
    y = S @ x
    assert check(y) == ""
    y[17] *= 1 + 1e-9
    assert check(y).startswith("row 17 is")
    y[17] = np.nan
    assert check(y).startswith("row 17 is nan")
    assert check(y[:-1]) == "shape (63,), expected (64,)"


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_of_every_dtype_pass(dtype):
    S = case("circuit:200").matrix(dtype)
    x = spmv.random_vector(S.shape[1], S.dtype)
    assert x.dtype == S.dtype
    assert spmv.Product(S).wrong(S @ x) == ""


# ---- peers


def test_what_is_not_installed_is_absent(monkeypatch):
    from importlib.metadata import PackageNotFoundError

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("wollemi.bench.peers.version", missing)
    with pytest.raises(Absent, match="not installed: pip install pyamg"):
        PyAmg().version()


def test_an_executor_of_the_cpu_is_compared_with_libraries_of_the_cpu():
    assert [p.name for p in peers(REFERENCE)] == ["scipy", "mkl", "torch", "pyamg", "numba"]


class Cheating(Peer):
    """A library whose product is fast and wrong."""

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
    with Stations(own_process=False) as stations:
        held = run(spmv.tasks([case("stencil5:6")]), REFERENCE, peers, stations, QUICK)
        by_name = {record.contender: record for record in held}
    assert by_name["wollemi"].seconds and by_name["wollemi"].times_ours == 1.0
    assert by_name["scipy"].seconds and by_name["scipy"].times_ours
    assert by_name["cheating"].seconds is None
    assert by_name["cheating"].trouble.startswith("wrong: row 0 is 0")
    assert by_name["missing"].trouble == "absent: not installed"


@pytest.mark.parametrize("peer", [SciPy(), Mkl(1), Torch(1)], ids=lambda p: p.name)
def test_peers_that_are_here_compute_the_right_product(peer):
    try:
        peer.version()
        problem = spmv.Product(case("circuit:300").matrix())
        (offer,) = problem.theirs(peer)
    except Absent as reason:
        pytest.skip(str(reason))
    call = offer.make()
    for _ in range(2):  # the second call must not add to the first
        assert problem.wrong(offer.to_host(call())) == ""


def test_what_a_peer_cannot_do_is_absent():
    S = case("stencil5:3").matrix()
    b = np.ones(9)
    with pytest.raises(Absent, match="its cg is not compared"):
        Mkl(1).solve("cg", S, b, 3, 30)
    with pytest.raises(Absent, match="its SpMV is not compared"):
        PyAmg().spmv(S, b)
    with pytest.raises(Absent, match="its spmm is not compared"):
        PyAmg().ml("spmm", S, [b])


def test_pyamg_solves_where_it_is(monkeypatch):
    called = {}

    def method(S, b, **more):
        called.update(more)
        return 2 * b, 0

    krylov = SimpleNamespace(cg=method, gmres=method)
    monkeypatch.setitem(sys.modules, "pyamg", SimpleNamespace(krylov=krylov))
    S = case("stencil5:3").matrix()
    assert np.array_equal(PyAmg().solve("cg", S, np.ones(9), 3, 30)(), 2 * np.ones(9))
    assert called == {"tol": 0.0, "maxiter": 3, "callback": None}
    PyAmg().solve("gmres", S, np.ones(9), 60, 30)()
    assert (called["maxiter"], called["restart"], called["orthog"]) == (2, 30, "mgs")
    with pytest.raises(Absent, match="has no cgs"):
        PyAmg().solve("cgs", S, np.ones(9), 3, 30)


def plain_numba(monkeypatch):
    """Put plain Python in the place of compiled loops: what they compute is the same."""
    module = SimpleNamespace(
        njit=lambda **_: lambda function: function,
        prange=range,
        set_num_threads=lambda _: None,
        config=SimpleNamespace(NUMBA_NUM_THREADS=1),
    )
    monkeypatch.setitem(sys.modules, "numba", module)
    kernels.cache_clear()


@pytest.mark.parametrize("operation", ["spmm", "sddmm", "fusedmm"])
def test_the_loops_for_numba_are_right(monkeypatch, operation):
    plain_numba(monkeypatch)
    problem = ml.Dense(operation, case("pruned:8,9,70").matrix("float32"), 3)
    calls = Numba(2).ml(operation, problem.S, problem.operands)
    assert problem.wrong(calls["numba"]()) == ""
    problem = spmv.Product(case("circuit:40").matrix())
    assert problem.wrong(Numba(2).spmv(problem.S, problem.x)()) == ""
    kernels.cache_clear()


def test_peers_of_a_gpu_are_those_that_compute_there():
    executor = SimpleNamespace(properties={}, backend="cuda", name="cuda:0")
    assert [p.name for p in peers(executor)] == ["cupy", "torch", "warp", "jax"]
    assert [p.name for p in peers(executor, ["jax"])] == ["jax"]
    with pytest.raises(InvalidArgument, match="no peer of cuda:0 is called 'mkl'"):
        peers(executor, ["mkl"])


@pytest.mark.parametrize("peer", peers(SimpleNamespace(properties={}, backend="cuda")))
def test_a_peer_of_a_gpu_without_one_is_absent_or_fails_by_itself(peer):
    """What it raises here is what a report has on such a machine: the others go on."""
    S = case("stencil5:3").matrix()
    for ask in (lambda: peer.spmv(S, np.ones(9)), lambda: peer.ml("spmm", S, [np.ones((9, 2))])):
        with pytest.raises(Exception):  # noqa: B017  each library has its own
            ask()


# ---- reports


SUBJECT = Subject(
    benchmark="spmv",
    case="eye:4",
    executor="reference",
    format="csr",
    dtype="float64",
    rows=4,
    columns=4,
    entries=4,
    caches="warm",
    process="own",
    family="",
)


def example():
    facts = Facts(cost=Cost(8_000_000, 4_000_000), kernel="rows", notes=["rows: why"])
    outcomes = [
        Outcome("wollemi", Timing((1e-3, 2e-3, 3e-3), 5), facts=facts),
        Outcome("scipy", Timing((3e-3, 6e-3, 9e-3), 2)),
        Outcome("mkl", None, "absent: not installed"),
    ]
    return records_of(SUBJECT, outcomes, {"read": 8e9, "triad": 5e9})


def test_records_have_bandwidth_share_and_ratio():
    ours, scipy, mkl = example()
    assert ours.seconds == 2e-3
    assert ours.bandwidth == 4e9
    assert ours.floor_share == 0.5
    assert (ours.times_ours, scipy.times_ours, mkl.times_ours) == (1.0, 3.0, None)
    assert mkl.floor_share is None
    assert replace(ours, read=None).floor_share is None


def test_a_solve_is_counted_by_the_iteration():
    outcomes = [Outcome("wollemi", Timing((1.0,), 1), facts=Facts(cost=Cost(50, 20)))]
    (record,) = records_of(replace(SUBJECT, per=10), outcomes, {})
    assert (record.seconds, record.bytes, record.flops) == (0.1, 5, 2)


def test_a_solve_that_ended_early_is_counted_by_the_iterations_it_did():
    outcomes = [
        Outcome("wollemi", Timing((1.0, 1.0), 1), facts=Facts(iterations=10)),
        Outcome("scipy", Timing((1.0, 1.0), 1), facts=Facts(iterations=5)),
    ]
    ours, scipy = records_of(replace(SUBJECT, per=10), outcomes, {})
    assert (ours.seconds, scipy.seconds, scipy.times_ours) == (0.1, 0.2, 2.0)


def test_a_report_is_json_lines_with_where_it_was_made(tmp_path):
    path = tmp_path / "r.jsonl"
    report = Report(environment(REFERENCE, [SciPy(), Missing()]), path)
    for record in example():
        report.add(record)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["environment", "result", "result", "result"]
    assert {line["schema"] for line in lines} == {"wollemi-bench/2"}
    assert len({line["run"] for line in lines}) == 1
    where = lines[0]
    assert where["executor"] == "reference"
    assert where["peers"]["missing"] == "absent: not installed"
    assert where["versions"]["numpy"] == np.__version__
    assert lines[1]["contender"] == "wollemi"
    assert lines[1]["floor_share"] == 0.5
    assert lines[3]["trouble"] == "absent: not installed"
    assert [Record.from_line(line) for line in lines[1:]] == report.records


def test_the_table_shows_numbers_and_troubles():
    from rich.console import Console

    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table(example()))
    text = console.export_text()
    for words in ("spmv  eye:4", "2 ms", "0.50", "3.00", "rows: why", "mkl: absent", "read 8.0"):
        assert words in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (3.16e-3, "3.16 ms"), (4.2e-5, "42 us"), (7e-8, "70 ns")]
)
def test_times_have_a_unit_that_fits(seconds, text):
    assert seconds_text(seconds) == text
