"""The site has every page, every example and every public name; `make site` makes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.api.record import MODULES, OF_TORCH, names_of, public_module
from website import build, gallery, tutorials

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    for library in ("torch", "jax"):
        pytest.importorskip(library, reason=f"a module needs {library}; make test installs it")
    return build.reference()


def test_every_public_name_has_its_place_in_the_reference(pages):
    assert set(OF_TORCH) < set(pages)
    for module in MODULES:
        for name in names_of(public_module(module)):
            assert f"\n## {name} {{#{module}.{name}}}\n" in pages[module]


def test_docstrings_are_found_by_the_place_of_their_definition(pages):
    for text in pages.values():
        for place in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
            module = place.split(".")
            files = [ROOT / "src" / Path(*module[:i]) for i in range(1, len(module))]
            assert any(f.with_suffix(".py").is_file() or f.is_dir() for f in files), place
            assert "<locals>" not in place


def test_every_page_can_be_reached_from_the_menu():
    menu = (ROOT / "website/mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f"docs/{page.name}\n" in menu, f"add docs/{page.name} to nav in website/mkdocs.yml"


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        ("[e](examples)", ".", "[e](examples/index.md)"),
        ("[r](../benchmarks/results)", "docs", "[r](../benchmarks/README.md)"),
        ("[r](../benchmarks/results/)", "docs", "[r](../benchmarks/README.md)"),
        ("[t](docs/tutorials)", ".", "[t](docs/tutorials/index.md)"),
        ("[h](../examples/heat.py)", "docs", "[h](../examples/heat.md)"),
        ("[p](first-solve.md#an-x) [w](https://a.b/c)", "docs", None),
    ],
)
def test_links_to_folders_lead_to_pages(text, folder, expected):
    assert build.with_links(text, Path(folder)) == (expected or text)


def test_every_example_says_what_it_is():
    for example in gallery.examples():
        first = example.read_text().splitlines()[0]
        assert re.match(r'"""[A-Z]', first), f"{example.name}: begin with a sentence"


def test_every_tutorial_has_its_place_and_a_heading():
    files = {file.stem for file in (ROOT / "docs/tutorials").glob("*.py")}
    assert files == set(tutorials.TUTORIALS)
    assert all(tutorials.title_of(name) for name in tutorials.TUTORIALS)


def test_nothing_is_fetched_from_another_place():
    settings = (ROOT / "website/mkdocs.yml").read_text()
    assert "font: false" in settings
    assert not re.search(r"https?://", settings)
