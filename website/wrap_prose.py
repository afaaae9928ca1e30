"""Wrap the prose of pages at 100 characters: ``python -m website.wrap_prose``, or ``--check``.

A paragraph or an item of a list is filled again from its first long line on. Blocks of code,
tables, headings, links and HTML stay as they are, and spans of code and links are not broken.
A single word, span or link that is longer stays a line of its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from .places import ROOT

#: Most characters of a line.
WIDTH = 100

#: The folders and pages of prose; tables of measurements are generated.
PAGES = ("*.md", "docs/*.md", "benchmarks/*.md", "website/*.md", "licenses/*.md")

_FENCE = re.compile(r"\s*(```|~~~|:::)")
_FIXED = re.compile(r"\s*(\||#|<|\[[^\]]+\]:|!\[|---|===|\$\$|\(.*\)=$)")
_ITEM = re.compile(r"(\s*(?:[-*+]|\d+\.|\[\^\w+\]:)\s+)")
_QUOTE = re.compile(r"\s*>+\s?")

#: A line that begins like this would be an item, a heading, a quotation, a table or HTML.
_NO_BEGINNING = re.compile(r"[-*+=|#>:<]|\d+\.$|!\[")

#: Words; a span of code, a formula or a link with the text around it is one word.
_WORD = re.compile(
    r"(?:``.+?``|`[^`]+`|\$[^$\s](?:[^$]*[^$\s])?\$|!?\[(?:[^\[\]]|\[[^\]]*\])*\]\([^)]*\)|\S)+"
)


def words(text: str) -> list[str]:
    """Return the words of a line, which no line break divides.

    >>> words("a `b c`, d ([e f](g.md)).")
    ['a', '`b c`,', 'd', '([e f](g.md)).']
    """
    return _WORD.findall(text)


def fill(first: str, rest: str, parts: list[str]) -> list[str]:
    """Return lines of words, after an indentation of the first and of the other lines.

    >>> fill("- ", "  ", ["word"] * 40)[1][:6]
    '  word'
    """
    lines, line, glue = [], first, ""
    for part in parts:
        if glue and len(line) + 1 + len(part) > WIDTH and not _NO_BEGINNING.match(part):
            lines.append(line)
            line, glue = rest, ""
        line, glue = f"{line}{glue}{part}", " "
    return [*lines, line]


def _kinds(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with its kind: ``item``, ``text`` or ``fixed``."""
    fence = ""
    is_front = lines[:1] == ["---"]
    for index, line in enumerate(lines):
        found = _FENCE.match(line)
        if is_front:
            is_front = not (index and line == "---")
            yield "fixed", line
        elif found and not fence:
            fence = found[1]
            yield "fixed", line
        elif fence:
            if found and found[1] == fence:
                fence = ""
            yield "fixed", line
        elif not line.strip() or _FIXED.match(line) or _QUOTE.match(line):
            yield "fixed", line
        else:
            yield ("item" if _ITEM.match(line) else "text"), line


def wrapped(page: str) -> str:
    """Return a page without long lines of prose.

    >>> max(map(len, wrapped("word " * 50).splitlines()))
    99
    """
    done: list[str] = []
    open_lines: list[str] = []  # the paragraph or item, from its first long line on
    before = ""  # the indentation of its other lines

    def close() -> None:
        if open_lines:
            line = open_lines[0]
            found = _ITEM.match(line)
            first = found[1] if found else line[: len(line) - len(line.lstrip())]
            parts = [word for each in open_lines for word in words(each)]
            done.extend(fill(first, before, parts[len(words(first)) :]))
            open_lines.clear()

    for kind, line in _kinds(page.split("\n")):
        if kind != "text":
            close()
        if open_lines:
            open_lines.append(line)
        elif kind != "fixed" and len(line) > WIDTH:
            found = _ITEM.match(line)
            indent = len(line) - len(line.lstrip())
            before = " " * (len(found[1]) if found else indent)
            open_lines.append(line)
        else:
            done.append(line)
        if open_lines and line.endswith(("  ", "\\")):
            close()
    close()
    return "\n".join(done)


def main() -> int:
    """Wrap all pages, or name the pages with long lines."""
    found = 0
    for path in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        page = path.read_text(encoding="utf-8")
        new = wrapped(page)
        if new == page:
            continue
        if "--check" in sys.argv[1:]:
            found = 1
            print(f"{path.relative_to(ROOT)}: lines of prose above {WIDTH} characters: make format")
        else:
            path.write_text(new, encoding="utf-8")
    return found


if __name__ == "__main__":
    sys.exit(main())
