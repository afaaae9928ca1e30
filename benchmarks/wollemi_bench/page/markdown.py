"""The docs' performance page: what kept files say, with nothing typed by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from ..results import Run
from .chapters import chapters
from .html import pictures, save
from .parts import Answer, Chapter, Picture, Section, Table

#: In the pictures' metadata: which records they were drawn from.
MADE_FROM = "Source"

#: Tables that list everything are left to the files if they have more rows than this.
MOST_ROWS = 14

INTRODUCTION = """\
# Performance

This page is made from the files in [`benchmarks/results/`](../benchmarks/results) by
`make performance`; nothing in it was typed by hand. How it was measured is in
[benchmarks/README.md](../benchmarks/README.md). To see it on your machine: `make bench`.
"""


def text(runs: Sequence[Run], images: str = "img") -> str:
    """Return the page.

    Parameters
    ----------
    runs : sequence of Run
        What was read from the files.
    images : str
        The folder of the pictures, as the page sees it.
    """
    parts = [INTRODUCTION]
    for chapter in chapters(runs):
        parts.append(f"## {chapter.title}\n")
        parts += [_answer(a) for a in chapter.answers if a.figures or a.table]
        parts += [_section(section, images) for section in chapter.sections]
        parts.append("### Where it was measured\n")
        parts.append("\n".join(f"- {_plain(line)}" for line in chapter.where) + "\n")
    return "\n".join(part for part in parts if part)


def _answer(answer: Answer) -> str:
    lines = [f"**{answer.question}**", "", *(f"- **{f}** {of}" for f, of in answer.figures)]
    lines += table(answer.table) if answer.table else []
    return "\n".join(lines) + "\n"


def _section(section: Section, images: str) -> str:
    shown = [p for p in section.parts if isinstance(p, Picture) or _fits(p)]
    lines = [f"### {section.title}", "", section.text, ""]
    for part in shown:
        if isinstance(part, Picture):
            lines += [f"![{part.alt}]({images}/{file_of(part)})", "", f"*{part.caption}*", ""]
        else:
            lines += [*table(part), ""]
    left = [p.caption for p in section.parts if p not in shown]
    if left:
        lines += [f"In the files alone: {'; '.join(map(str, left))}.", ""]
    return "\n".join(lines)


def _fits(table: Table) -> bool:
    return not table.long or (len(table.rows) <= MOST_ROWS and not table.again)


def table(shown: Table) -> list[str]:
    """Return a table's lines."""
    rule = ["---" if i < shown.words else "---:" for i in range(len(shown.head))]
    return [f"*{_plain(shown.caption)}*", "", *map(_line, (shown.head, rule, *shown.rows))]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(cell: str) -> str:
    """Return text that Markdown leaves as it is."""
    for sign in "\\|*_<":
        cell = cell.replace(sign, "\\" + sign)
    return " ".join(cell.split())


def file_of(picture: Picture) -> str:
    """Return the name of a picture's file."""
    return f"performance-{picture.name}.png"


def digest(runs: Sequence[Run]) -> str:
    """Return what tells records from others; a new field that none of them has changes nothing."""
    lines = [
        json.dumps(
            [
                run.environment,
                [{k: v for k, v in asdict(r).items() if v or v is False} for r in run.records],
            ]
        )
        for run in runs
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def write(runs: Sequence[Run], page: Path) -> list[Path]:
    """Write the page, and its pictures into ``img`` beside it; old ones of it are removed.

    Returns
    -------
    list of Path
        What was written, the page first.
    """
    folder = page.parent / "img"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("performance-*.png"):
        old.unlink()
    made_from = digest(runs)
    found: Sequence[Chapter] = chapters(runs)
    written = [
        save(picture.draw(), folder / file_of(picture), **{MADE_FROM: made_from})
        for picture in pictures(found)
    ]
    page.write_text(text(runs), encoding="utf-8")
    return [page, *written]
