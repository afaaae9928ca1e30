"""``wollemi bench compare``: planted slow-downs are found, noise is not; differences are told."""

from __future__ import annotations

import json

import pytest

from wollemi.cli import main
from wollemi.core.errors import InvalidArgument
from wollemi_bench.compare import Kind, compare, differences
from wollemi_bench.results import read, recorded_contests

from .made import ENVIRONMENT, of_samples, record, timed, write


@pytest.fixture
def compared(tmp_path):
    """Return a function that compares records after writing and reading files."""

    def compared(old, new, tolerance=0.05, before=(), now=()):
        a = write(tmp_path / "old.jsonl", old, **dict(before))
        b = write(tmp_path / "new.jsonl", new, **dict(now))
        return compare(read(a), read(b), tolerance=tolerance)

    return compared


def kinds(comparison):
    return {change.contender: change.kind for change in comparison.changes}


def run(*words):
    with pytest.raises(SystemExit) as end:
        main(["bench", "compare", *map(str, words)])
    return int(end.value.code or 0)


# ---- time


def test_a_planted_slow_down_is_a_regression(compared):
    found = compared([record(seconds=1.0e-3)], [record(seconds=1.2e-3, seed=1)])
    (change,) = found.regressions
    assert change.kind is Kind.SLOWER
    assert change.ratio == pytest.approx(1.2, rel=0.02)


def test_a_run_against_itself_changes_nothing(compared):
    found = compared([record(), record("scipy", 5e-3)], [record(), record("scipy", 5e-3)])
    assert set(kinds(found).values()) == {Kind.SAME}


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.3])
def test_noise_is_no_regression(compared, noise):
    old = [record(case=f"case{i}", noise=noise, seed=i) for i in range(60)]
    new = [record(case=f"case{i}", noise=noise, seed=100 + i) for i in range(60)]
    assert not compared(old, new).regressions


def test_a_slow_down_within_the_tolerance_is_none_however_sure(compared):
    old, new = record(noise=1e-4), record(seconds=1.04e-3, noise=1e-4)
    assert not compared([old], [new], 0.05).regressions
    assert compared([old], [new], 0.03).regressions


def test_a_slow_down_hidden_in_the_spread_is_none(compared):
    assert not compared(
        [record(noise=0.3, seed=1)], [record(seconds=1.1e-3, noise=0.3, seed=2)]
    ).regressions


def test_three_samples_suffice_where_they_are_far_apart(compared):
    old = record(**of_samples(1.00e-3, 1.01e-3, 1.06e-3))
    assert compared([old], [record(**of_samples(1.50e-3, 1.52e-3, 1.60e-3))]).regressions
    assert not compared([old], [record(**of_samples(1.08e-3, 1.20e-3, 1.30e-3))]).regressions


def test_figures_without_a_spread_are_taken_at_their_word(compared):
    bare = {"samples": [], "low": None, "high": None}
    assert compared([record(**bare)], [record(seconds=2e-3, **bare)]).regressions


def test_what_became_faster_is_said_and_is_no_regression(compared):
    found = compared([record()], [record(seconds=0.5e-3)])
    assert kinds(found) == {"wollemi": Kind.FASTER}
    assert not found.regressions


def test_a_slower_peer_is_said_and_is_no_regression(compared):
    found = compared([record(), record("scipy", 5e-3)], [record(), record("scipy", 9e-3)])
    assert kinds(found)["scipy"] is Kind.SLOWER or kinds(found)["scipy"] is Kind.MACHINE
    assert not found.regressions


# ---- the machine


def test_a_slower_machine_is_no_regression(compared):
    old = [record(), record("scipy", 5e-3)]
    new = [record(seconds=1.5e-3, read=2e11 / 1.5, triad=1e11), record("scipy", 7.5e-3)]
    found = compared(old, new)
    assert kinds(found)["wollemi"] is Kind.MACHINE
    assert found.changes[0].machine == pytest.approx(1.5)
    assert not found.regressions


def test_a_slow_down_beyond_the_machines_is_a_regression(compared):
    old = [record(), record("scipy", 5e-3)]
    new = [record(seconds=2e-3, read=2e11 / 1.2, triad=1.5e11 / 1.2), record("scipy", 6e-3)]
    assert compared(old, new).regressions


