"""Rules of papers are contenders, and pages report the loss of each choice."""

from __future__ import annotations

import pytest

import wollemi as wl
from wollemi.core.statistics import RowStatistics
from wollemi_bench import case, ml, published_rules, suites
from wollemi_bench.page import choices, markdown
from wollemi_bench.peers import Absent
from wollemi_bench.results import read, recorded_contests

from .made import record, write

EVEN = RowStatistics(20_000, 20_000, 200_000, 10.0, 3.2, 25, 0.0)
LONG = RowStatistics(2048, 2048, 419_430, 204.8, 191.0, 1141, 0.0)
GRAPH = RowStatistics(65_536, 65_536, 1_000_000, 15.3, 75.0, 5431, 0.3)


@pytest.mark.parametrize(
    ("rows", "columns", "kernel"),
    [
        (EVEN, 1, "eb-pr"),
        (GRAPH, 4, "eb-pr"),
        (LONG, 4, "rb-pr"),
        (EVEN, 5, "rb-sr"),
        (EVEN, 128, "rb-sr"),
        (GRAPH, 8, "eb-sr"),
        (LONG, 128, "eb-sr"),
    ],
)
def test_the_rule_of_dgsparse_asks_for_columns_and_then_for_rows(rows, columns, kernel):
    named = published_rules.dgsparse(rows, columns)
    assert named.kernel == kernel
    assert f"{columns} columns" in named.reason


def test_a_matrix_without_rows_has_a_kernel_too():
    empty = RowStatistics(0, 5, 0, 0.0, 0.0, 0, 0.0)
    assert [published_rules.dgsparse(empty, k).kernel for k in (1, 8)] == ["eb-pr", "rb-sr"]


def test_the_suite_of_dgsparse_has_its_rule_as_a_contender():
    (job,) = suites.suite("dgsparse").jobs(64, 30)
    assert job.options["rules"] == ("dgsparse rule",)
    assert job.options["every_kernel"]


def offered(columns):
    S = case("rmat:8,1000").matrix("float32")
    made = ml.Dense("spmm", S, columns, rules=("dgsparse rule",))
    return made, {offer.name: offer for offer in made.ours(wl.core.registry.executor("omp"))}


def test_what_a_rule_names_is_timed_and_said():
    made, offers = offered(2)
    offer = offers["wollemi dgsparse rule"]
    assert made.wrong(offer.to_host(offer.make()())) == ""
    facts = offer.facts()
    assert facts.kernel == "eb-pr"
    assert facts.notes[0].startswith("eb-pr: 2 columns, rows of 3.91 entries")


def test_a_rule_whose_kernel_an_executor_lacks_is_absent():
    _, offers = offered(8)
    with pytest.raises(Absent, match="eb-sr"):
        offers["wollemi dgsparse rule"].make()


# the loss of each choice

TIMES = {
    "wollemi": ("a", 1.0e-3),
    "wollemi a": ("a", 1.1e-3),
    "wollemi b": ("b", 1.5e-3),
    "wollemi tca-tf32": ("tca-tf32", 0.5e-3),
    "wollemi dgsparse rule": ("b", 1.4e-3),
}


def contests(tmp_path, **more):
    paper = {"source": "One", "figure": "loss", "value": "5 to 12", "unit": "%", "hardware": "x"}
    records = [
        record(name, seconds, kernel=kernel, benchmark="spmm/8", case=one, suite="dgsparse",
               noise=0.0, paper=paper if name == "wollemi" else None, **more)
        for one in ("g", "h")
        for name, (kernel, seconds) in TIMES.items()
        if (one, name) != ("h", "wollemi b")
    ]  # fmt: skip
    return read(write(tmp_path / "r.jsonl", records))


def test_each_choice_is_held_against_the_best_kernel_that_does_not_round(tmp_path):
    first, _ = recorded_contests(contests(tmp_path))
    lost = {name: cost.share for name, cost in choices.costs(first).items()}
    assert lost == {
        "": 0.0,
        "a": 0.0,
        "b": pytest.approx(0.5),
        "tca-tf32": 0.0,
        "dgsparse rule": pytest.approx(0.4),
    }


def test_the_page_has_our_rule_then_theirs_then_each_kernel(tmp_path):
    said = markdown.text(contests(tmp_path))
    table = said.partition("the loss of each choice against the best kernel")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ")][:7]
    names = [row.split("|")[1].strip() for row in rows]
    assert names[2:] == ["our rule", "dgsparse rule", "a", "tca-tf32", "b"]
    assert "| dgsparse rule | 2 | 40.0 % | 40.0 % | g, spmm/8 |" in table
    assert "| b | 1 of 2 | 50.0 % | 50.0 % | g, spmm/8 |" in table


def test_a_rule_is_held_against_the_kernels_that_it_may_name_too(tmp_path):
    times = {"rb-sr": 4.0, "eb-sr": 2.0, "fast": 1.0, "": 1.0, "dgsparse rule": 4.0}
    kernels = {"": "fast", "dgsparse rule": "rb-sr"}
    records = [
        record(f"wollemi {name}".strip(), seconds, kernel=kernels.get(name, name), noise=0.0,
               benchmark="spmm/8", suite="dgsparse")
        for name, seconds in times.items()
    ]  # fmt: skip
    (contest,) = recorded_contests(read(write(tmp_path / "r.jsonl", records)))
    all_kernels, theirs = choices.tables_of("dgsparse", [contest])
    assert ("dgsparse rule", "1", "300.0 %", "300.0 %", "stencil7:100, spmm/8") in all_kernels.rows
    assert [row[:3] for row in theirs.rows] == [
        ("dgsparse rule", "1", "100.0 %"),
        ("eb-sr", "1", "0.0 %"),
        ("rb-sr", "1", "100.0 %"),
    ]


def test_one_kernel_is_no_choice(tmp_path):
    records = [record(benchmark="spmm/8", kernel="a"), record("scipy", 2e-3, benchmark="spmm/8")]
    (contest,) = recorded_contests(read(write(tmp_path / "r.jsonl", records)))
    assert choices.costs(contest) == {}
    assert choices.tables_of("usual", [contest]) == []
