"""``wollemi bench`` and ``python -m benchmarks`` on tiny cases."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import wollemi as wl
from wollemi.cli import main
from wollemi_bench import ml, runs, suites
from wollemi_bench.cases import Case
from wollemi_bench.worker import Runners

from ..backends.needs import package

QUICK = ("--batches", "3", "--budget", "0.05", "--one-process", "--against", "scipy")


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0)


def results(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["kind"] == "result"]


def test_contenders_have_a_process_each_unless_asked_otherwise(tmp_path):
    options = [word for word in QUICK if word != "--one-process"]
    files = ("--json", tmp_path / "r.jsonl")
    assert run("bench", "spmv", "stencil5:40", "rmat:6,200", *options, *files) == 0
    for record in results(tmp_path / "r.jsonl"):
        assert record["process"] == "own"
        if not record["trouble"]:
            assert record["seconds"] > 0 and record["read"] > 0 and record["copy"] > 0
            assert record["peak_memory"] > 0 and record["setup_seconds"] >= 0


def test_caches_can_be_emptied_before_each_call(tmp_path):
    options = ("--executor", "reference", "--cold", "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "spmv", "stencil5:8", *options) == 0
    assert {r["caches"] for r in results(tmp_path / "r.jsonl")} == {"cold"}


def test_contenders_are_timed_beside_busy_processes_too(tmp_path, capsys):
    options = ("--executor", "reference", "--busy", "1", "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "spmv", "stencil5:8", *options) == 0
    assert "with 1 busy" in " ".join(capsys.readouterr().out.split())
    for record in results(tmp_path / "r.jsonl"):
        assert record["busy"] == 1
        assert (record["busy_seconds"] is None) == bool(record["trouble"])
        assert record["trouble"] or len(record["busy_samples"]) >= 3


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_spmv_is_measured(tmp_path, capsys, executor):
    options = ("--executor", executor, "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "spmv", "stencil5:8", "rmat:6,200", *options) == 0
    records = results(tmp_path / "r.jsonl")
    assert {r["case"] for r in records} == {"stencil5:8", "rmat:6,200"}
    assert all(r["seconds"] > 0 for r in records if r["contender"] in ("wollemi", "scipy"))
    assert "stencil5:8" in capsys.readouterr().out


def test_a_format_and_a_dtype_can_be_asked_for(tmp_path):
    options = ("--format", "ell", "--dtype", "float32", "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "spmv", "stencil5:8", "--executor", "reference", *options) == 0
    assert results(tmp_path / "r.jsonl")[0]["format"] == "ell"
    assert results(tmp_path / "r.jsonl")[0]["dtype"] == "float32"


def not_for_these_columns(operation, executor, columns):
    """Return the algorithms that refuse a number of columns, as the contenders are called."""
    A = wl.Csr(np.eye(16, 24, dtype=np.float32), executor=executor)
    found = set()
    for name in ml.kernels_of(A, operation):
        for count in columns:
            try:
                A.plan_for(operation, count, name)
            except wl.errors.InvalidArgument as error:
                assert "column" in str(error)
                found.add((count, f"wollemi {name}"))
    return found


@pytest.mark.parametrize("executor", ["reference", "omp"])
@pytest.mark.parametrize("operation", ["spmm", "sddmm", "fusedmm"])
def test_the_kernels_of_machine_learning_are_measured(tmp_path, operation, executor):
    options = ("--executor", executor, "--columns", "4", "--columns", "9", "--every-kernel")
    files = ("--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", operation, "pruned:16,24,70", *options, *files) == 0
    records = results(tmp_path / "r.jsonl")
    assert {r["benchmark"] for r in records} == {f"{operation}/4", f"{operation}/9"}
    ours = [r for r in records if r["contender"].startswith("wollemi")]
    ran = [r for r in ours if not r["trouble"]]
    assert all(r["seconds"] > 0 and r["flops"] > 0 for r in ran)
    left_out = {(int(r["benchmark"][-1]), r["contender"]) for r in ours if r["trouble"]}
    assert left_out == not_for_these_columns(operation, executor, (4, 9))
    assert any(r["contender"] == "wollemi row-blocks" for r in ran) == (executor == "omp")


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_solvers_are_measured_by_the_iteration(tmp_path, executor):
    options = ("--executor", executor, "--iterations", "30", "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "solve", "stencil7:6", *options) == 0
    ours = {r["benchmark"]: r for r in results(tmp_path / "r.jsonl") if r["ours"]}
    methods = ["solve/bicgstab", "solve/cg", "solve/cgs", "solve/gmres"]
    assert sorted(ours) == ["overhead/cg", *methods]
    assert all(r["trouble"] == "" and r["seconds"] > 0 for r in ours.values())
    assert all(ours[m]["bytes"] > 0 for m in methods)


def test_long_solves_count_their_iterations_and_have_their_true_residual(tmp_path):
    options = ("--method", "bicgstab", "--iterations", "200", "--json", tmp_path / "r.jsonl")
    assert run("bench", "solve", "stencil5:6", "--executor", "reference", *options, *QUICK) == 0
    records = {
        r["contender"]: r for r in results(tmp_path / "r.jsonl") if r["case"] == "stencil5:6"
    }
    for name in ("wollemi", "scipy"):
        assert records[name]["residual"] < 1e-12
        assert records[name]["seconds"] > 0
    assert records["wollemi"]["iterations"] == 200
    assert 5 < records["scipy"]["iterations"] < 200  # it ends where rho has come down to rounding


def test_a_suite_has_its_name_and_its_paper_on_its_records(tmp_path, capsys, monkeypatch):
    def tiny(scale, iterations):
        return [suites.Job("sddmm", (f"uniform:{scale},{scale},200",), {"columns": (32, 512)})]

    small = replace(suites.suite("sddmm-study"), jobs=tiny)
    monkeypatch.setitem(suites.SUITES, "sddmm-study", small)
    options = ("--scale", "64", "--executor", "reference", "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "suite", "sddmm-study", *options) == 0
    records = results(tmp_path / "r.jsonl")
    assert {r["suite"] for r in records} == {"sddmm-study"}
    assert {r["benchmark"] for r in records} == {"sddmm/32", "sddmm/512"}
    ours = [r for r in records if r["ours"]]
    assert all("Nisa" in r["paper"]["source"] and r["paper"]["hardware"] for r in ours)
    assert all(r["trouble"] == "" for r in ours)
    assert "sddmm/512" in capsys.readouterr().out


OPERATIONS = ("spmv", "solve", "overhead", "work", "first", *ml.OPERATIONS)


@pytest.mark.parametrize("name", suites.SUITES)
def test_every_suite_has_cases_that_there_are(name):
    for scale in (1, 8, 64):
        for job in suites.suite(name).jobs(scale, 30):
            assert all(isinstance(one, Case) for one in suites.chosen(job))
            assert job.operation in OPERATIONS


def test_the_72_cases_are_72():
    spmm = suites.suite("esimd-72").jobs(1, 30)[0]
    assert len(spmm.names) * len(spmm.options["columns"]) == 72


def test_a_case_that_cannot_be_had_is_a_failed_record(monkeypatch):
    def broken(*_):
        raise MemoryError("too large")

    monkeypatch.setattr(runs, "held", broken)
    monkeypatch.setattr(runs.Maker, "problem", lambda self, task: None)
    with closing(Runners(own_process=False)) as runners:
        records = list(runs.run("growth", wl.ReferenceExecutor(), [], runners))
    assert len(records) == 16  # four jobs over four sizes
    assert {r.trouble for r in records} == {"failed: MemoryError: too large"}
    assert all(r.suite == "growth" for r in records)


def test_what_there_was_no_time_for_is_recorded_as_skipped(tmp_path):
    options = ("--minutes", "0", "--executor", "reference", "--json", tmp_path / "r.jsonl")
    assert run("bench", "suite", "all", *options, *QUICK) == 0
    records = results(tmp_path / "r.jsonl")
    assert {r["suite"] for r in records} == set(suites.SUITES) - {"collection"}
    assert {r["trouble"] for r in records} == {"skipped: the time was up"}


def test_suites_share_the_time_by_their_weights():
    names = ["usual", "growth", "ginkgo-port"]
    shares = dict(runs.shares(names, 80.0))
    usual, growth, ginkgo = (suites.suite(name).weight for name in names)
    assert shares["usual"] == pytest.approx(80.0 * usual / (usual + growth + ginkgo), abs=0.1)
    assert shares["growth"] == pytest.approx(80.0 * growth / (growth + ginkgo), abs=0.1)
    assert shares["ginkgo-port"] == pytest.approx(80.0, abs=0.1)


def test_growth_is_measured_over_sizes(tmp_path):
    options = ("--grow", "--executor", "reference", "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "spmv", "stencil5:32", *options) == 0
    ours = [r for r in results(tmp_path / "r.jsonl") if r["ours"]]
    assert [r["case"] for r in ours] == ["stencil5:4", "stencil5:8", "stencil5:16", "stencil5:32"]
    assert [r["size"] for r in ours] == [r["entries"] for r in ours]
    assert {r["family"] for r in ours} == {"stencil5"}


def test_half_precision_is_measured(tmp_path):
    options = ("--dtype", "float16", "--columns", "8", "--json", tmp_path / "r.jsonl", *QUICK)
    assert run("bench", "spmm", "pruned:16,24,70", "--executor", "omp", *options) == 0
    ours, scipy = results(tmp_path / "r.jsonl")
    assert (ours["dtype"], ours["trouble"]) == ("float16", "")
    assert scipy["trouble"] == "absent: has no half precision here"


def test_a_roofline_is_drawn(tmp_path):
    package("matplotlib")
    options = ("--executor", "reference", "--plot", tmp_path / "roof.png", *QUICK)
    assert run("bench", "spmv", "stencil5:8", "stencil7:5", *options) == 0
    assert (tmp_path / "roof.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("spmv", "stencil6"), "no case is called 'stencil6'"),
        (("spmv", "nowhere.mtx"), "no such file"),
        (("spmv", "stencil5:4", "--executor", "magic"), "no backend is called"),
        (("spmv", "stencil5:4", "--json", "/no/such/folder/x"), "no folder"),
        (("spmv", "stencil5:4", "--format", "magic"), "magic"),
        (("solve", "--method", "magic"), "no method is called"),
        (("spmv", "stencil5:4", "--against", "magic"), "no peer of omp"),
        (("suite", "magic"), "no suite is called"),
        (("spmm", "--dtype", "int8"), "expected float32 or float16"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(capsys, words, complaint):
    assert run("bench", *words) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert len(said.splitlines()) == 1


def test_a_wrong_result_of_ours_ends_with_1(monkeypatch):
    monkeypatch.setattr("wollemi_bench.spmv.Product.wrong", lambda self, y: "planted")
    assert run("bench", "spmv", "stencil5:4", "--executor", "reference", *QUICK) == 1