def test_a_peer_of_another_version_does_not_stand_for_the_machine(compared):
    bare = {"read": None, "triad": None}
    old = [record(**bare), record("scipy", 5e-3, **bare)]
    new = [record(seconds=1.5e-3, **bare), record("scipy", 7.5e-3, **bare)]
    assert not compared(old, new).regressions
    other = {"peers": {"scipy": "2.0"}}
    assert compared(old, new, now=other).regressions


# other changes of a contender


def test_a_contender_of_ours_that_fails_now_is_a_regression(compared):
    found = compared([record()], [record(seconds=None, trouble="wrong: row 3 is nan")])
    (change,) = found.regressions
    assert change.kind is Kind.FAILED


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ({"seconds": None, "trouble": "failed: no"}, {}, Kind.MENDED),
        ({"seconds": None, "trouble": "absent: no"}, {}, Kind.APPEARED),
        ({}, {"seconds": None, "trouble": "absent: no"}, Kind.VANISHED),
        ({}, {"seconds": None, "trouble": "skipped: the time was up"}, Kind.VANISHED),
        ({}, {"seconds": None, "trouble": "failed: no"}, Kind.FAILED),
        ({}, {"method": "graph"}, Kind.OTHERWISE),
        ({}, {"process": "own"}, Kind.OTHERWISE),
        ({"seconds": None, "trouble": "absent: a"}, {"seconds": None, "trouble": "absent: b"},
         Kind.SAME),
    ],
)  # fmt: skip
def test_a_peers_fate_has_a_name(compared, old, new, kind):
    found = compared([record(), record("cupy", **old)], [record(), record("cupy", **new)])
    assert kinds(found)["cupy"] is kind
    assert not found.regressions


def test_contenders_that_appear_and_vanish_are_named(compared):
    found = compared([record(), record("mkl")], [record(), record("wollemi balanced")])
    assert kinds(found) == {
        "wollemi": Kind.SAME,
        "mkl": Kind.VANISHED,
        "wollemi balanced": Kind.APPEARED,
    }


def test_an_algorithm_of_ours_counts_though_it_is_not_the_chosen_one(compared):
    old = [record(), record("wollemi balanced", 1e-3)]
    new = [record(), record("wollemi balanced", 2e-3)]
    assert [c.contender for c in compared(old, new).regressions] == ["wollemi balanced"]


def test_more_iterations_are_a_regression(compared):
    found = compared([record(iterations=100)], [record(iterations=140)])
    assert [c.kind for c in found.regressions] == [Kind.ITERATIONS]


def test_cold_and_warm_caches_and_suites_are_contests_of_their_own(compared):
    old = [record(), record(seconds=5e-3, caches="cold"), record(seconds=9e-3, suite="ginkgo-port")]
    assert set(kinds(compared(old, old)).values()) == {Kind.SAME}
    assert len(compared(old, old).changes) == 3
    assert [key.caches for key in compared(old, old[:1]).only_old] == ["cold", "warm"]


# ---- where it was measured


def test_versions_are_said(compared):
    versions = {"versions": {"wollemi": "0.2.0", "numpy": "2.4.6", "scipy": "1.17.1"}}
    found = compared([record()], [record()], now=versions)
    assert found.versions == ["wollemi: 0.1.0 before, 0.2.0 now"]
    assert not found.hardware


def test_memory_that_is_free_is_no_hardware(compared):
    device = {"device": {**ENVIRONMENT["device"], "memory": 5}}
    assert not compared([record()], [record()], now=device).hardware


def test_differences_name_what_only_one_has():
    assert differences({"mkl": "2026"}, {}) == ["mkl: 2026 before, none now"]


# ---- the command


def test_the_command_ends_with_1_on_a_regression_and_names_it(tmp_path, capsys):
    old = write(tmp_path / "old.jsonl", [record(), record("scipy", 5e-3)])
    new = write(tmp_path / "new.jsonl", [record(seconds=2e-3), record("scipy", 5e-3)])
    assert run(old, new) == 1
    said = capsys.readouterr().out
    assert "spmv stencil7:100" in said
    assert "slower" in said
    assert "Regressions of wollemi: 1." in said
    assert run(old, new, "--tolerance", "1.5") == 0


def test_the_command_says_so_if_nothing_changed(tmp_path, capsys):
    path = write(tmp_path / "old.jsonl", [record()])
    assert run(path, path) == 0
    assert "1 contenders of 1 contests: 1 as before." in capsys.readouterr().out


