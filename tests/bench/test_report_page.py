"""``wollemi bench report``: the content of a page, which is well formed and needs no network."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from wollemi.cli import main
from wollemi_bench.page import markdown
from wollemi_bench.page.chapters import chapters
from wollemi_bench.page.papers import in_unit
from wollemi_bench.page.style import looks_of
from wollemi_bench.results import read, recorded_contests

from ..backends.needs import package
from .made import record, write

PAPER = {
    "figure": "speed",
    "value": 12.5,
    "unit": "Gflop/s",
    "hardware": "a machine of 2020",
    "source": "Somebody (2020), Table 2",
}
SIZES = (1000, 10_000, 100_000)


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main(["bench", "report", *map(str, words)])
    return int(end.value.code or 0)


def everything():
    """Return records that fill every section of a report."""
    for n in SIZES:
        case = {"case": f"stencil7:{n}", "family": "stencil7", "size": n, "entries": n}
        yield record(seconds=n * 1e-9, kernel="rows", setup_seconds=1e-3, break_even=7.0, **case)
        yield record("wollemi balanced", n * 0.9e-9, kernel="balanced", **case)
        yield record("scipy", n * 3e-9, **case)
        yield record("pyamg", None, trouble="absent: its SpMV is not compared", **case)
    yield record("mkl", None, case="stencil7:1000", trouble="wrong: row <3> is nan")
    solve = {"benchmark": "solve/cg", "suite": "ginkgo-port", "case": "thermal2"}
    yield record(iterations=1000, residual=2.5e-7, paper=PAPER, peak_memory=5 * 10**6, **solve)
    yield record("scipy", 1e-2, iterations=1000, residual=2.5e-7, **solve)
    for i in range(20):
        yield record(benchmark="spmm/32", case=f"many:{i}", suite="esimd-72", dtype="float32")
        yield record("torch", 2e-3, benchmark="spmm/32", case=f"many:{i}", suite="esimd-72",
                     dtype="float32", seed=i)  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    return read(write(tmp_path / "r.jsonl", list(everything())))


def section(text: str, title: str) -> str:
    """Return the part of a page under a heading."""
    return text.partition(f"### {title}\n")[2].partition("\n##")[0]


# content


def test_the_three_questions_are_answered(runs):
    text = markdown.text(runs)
    assert "|  | scipy | torch |\n| --- | ---: | ---: |\n| spmv | 3.0 (3.0 to 3.0) |  |" in text
    assert "of the memory limit, spmv: the median of 3 cases" in text
    assert (
        "- **1.00** spmv: the power of the entries with which its time grows (1 is linear)" in text
    )


def test_who_failed_and_who_was_absent_is_named(runs):
    said = section(markdown.text(runs), "Failures and absent libraries")
    assert "| spmv stencil7:1000 | mkl | wrong: row \\<3> is nan |" in said
    assert "| pyamg | its SpMV is not compared | 3 |" in said
    assert "| mkl | not installed: pip install mkl |  |" in said


def test_a_failure_stands_in_the_table_of_its_contest_too(runs):
    said = section(markdown.text(runs), "Every contest")
    assert re.search(r"\| stencil7:1000 \| rows \| .* \| wrong \|", said)


def test_what_was_skipped_and_what_was_disturbed_is_told(tmp_path):
    late = {"benchmark": "spmm", "case": "late", "trouble": "skipped: the time was up"}
    busy = record(notes=["not alone: other programs used 1.4 of 2 cores"])
    text = markdown.text(read(write(tmp_path / "r.jsonl", [busy, record(seconds=None, **late)])))
    said = section(text, "Failures and absent libraries")
    assert "| spmm late | the time was up |" in said
    assert "Every contender that was there gave the right result." in said
    assert "late" not in section(text, "Every contest")
    assert "Other programs ran during 1 of 2 contests." in text


def test_a_papers_figure_stands_beside_ours_with_both_machines(runs):
    said = section(markdown.text(runs), "The papers' tables")
    assert "*ginkgo-port: Somebody (2020), Table 2*" in said
    assert (
        "| thermal2, solve/cg | speed | 13.9 Gflop/s | A processor, 2 threads (omp) "
        "| 12.5 Gflop/s | a machine of 2020 |"
    ) in said


def test_a_papers_figure_of_a_whole_suite_is_held_against_ours_of_all(tmp_path):
    paper = {"figure": "loss of the rule", "value": "5 to 12", "unit": "%", "hardware": "GPUs"}
    drawn = {"figure": "drawn, not tabulated", "value": None, "hardware": "GPUs", "source": "Two"}
    records = []
    for case in ("a", "b"):
        one = {"benchmark": "spmm/8", "case": case, "suite": "one", "noise": 0.0}
        records.append(record(seconds=1.1e-3, kernel="x", paper={**paper, "source": "One"}, **one))
        records.append(record("wollemi y", 1e-3, kernel="y", **one))
        records.append(record(case=case, suite="two", paper=drawn))
        records.append(record("wollemi coo", 2e-3, case=case, suite="two"))
    said = section(markdown.text(read(write(tmp_path / "r.jsonl", records))), "The papers' tables")
    where = "A processor, 2 threads (omp)"
    loss = f"| 2 cases | loss of the rule | 10.0 % (at most 10.0 %) | {where} | 5 to 12 % | GPUs |"
    assert loss in said
    assert f"| 2 cases | drawn, not tabulated | below | {where} | in no table | GPUs |" in said
    assert "|  | spmv | spmv coo |" in said
    assert re.search(r"\| a \| \S+ [mu]s \| \S+ ms \|", said)


def test_the_rules_loss_is_in_per_cent_with_its_worst_case(runs):
    said = section(markdown.text(runs), "Losses of the rule")
    row = r"spmv, float64 \| 3 \| 11\.\d % \| 1\d\.\d % \| .*rows, best balanced"
    assert re.search(row, said)


def test_times_beside_busy_processes_have_a_table(tmp_path):
    records = [
        record(busy=2, busy_seconds=2.5e-3, noise=0.0),
        record("scipy", 2e-3, busy=2, busy_seconds=5e-3, noise=0.0),
        record(case="quiet"),
    ]
    text = markdown.text(read(write(tmp_path / "r.jsonl", records)))
    said = section(text, "With busy processes")
    assert "| spmv stencil7:100 | wollemi | 2 | 1 ms | 2.5 ms | 2.5 |  |" in said
    assert "| spmv stencil7:100 | scipy | 2 | 2 ms | 5 ms | 2.5 | 2.0 |" in said
    assert "quiet" not in said


def test_set_up_residuals_and_memory_are_told(runs):
    text = markdown.text(runs)
    assert "| ginkgo-port: solve/cg thermal2 | wollemi | 1,000 | 2.5e-07 |" in text
    assert "| spmv stencil7:1000 | 1 ms |" in section(text, "What comes once")
    assert "| 7 |" in section(text, "What comes once")


def test_tables_of_many_rows_are_left_to_the_files_and_named(runs):
    text = markdown.text(runs)
    assert "many:3" not in section(text, "Every contest")
    assert re.search(r"- Every contest: .*spmm/32, float32 \(esimd-72\)", text)


def test_the_contents_lead_to_every_section_and_none_is_empty(runs):
    text = markdown.text(runs)
    linked = re.findall(r"\]\(#([^)]+)\)", text)
    assert linked
    assert linked == re.findall(r'<a id="([^"]+)"></a>', text)
    for part in text.split("\n### ")[1:]:
        assert re.search(r"^[|!-]", part, re.MULTILINE), f"empty: {part.splitlines()[0]}"


def test_only_pairs_of_one_clock_are_in_the_headline(tmp_path):
    records = [
        record(method="graph", noise=0.0),
        record("cusparse", 9e-3, method="events", noise=0.0),
        record("torch", 2e-3, method="graph", noise=0.0),
        record("dense (cupy)", 3e-3, method="graph", noise=0.0),
        record(case="other", noise=0.0),
        record("cupyx", 4e-3, case="other", noise=0.0),
    ]
    text = markdown.text(read(write(tmp_path / "r.jsonl", records)))
    assert "|  | torch | cupy |\n| --- | ---: | ---: |\n| spmv | 2.0 | 4.0 |" in text
    assert "| spmv, float64 | cupy, events to graph | 1 | 9.0 |" in text
    assert "| spmv, float64 | dense (cupy) | 1 | 3.0 |" in text


def test_a_legend_has_ten_entries_at_most():
    records = [record("scipy"), *(record("wollemi", kernel=f"k{i}") for i in range(14))]
    looks = looks_of([*records, record("wollemi", kernel="k9")])
    labels = list(dict.fromkeys(look["label"] for look in looks.values()))
    assert len(looks) == 15 and len(labels) == 10
    assert labels[:2] == ["scipy", "wollemi k9"]  # chosen twice
    assert labels[-1] == "wollemi, other kernels"


def test_where_it_was_measured_names_versions_clocks_and_processes(runs):
    said = section(markdown.text(runs), "Where it was measured")
    assert "r.jsonl, 2026-11-21: Linux x86\\_64, 2 cores; wollemi 0.1.0; numpy 2.4.6" in said
    assert "wollemi, scipy, torch: by the host's clock" in said
    assert "All contenders shared one process." in said


def test_figures_without_a_spread_are_counted(tmp_path):
    bare = record(samples=[], low=None, high=None)
    (chapter,) = chapters(read(write(tmp_path / "r.jsonl", [bare, record("scipy")])))
    assert "Of 1 of 2 times only the median was kept, no spread." in chapter.where


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("Gflop/s", "13.9 Gflop/s"),
        ("GB/s", "100 GB/s"),
        ("ms an iteration", "1 ms an iteration"),
        ("times MKL", "3.0 (scipy)"),
        ("apples", "1 ms"),
    ],
)
def test_ours_is_told_in_the_papers_unit(tmp_path, unit, expected):
    records = [record(noise=0.0), record("scipy", 3e-3, noise=0.0)]
    (contest,) = recorded_contests(read(write(tmp_path / "r.jsonl", records)))
    assert in_unit(contest, contest.ours, unit) == expected


# ---- the page


class Page(HTMLParser):
    """Collects the parts of a page, and checks that every tag is closed."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open += [] if tag in self.VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    package("matplotlib")
    package("jinja2")
    folder = tmp_path_factory.mktemp("page")
    path = write(folder / "r.jsonl", list(everything()))
    assert run(path, "--out", folder / "out") == 0
    return folder / "out" / "index.html"


