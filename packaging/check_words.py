"""Count vague words in comments, docstrings, messages and pages, and compare with the limits.

``check_words.py`` fails where a folder has more of a group of words than ``word_limits.json``
allows, per 1,000 words, and names the lines. ``--lower`` lowers the limits to the present counts,
or to 0.9; nothing raises them. ``--table`` prints all counts, ``--show FOLDER`` the lines of one
folder.

The text of a file is, by its kind: comments, docstrings and messages of Python; comments of C++;
prose of Markdown, without blocks and spans of code. A message is a string of four words or more.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from math import ceil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Path(__file__).with_name("word_limits.json")

#: The parts of the repository; a file belongs to the longest that its path begins with.
PARTS = (
    "backends/cpu",
    "backends/cuda",
    "backends/dpcpp",
    "backends/gpu",
    "backends/hip",
    "backends/omp",
    "backends/reference",
    "backends/simt",
    "backends/unified",
    "core",
    "core/formats",
    "solvers",
    "src/wollemi",
    "src/wollemi/interop",
    "src/wollemi/learning",
    "tests",
    "benchmarks",
    "packaging",
    "website",
    "examples",
    "docs",
    "docs/design.md",
    "README.md",
    "CONTRIBUTING.md",
)

#: Groups of words. Exceptions within a pattern are technical terms.
GROUPS = {
    "what": r"what",
    "those": r"those",
    "whose": r"whose",
    "so many": r"(?:so|that) many|as many(?! (?:\S+ ){0,3}as\b)|so much",
    "somebody": r"somebody|nobody|anybody|everybody|whoever|whatever",
    "place": (
        r"(?<!in )(?<!take )(?<!takes )(?<!decimal )"
        r"places?(?! (?:an?|the|it|them)\b|: (?:in|out|inout)\b)"
    ),
    "beside": r"beside|house|neighbouring",
    "room": r"rooms?",
    "ours": r"ours|theirs",
    "besides": r"besides|contenders?|contests?",
}
_GROUPS = {
    name: re.compile(rf"\b(?:{text})\b(?![\[_(])", re.IGNORECASE) for name, text in GROUPS.items()
}
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")

#: Words of a group that a part of the repository defines, and uses as its terms.
DEFINED = {"benchmarks": re.compile(r"\b(?:contenders?|contests?)\b", re.IGNORECASE)}

_CODE_SPAN = re.compile(r"``.*?``|`[^`\n]*`")

#: Limits are multiples of this rate, so that a page of new text rarely needs another limit.
STEP = 0.3

#: No limit is lowered below this rate: the words have a few proper uses.
LEAST = 0.9

Line = tuple[str, int, str]


def part_of(path: str) -> str | None:
    """Return the part of the repository that a path belongs to."""
    found = [part for part in PARTS if path == part or path.startswith(part + "/")]
    return max(found, key=len, default=None)


def files() -> Iterator[tuple[str, Path]]:
    """Yield the names and paths of all files with text, each once."""
    for top in sorted({part.split("/")[0] for part in PARTS}):
        base = ROOT / "src/wollemi" if top == "src" else ROOT / top
        paths = [base] if base.is_file() else sorted(base.rglob("*"))
        for path in paths:
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in READERS or not path.is_file():
                continue
            if "/build/" in f"/{name}" or "/results/" in name:
                continue
            yield name, path


def of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments, docstrings and messages of a Python file, line by line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
            if said.count(" ") >= 3:
                for offset, line in enumerate(said.split("\n")):
                    if not line.lstrip().startswith((">>>", "...")):
                        yield node.lineno + offset, _CODE_SPAN.sub("", line)


_CPP = re.compile(
    r'(?P<literal>"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])\')'
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)


def of_cpp(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and messages of a C++ file, line by line."""
    for found in _CPP.finditer(text):
        said = found["comment"] or ""
        if found["literal"] and found["literal"].count(" ") >= 3:
            said = found["literal"]
        first = text.count("\n", 0, found.start()) + 1
        for offset, line in enumerate(said.split("\n") if said else ()):
            yield first + offset, _CODE_SPAN.sub("", line).strip("/* ")


