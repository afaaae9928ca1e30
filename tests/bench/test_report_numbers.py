"""The numbers of reports: ratios and their spread, slopes, the rule's loss, groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wollemi_bench.page import numbers, rows
from wollemi_bench.page.numbers import Series, Spread
from wollemi_bench.results import read, recorded_contests

from .made import of_samples, record, write


@pytest.fixture
def held(tmp_path):
    """Return a function that makes contests of records."""
    return lambda *records: recorded_contests(read(write(tmp_path / "r.jsonl", records)))


# ---- ratios


def test_a_ratio_is_taken_within_each_round():
    # both are slow in the third round, and the ratio does not see it
    ours = record(**of_samples(1.0, 1.0, 5.0))
    other = record("scipy", **of_samples(2.0, 2.0, 10.0))
    assert numbers.times_ours(ours, other) == Spread(2.0, 2.0, 2.0)


def test_a_ratio_without_samples_spans_the_far_ends_of_the_quartiles():
    ours = record(seconds=None, low=1.0, high=4.0, samples=[])
    ours, other = (
        replace(ours, seconds=2.0),
        record("scipy", seconds=None, low=6.0, high=8.0, samples=[]),
    )
    other = replace(other, seconds=8.0)
    assert numbers.times_ours(ours, other) == Spread(1.5, 4.0, 8.0)


def test_a_ratio_of_bare_figures_has_no_spread():
    ours = replace(record(seconds=None), seconds=2.0)
    other = replace(record("scipy", seconds=None), seconds=3.0)
    assert numbers.times_ours(ours, other) == Spread(1.5, 1.5, 1.5)
    assert numbers.times_ours(ours, record("mkl", seconds=None)) is None


def test_a_peer_is_summed_up_over_its_cases(held):
    (one,) = numbers.versus(
        held(
            *(record(seconds=1.0, case=c, noise=0.0) for c in "abc"),
            record("mkl", 4.0, case="a", noise=0.0),
            record("mkl", 0.5, case="b", noise=0.0),
            record("mkl", None, case="c", trouble="failed: no"),
        )
    )
    assert one.mean == pytest.approx(2**0.5)
    assert (one.worst, one.best, one.lost) == (("b", 0.5), ("a", 4.0), ["b"])


# ---- growth


def test_quadratic_growth_has_slope_two():
    power, error = numbers.slope([1, 10, 100, 1000], [1e-6, 1e-4, 1e-2, 1.0])
    assert (power, error) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-9))


def test_two_sizes_have_no_slope():
    assert numbers.slope([1, 10, 10], [1.0, 2.0, 3.0]) is None


def test_families_of_three_sizes_grow_and_kernels_by_name_are_left_out(held):
    sizes = (1000, 10_000, 100_000)
    grown = {"noise": 0.0, "family": "stencil7"}
    found = numbers.growths(
        held(
            *(record(seconds=n * 1e-9, case=f"stencil7:{n}", size=n, **grown) for n in sizes),
            *(record("scipy", n * 2e-9, case=f"stencil7:{n}", size=n, **grown) for n in sizes),
            *(record("wollemi rows", 1.0, case=f"stencil7:{n}", size=n, **grown) for n in sizes),
            record(case="rmat:18,4000000", family="rmat", size=4_000_000),
            record(case="stencil5:9", family="stencil5"),
        )
    )
    assert [(g.family, g.contender) for g in found] == [
        ("stencil7", "wollemi"),
        ("stencil7", "scipy"),
    ]
    assert found[0].slope.power == pytest.approx(1.0)


# ---- the rule


def test_the_loss_is_the_time_of_the_chosen_kernel_over_that_of_the_best(held):
    (contest,) = held(
        record(seconds=1.2, kernel="rows", noise=0.0),
        record("wollemi rows", 1.2, kernel="rows", noise=0.0),
        record("wollemi balanced", 1.0, kernel="balanced", noise=0.0),
        record("scipy", 0.1, noise=0.0),
    )
    lost = numbers.loss(contest)
    assert (lost.chosen, lost.best, lost.share) == ("rows", "balanced", pytest.approx(0.2))


def test_the_best_kernel_loses_nothing_to_its_own_second_timing(held):
    (contest,) = held(
        record(seconds=1.02, kernel="rows", noise=0.0),
        record("wollemi rows", 1.0, kernel="rows", noise=0.0),
        record("wollemi balanced", 1.5, kernel="balanced", noise=0.0),
    )
    assert numbers.loss(contest).share == 0.0


def test_without_other_kernels_there_is_no_loss_to_speak_of(held):
    (contest,) = held(
        record(), record("scipy", 1.0), record("wollemi rows", None, trouble="wrong: 1")
    )
    assert numbers.loss(contest) is None


# groups


def test_cases_of_one_suite_and_operation_are_a_series(held):
    found = numbers.series_of(
        held(record(case="a"), record(case="b"), record(case="a", caches="cold"))
    )
    assert [(str(series), len(of)) for series, of in found.items()] == [
        ("spmv, float64", 2),
        ("spmv, float64, cold caches", 1),
    ]
    series = Series("esimd-72", "spmm/32", "coo", "float32", "warm")
    assert str(series) == "spmm/32, coo, float32 (esimd-72)"


def test_runs_on_one_device_are_one_place_and_others_are_others(tmp_path):
    gpu = {"executor": "cuda:0", "device": {"name": "NVIDIA H200", "bandwidth": 1.0}}
    runs = [
        *read(write(tmp_path / "a.jsonl", [record()])),
        *read(write(tmp_path / "b.jsonl", [record(case="b")])),
        *read(write(tmp_path / "c.jsonl", [record()], **gpu)),
        *read(write(tmp_path / "d.jsonl", [record(case="b")], **gpu, cores=99)),
    ]
    found = numbers.places(runs)
    assert [(p.name, p.slug, len(p.contests)) for p in found] == [
        ("A processor, 2 threads (omp)", "a-processor-2-threads-omp", 2),
        ("NVIDIA H200 (cuda)", "nvidia-h200-cuda", 2),
    ]


def test_long_series_are_folded_until_a_picture_fits():
    few, some, many = (Series("", name, "csr", "float64", "warm") for name in "abc")
    cases = {few: 3, some: 10, many: 40}

    def groups(fold, lines=2):
        return {
            str(s): [("all", 2)] if s in fold else [(str(i), lines) for i in range(n)]
            for s, n in cases.items()
        }

    assert rows.folded(cases, groups) == {many}
    assert rows.folded(cases, lambda fold: groups(fold, lines=9)) == {many, some}


def test_rows_lie_below_each_other_and_under_their_headings():
    placed = rows.Rows({"one": [("a", 1), ("b", 3)], "two": [("a", 1)]})
    tops = [placed.tops[key] for key in (("one", "a"), ("one", "b"), ("two", "a"))]
    ends = [top + lines for top, lines in zip(tops, (1, 3, 1), strict=True)]
    assert all(end < top for end, top in zip(ends, tops[1:], strict=False))
    assert [text for _, text in placed.headings] == ["one", "two"]
    assert placed.headings[1][0] > ends[1]
    assert placed.height > ends[2]
