"""Lines of prose on pages: none is longer than 100 characters, and wrapping changes no word."""

from __future__ import annotations

import doctest

import pytest
from website import wrap_prose

PAGES = sorted({path for pattern in wrap_prose.PAGES for path in wrap_prose.ROOT.glob(pattern)})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_lines_of_prose_are_short(page):
    text = page.read_text(encoding="utf-8")
    assert wrap_prose.wrapped(text) == text, "make format"


LONG = "word " * 30


@pytest.mark.parametrize("kept", ["| {} |", "# {}", "```\n{}\n```", "<p>{}</p>", "> {}"])
def test_other_lines_stay(kept):
    page = kept.format(LONG.strip())
    assert wrap_prose.wrapped(page) == page


def test_items_keep_their_indentation_and_the_next_item():
    page = wrap_prose.wrapped(f"1. {LONG}\n   {LONG}\n2. Next\n")
    lines = page.split("\n")
    assert page.split() == f"1. {LONG} {LONG} 2. Next".split()
    assert lines[-2:] == ["2. Next", ""]
    assert all(line.startswith("   word") for line in lines[1:-2])


def test_no_line_begins_as_an_item_or_a_heading():
    for sign in ("-", "#", "3.", ">"):
        lines = wrap_prose.wrapped(f"{'x' * 99} {sign} end").split("\n")
        assert not any(line.startswith(sign) for line in lines)


def test_the_examples_run():
    assert doctest.testmod(wrap_prose).failed == 0