def of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the prose of a page, line by line."""
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            yield number, _CODE_SPAN.sub("", line)


READERS = {
    ".py": of_python,
    ".hpp": of_cpp,
    ".cpp": of_cpp,
    ".cu": of_cpp,
    ".md": of_markdown,
}


def counts() -> tuple[dict[str, int], dict[str, dict[str, list[Line]]]]:
    """Return the number of words of each part, and the lines with the words of each group."""
    words = dict.fromkeys(PARTS, 0)
    lines: dict[str, dict[str, list[Line]]] = {part: {g: [] for g in GROUPS} for part in PARTS}
    for name, path in files():
        part = part_of(name)
        if part is None or path == Path(__file__):
            continue
        for number, line in READERS[path.suffix](path.read_text(encoding="utf-8")):
            words[part] += len(_WORD.findall(line))
            if part in DEFINED:
                line = DEFINED[part].sub("", line)
            for group, pattern in _GROUPS.items():
                found = len(pattern.findall(line))
                lines[part][group] += [(name, number, line.strip())] * found
    return words, lines


def rates() -> dict[str, dict[str, float]]:
    """Return the uses of each group per 1,000 words of each part, rounded up to a tenth."""
    words, lines = counts()
    return {
        part: {group: _rate(len(found), words[part]) for group, found in lines[part].items()}
        for part in PARTS
    }


def _rate(found: int, words: int) -> float:
    return -(-found * 10_000 // max(words, 1)) / 10


def limits() -> dict[str, dict[str, float]]:
    """Return the limits of all parts."""
    read: dict[str, dict[str, float]] = json.loads(LIMITS.read_text(encoding="utf-8"))
    return read


def check() -> list[str]:
    """Return a message for each limit that is exceeded."""
    words, lines = counts()
    allowed = limits()
    said = []
    for part in PARTS:
        for group, found in lines[part].items():
            rate, limit = _rate(len(found), words[part]), allowed[part][group]
            if rate > limit:
                shown = "\n".join(f"  {name}:{at}: {line}" for name, at, line in found)
                said.append(
                    f'{part}: "{group}" occurs {rate} times per 1,000 words, the limit is {limit}. '
                    f"Name the noun instead:\n{shown}"
                )
    return said


def lowered() -> dict[str, dict[str, float]]:
    """Return the limits, lowered where fewer words are found."""
    allowed = limits()
    return {
        part: {g: min(allowed[part][g], _limit(rate)) for g, rate in groups.items()}
        for part, groups in rates().items()
    }


def _limit(rate: float) -> float:
    """Return the smallest limit that a rate meets, and no less than :data:`LEAST`."""
    return max(round(ceil(round(rate / STEP, 6)) * STEP, 1), LEAST)


def table() -> str:
    """Return a table of the rates of all parts."""
    found = rates()
    words, _ = counts()
    rows = [f"{'':20}{'words':>8}" + "".join(f"{group:>10}" for group in GROUPS)]
    for part, groups in found.items():
        rows.append(
            f"{part:20}{words[part]:8}" + "".join(f"{rate:10.1f}" for rate in groups.values())
        )
    return "\n".join(rows)


def main() -> int:
    """Check the limits, or print, or lower them."""
    parser = argparse.ArgumentParser(description="vague words per 1,000 words")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the counts")
    parser.add_argument("--table", action="store_true", help="print all rates")
    parser.add_argument("--show", metavar="FOLDER", help="print the lines of a folder")
    given = parser.parse_args()
    if given.table:
        print(table())
        return 0
    if given.show:
        for group, found in counts()[1][given.show].items():
            for name, number, line in found:
                print(f"{name}:{number}: [{group}] {line}")
        return 0
    if given.lower:
        LIMITS.write_text(json.dumps(lowered(), indent=2) + "\n", encoding="utf-8")
        return 0
    said = check()
    if said:
        print("\n".join(said), file=sys.stderr)
        return 1
    allowed = limits()
    loose = [
        f"{part} ({group})"
        for part, groups in lowered().items()
        for group, limit in groups.items()
        if limit < allowed[part][group]
    ]
    if loose:
        print(f"limits can be lowered (check_words.py --lower): {', '.join(loose)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