def test_the_page_is_whole_and_light_and_asks_for_nothing(page):
    text = page.read_text()
    parsed = Page(text)
    assert parsed.open == []
    assert len(text) < 1_000_000
    addresses = [a.get("src") or a.get("href") for _, a in parsed.tags if "src" in a or "href" in a]
    assert addresses
    assert all(a.startswith(("data:image/png;base64,", "#")) for a in addresses)
    assert not [tag for tag, _ in parsed.tags if tag in ("script", "link", "iframe")]


def test_pictures_have_words_and_tables_have_heads(page):
    tags = Page(page.read_text()).tags
    pictures = [attributes for tag, attributes in tags if tag == "img"]
    assert len(pictures) == len(list(page.parent.glob("*.png"))) >= 7
    assert all(len(picture["alt"]) > 20 for picture in pictures)
    tables = sum(tag == "table" for tag, _ in tags)
    assert sum(tag == "caption" for tag, _ in tags) == tables > 5
    assert {a["scope"] for tag, a in tags if tag == "th"} == {"col", "row"}


def test_what_is_measured_is_text_and_never_markup(page):
    assert "wrong: row <3> is nan" in "".join(Page(page.read_text()).text)


def test_the_same_records_give_the_same_page(page, tmp_path):
    assert run(page.parents[1] / "r.jsonl", "--out", tmp_path / "again") == 0
    assert (tmp_path / "again" / "index.html").read_bytes() == page.read_bytes()


def test_a_report_of_one_bare_record_is_drawn_too(tmp_path):
    package("matplotlib")
    package("jinja2")
    bare = record(samples=[], low=None, high=None, bytes=None, flops=None, read=None, triad=None)
    path = write(tmp_path / "r.jsonl", [bare])
    assert run(path, "--out", tmp_path / "out", "--markdown", tmp_path / "p.md") == 0
    assert (tmp_path / "p.md").read_text().startswith("# Performance")


def test_pictures_of_an_older_page_are_removed(tmp_path):
    package("matplotlib")
    (tmp_path / "img").mkdir()
    (tmp_path / "img/performance-old.png").touch()
    (tmp_path / "img/convergence.png").touch()
    path = write(tmp_path / "r.jsonl", list(everything()))
    assert run(path, "--markdown", tmp_path / "p.md") == 0
    assert not (tmp_path / "img/performance-old.png").exists()
    assert (tmp_path / "img/convergence.png").exists()


def test_somewhere_to_write_is_needed(tmp_path, capsys):
    assert run(write(tmp_path / "r.jsonl", [record()])) == 2
    assert "give --out FOLDER" in capsys.readouterr().err
