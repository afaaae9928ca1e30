"""The docs' performance page is what the kept files give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wollemi_bench.page import markdown
from wollemi_bench.results import read

from ..backends.needs import package

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/performance.md"
RESULTS = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))


@pytest.fixture(scope="module")
def runs():
    return [run for path in RESULTS for run in read(path)]


def test_the_performance_page_is_current(runs):
    assert PAGE.read_text(encoding="utf-8") == markdown.text(runs), "run: make performance"


def test_the_pictures_were_drawn_from_the_same_records(runs):
    image = package("PIL.Image")
    named = re.findall(r"\]\((img/performance-[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert named
    expected = markdown.digest(runs)
    for name in named:
        made_from = image.open(PAGE.parent / name).text[markdown.MADE_FROM]
        assert made_from == expected, f"{name}: run make performance"