def test_other_hardware_is_refused_unless_asked_for(tmp_path, capsys):
    old = write(tmp_path / "old.jsonl", [record()])
    device = {"name": "Another processor", "threads": 64}
    new = write(tmp_path / "new.jsonl", [record(executor="omp:64")], device=device, cores=64)
    assert run(old, new) == 2
    said = capsys.readouterr().err
    assert "name: A processor before, Another processor now" in said
    assert "cores: 2 before, 64 now" in said
    assert run(old, new, "--other-hardware") == 0
    assert "name: A processor before, Another processor now" in capsys.readouterr().out


# ---- files


def test_a_file_of_version_1_is_read(tmp_path):
    newer = ("suite", "kernel", "caches", "method", "process", "copy", "setup_seconds", "family")
    path = write(tmp_path / "a.jsonl", [record()])
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    for line in lines:
        line["schema"] = "wollemi-bench/1"
        for name in newer:
            line.pop(name, None)
    path.write_text("\n".join(map(json.dumps, lines)))
    (found,) = read(path)
    assert found.records[0].caches == "warm"
    assert found.device["threads"] == 2


def test_a_field_that_nobody_knows_is_passed_over(tmp_path):
    path = write(tmp_path / "a.jsonl", [record()])
    path.write_text(path.read_text().replace('"kind": "result"', '"kind": "result", "new": 1'))
    assert len(read(path)[0].records) == 1


def test_a_line_that_broke_off_ends_the_file(tmp_path):
    path = write(tmp_path / "a.jsonl", [record(), record("scipy")])
    path.write_text(path.read_text()[:-50])
    assert [r.contender for r in read(path)[0].records] == ["wollemi"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", r"a\.jsonl:1: not a line of JSON"),
        ('{"kind": "result"}', r"a\.jsonl:1: the schema is None"),
        ("[]", r"a\.jsonl:1: the schema is None"),
        ('{"schema": "wollemi-bench/2", "run": "a", "kind": "environment"}', "no result in it"),
        ('{"schema": "wollemi-bench/2", "run": "a", "kind": "result", "case": "c"}',
         "needs benchmark, executor"),
        ("", "no result in it"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_records_is_refused(tmp_path, text, complaint):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(InvalidArgument, match=complaint):
        read(tmp_path / "a.jsonl")


def test_files_without_a_common_contest_are_refused(compared):
    with pytest.raises(InvalidArgument, match="the old one has spmv stencil7:100, the new one"):
        compared([record()], [record(case="stencil5:8")])


def test_what_was_measured_again_counts_once_and_contenders_do_not_mix(tmp_path):
    path = write(tmp_path / "a.jsonl", [record(seconds=1e-3), record("scipy")])
    later = write(tmp_path / "b.jsonl", [record(seconds=3e-3)], date="2026-12-01T00:00:00Z")
    (contest,) = recorded_contests(read(later) + read(path))
    assert contest.ours.seconds == pytest.approx(3e-3, rel=0.1)
    assert contest.peers == []


# with busy processes


def beside(seconds, name="wollemi", busy=2, alone=1e-3, **given):
    """Return a record of a time alone and one with busy processes."""
    spread = timed(seconds, **given)
    return record(
        name, alone, busy=busy, busy_seconds=spread["seconds"], busy_samples=spread["samples"]
    )


def test_a_slow_down_beside_busy_processes_is_a_regression(compared):
    found = compared([beside(2e-3)], [beside(8e-3, seed=1)])
    (change,) = found.regressions
    assert change.contender == "wollemi, with 2 busy"
    assert change.ratio == pytest.approx(4, rel=0.05)
    assert kinds(found)["wollemi"] is Kind.SAME


def test_what_peers_suffer_beside_busy_processes_explains_ours(compared):
    old = [beside(2e-3), beside(4e-3, "scipy")]
    new = [beside(3e-3, seed=1), beside(6e-3, "scipy", seed=2)]
    found = compared(old, new)
    assert not found.regressions
    assert kinds(found)["wollemi, with 2 busy"] is Kind.MACHINE


@pytest.mark.parametrize("new", [record(), beside(8e-3, busy=4)])
def test_times_beside_other_numbers_of_processes_are_not_compared(compared, new):
    found = compared([beside(2e-3)], [new])
    assert kinds(found) == {"wollemi": Kind.SAME}


def test_the_table_names_times_beside_busy_processes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # no cell is broken into lines
    files = (
        write(tmp_path / "old.jsonl", [beside(2e-3)]),
        write(tmp_path / "new.jsonl", [beside(8e-3)]),
    )
    assert run(*files) == 1
    assert "with 2 busy" in " ".join(capsys.readouterr().out.split())
