"""Names that the pages speak of are there."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from website.gallery import groups

import wollemi as wl

ROOT = Path(__file__).parents[2]
COMING = sorted((ROOT / "docs").glob("coming-from-*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

#: The meaning of the letters on the pages.
MATRIX = wl.Csr(np.eye(2))
SOLVER = wl.solvers.Cg(MATRIX)
LETTERS = {
    "A": MATRIX,
    "solver": SOLVER,
    "result": SOLVER.solve(np.ones(2)),
    "executor": MATRIX.executor,
}


def resolve(dotted: str) -> None:
    """Raise AttributeError or ImportError if there is no such name."""
    first, *rest = dotted.split(".")
    if first == "wl":
        first = "wollemi"
    if first == "wollemi":
        for inner in rest[:2]:  # wollemi.nn and others are imported on demand
            try:
                importlib.import_module(f"{first}.{inner}")
            except ModuleNotFoundError:
                break
            first, rest = f"{first}.{inner}", rest[1:]
    found = LETTERS[first] if first in LETTERS else importlib.import_module(first)
    for name in rest:
        found = getattr(found, name)


def code_of(page: Path) -> str:
    """Return the code on a page, within lines and in blocks of Python."""
    text = page.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return "\n".join(
        [*re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S)), *blocks]
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_names_of_wollemi_on_a_page_are_there(page):
    for name in sorted(set(re.findall(r"(?<![\w.])wl(?:\.\w+)+", code_of(page)))):
        resolve(name)


@pytest.mark.parametrize("page", COMING, ids=lambda p: p.name)
def test_methods_of_a_page_for_newcomers_are_there(page):
    names = re.findall(
        r"(?<![\w.])(?:A|solver|result|executor)(?:\.(?!mtx|json)[a-zA-Z]\w*)", code_of(page)
    )
    for name in sorted(set(names)):
        resolve(name)
    for name in sorted(set(re.findall(r"`(wollemi(?:\.\w+)+)", page.read_text()))):
        needed = next((n for n in ("lineax", "jax") if f".{n}" in name), "torch")
        if importlib.util.find_spec(needed):
            resolve(name)


def test_there_is_a_page_for_each_library_that_people_come_from():
    libraries = {page.stem.removeprefix("coming-from-") for page in COMING}
    assert libraries == {
        "cupy",
        "dgl",
        "ginkgo",
        "jax",
        "petsc",
        "pyamg",
        "pypardiso",
        "scipy",
        "torch-sla",
        "warp",
    }


def test_every_counterpart_of_a_program_of_ginkgo_is_in_the_gallery():
    page = (ROOT / "docs/coming-from-ginkgo.md").read_text()
    named = set(re.findall(r"\(\.\./examples/(\w+)\.py\)", page))
    shown = {name for names in groups().values() for name in names}
    assert len(named) >= 15
    assert named <= shown


def test_every_program_is_in_one_group_of_the_gallery():
    shown = [name for names in groups().values() for name in names]
    assert sorted(shown) == sorted(file.stem for file in (ROOT / "examples").glob("*.py"))
