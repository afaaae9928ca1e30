"""Records, their file and their table."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import Cost
from wollemi_bench import Report, Timing
from wollemi_bench.contest import Outcome
from wollemi_bench.peers import Absent, SciPy
from wollemi_bench.problem import OfferFacts
from wollemi_bench.report import Record, Subject, environment, records_of, seconds_text, table

REFERENCE = wl.ReferenceExecutor()


class Absentee(SciPy):
    """A library that is not here."""

    name = "absentee"

    def version(self):
        raise Absent("not installed")


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
    facts = OfferFacts(cost=Cost(8_000_000, 4_000_000), kernel="rows", notes=["rows: why"])
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
    outcomes = [Outcome("wollemi", Timing((1.0,), 1), facts=OfferFacts(cost=Cost(50, 20)))]
    (record,) = records_of(replace(SUBJECT, per=10), outcomes, {})
    assert (record.seconds, record.bytes, record.flops) == (0.1, 5, 2)


def test_a_solve_that_ended_early_is_counted_by_the_iterations_it_did():
    outcomes = [
        Outcome("wollemi", Timing((1.0, 1.0), 1), facts=OfferFacts(iterations=10)),
        Outcome("scipy", Timing((1.0, 1.0), 1), facts=OfferFacts(iterations=5)),
    ]
    ours, scipy = records_of(replace(SUBJECT, per=10), outcomes, {})
    assert (ours.seconds, scipy.seconds, scipy.times_ours) == (0.1, 0.2, 2.0)


def test_a_report_is_json_lines_with_where_it_was_made(tmp_path):
    path = tmp_path / "r.jsonl"
    report = Report(environment(REFERENCE, [SciPy(), Absentee()]), path)
    for record in example():
        report.add(record)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["environment", "result", "result", "result"]
    assert {line["schema"] for line in lines} == {"wollemi-bench/2"}
    assert len({line["run"] for line in lines}) == 1
    where = lines[0]
    assert where["executor"] == "reference"
    assert where["peers"]["absentee"] == "absent: not installed"
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
    for words in (
        "spmv  eye:4",
        "2 ms",
        "0.50",
        "3.00",
        "rows: why",
        "mkl: absent",
        "read 8.0",
        "times ours: this time",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (3.16e-3, "3.16 ms"), (4.2e-5, "42 us"), (7e-8, "70 ns")]
)
def test_times_have_a_unit_that_fits(seconds, text):
    assert seconds_text(seconds) == text
