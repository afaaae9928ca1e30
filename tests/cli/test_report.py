"""``wollemi solve --report``: one file without other files."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from wollemi.cli.console import BAD_INPUT, NOT_CONVERGED, SOLVED

from ..backends.needs import package

REFERENCE = ("--executor", "reference")


class Tags(HTMLParser):
    """Checks that tags are closed in order, and collects the files that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        named = dict(attrs)
        for name in ("src", "href", "xlink:href"):
            value = named.get(name) or ""
            self.loaded += [value] if value and not value.startswith(("#", "data:")) else []
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(path: Path) -> tuple[str, Tags]:
    text, tags = path.read_text(encoding="utf-8"), Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return text, tags


def test_a_report_says_what_the_table_says_and_shows_two_pictures(wollemi, laplacian, tmp_path):
    package("matplotlib")
    path = tmp_path / "report.html"
    ended = wollemi("solve", laplacian, "--method", "cg", "--report", path, *REFERENCE)
    assert ended.status == SOLVED
    text, tags = read(path)
    for words in ("laplacian.mtx", "cg: as asked", "true residual", "error of x", "converged:"):
        assert words in text
    assert tags.seen.count("svg") == 2
    assert tags.loaded == [] and "script" not in tags.seen
    assert len(text) < 300_000


def test_a_report_of_a_solve_that_failed_says_so(wollemi, indefinite, tmp_path):
    package("matplotlib")
    path = tmp_path / "report.html"
    options = ("--method", "cg", "--precond", "none", "--report", path, "--quiet")
    assert wollemi("solve", indefinite, *options, *REFERENCE).status == NOT_CONVERGED
    assert re.search('class="verdict">indefinite', read(path)[0])


def test_names_of_files_are_text_and_not_html(wollemi, laplacian, tmp_path):
    package("matplotlib")
    strange = laplacian.rename(laplacian.with_name("<b>&.mtx"))
    path = tmp_path / "report.html"
    assert wollemi("solve", strange, "--report", path, *REFERENCE).status == SOLVED
    text, tags = read(path)
    assert "&lt;b&gt;&amp;.mtx" in text and "b" not in tags.seen


def test_several_right_hand_sides_are_one_report(wollemi, laplacian, tmp_path):
    package("matplotlib")
    np.save(tmp_path / "b.npy", np.random.default_rng(0).standard_normal((40, 3)))
    path = tmp_path / "report.html"
    options = (tmp_path / "b.npy", "--report", path)
    assert wollemi("solve", laplacian, *options, *REFERENCE).status == SOLVED
    assert "3, the worst one below" in read(path)[0]


@pytest.mark.parametrize("name", ["report.pdf", "nowhere/report.html"])
def test_what_cannot_be_written_is_said_before_the_solve(wollemi, laplacian, tmp_path, name):
    package("matplotlib")
    ended = wollemi("solve", laplacian, "--report", tmp_path / name, *REFERENCE)
    assert ended.status == BAD_INPUT and ended.out == ""
    assert name.split("/")[0] in ended.complaint
