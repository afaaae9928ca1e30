"""The docs' performance page: the content of kept files, with nothing typed by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from ..results import Run
from .chapters import chapters
from .html import Follow, pictures, save
from .parts import Answer, Chapter, Picture, Section, Table

#: In the pictures' metadata: which records they were drawn from.
MADE_FROM = "Source"

#: The last section of a device.
WHERE = "Where it was measured"

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
        The content of the files.
    images : str
        The folder of the pictures, as the page sees it.
    """
    found = chapters(runs)
    parts = [INTRODUCTION, _contents(found)]
    for chapter in found:
        parts.append(f"## {chapter.title}\n")
        parts += [_answer(a) for a in chapter.answers if a.figures or a.table]
        for section in _shown(chapter):
            parts += [_anchor(chapter, section.title), _section(section, images)]
        parts += [_anchor(chapter, WHERE), f"### {WHERE}\n"]
        parts.append("\n".join(f"- {_plain(line)}" for line in chapter.where) + "\n")
        parts.append(_left_to_the_files(chapter))
    return "\n".join(part for part in parts if part)


def _shown(chapter: Chapter) -> list[Section]:
    """Return the sections of a chapter that have something to show on this page."""
    return [s for s in chapter.sections if any(isinstance(p, Picture) or _fits(p) for p in s.parts)]


def _contents(found: Sequence[Chapter]) -> str:
    """Return the list of contents: a line for each device."""
    lines = ["## Contents", ""]
    for chapter in found:
        titles = [*(section.title for section in _shown(chapter)), WHERE]
        inner = ", ".join(f"[{title}](#{_name(chapter, title)})" for title in titles)
        lines.append(f"- {chapter.title}: {inner}")
    return "\n".join(lines) + "\n"


def _anchor(chapter: Chapter, title: str) -> str:
    """Return an anchor: titles of two devices are the same, and their own names clash."""
    return f'<a id="{_name(chapter, title)}"></a>\n'


def _name(chapter: Chapter, title: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in f"{chapter.slug} {title}".lower())
    return "-".join(words.split())


def _left_to_the_files(chapter: Chapter) -> str:
    """Return the tables that this page omits."""
    lines = []
    for section in chapter.sections:
        left = [p.caption for p in section.parts if not isinstance(p, Picture) and not _fits(p)]
        if left:
            lines.append(f"- {section.title}: {'; '.join(map(_plain, left))}")
    if not lines:
        return ""
    head = "Tables that are too long for this page; `wollemi bench report --out` shows them:"
    return "\n".join([head, "", *lines]) + "\n"


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
    """Return a key of records; a new field that none of them has changes nothing."""
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


def write(runs: Sequence[Run], page: Path, follow: Follow = iter) -> list[Path]:
    """Write the page, and its pictures into ``img`` next to it; its old ones are removed.

    Parameters
    ----------
    runs : sequence of Run
        The content of the files.
    page : Path
        The page.
    follow : callable
        Goes through the pictures while they are drawn, to show how far it is.

    Returns
    -------
    list of Path
        The written files, the page first.
    """
    folder = page.parent / "img"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("performance-*.png"):
        old.unlink()
    made_from = digest(runs)
    found: Sequence[Chapter] = chapters(runs)
    written = [
        save(picture.draw(), folder / file_of(picture), **{MADE_FROM: made_from})
        for picture in follow(pictures(found))
    ]
    page.write_text(text(runs), encoding="utf-8")
    return [page, *written]
