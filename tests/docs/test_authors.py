"""Pages and programs for authors of extensions import public names alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.api.record import MODULES

import wollemi as wl

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").glob("add-*.md")),
    *(ROOT / "docs" / name for name in ("own-operator.md", "extend.md", "preconditioners.md")),
]
PROGRAMS = [
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "docs/tutorials").glob("*.py")),
]


def python_of(file: Path) -> str:
    text = file.read_text()
    if file.suffix == ".py":
        return text
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


@pytest.mark.parametrize("file", [*PAGES, *PROGRAMS], ids=lambda f: f.name)
def test_authors_import_from_public_modules_alone(file):
    found = set()
    for node in ast.walk(ast.parse(python_of(file))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    ours = {name for name in found if name.partition(".")[0] == "wollemi"}
    assert ours <= set(MODULES)


@pytest.mark.parametrize("file", [*PAGES, *PROGRAMS], ids=lambda f: f.name)
def test_authors_define_and_call_no_hook_by_its_private_name(file):
    assert not re.findall(r"\b_(?:apply|setup|refresh|extra|remade|private)\(", python_of(file))


def test_the_page_of_names_for_authors_has_all_of_them():
    page = (ROOT / "docs/extend.md").read_text()
    missing = [n for n in wl.extend.__all__ if not re.search(rf"`{n}[`(]", page)]
    assert not missing
