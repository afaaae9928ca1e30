"""The records that are kept make the page of measurements."""

from __future__ import annotations

from pathlib import Path

from wollemi_bench.page import markdown
from wollemi_bench.results import read

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))


def test_the_kept_records_make_a_page():
    runs = [run for path in RESULTS for run in read(path)]
    page = markdown.text(runs)
    assert page.startswith("# ")
    assert "NVIDIA H200" in page and "(img/performance-" in page
