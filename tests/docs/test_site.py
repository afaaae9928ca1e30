"""The site has every page, every example and every public name; `make site` makes it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from tests.api.record import MODULES, OF_TORCH, names_of, public_module
from website import build, docstrings, gallery, tutorials

import wollemi as wl

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
    for name in tutorials.TUTORIALS:
        assert f"docs/tutorials/{name}.md\n" in menu, f"add {name} to nav in website/mkdocs.yml"


def test_programs_on_pages_are_not_cut_at_the_right():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        for block in re.findall(
            r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
        ):
            for line in block.splitlines():
                assert len(line) <= 100, f"{page.name}: {line}"


def test_each_parameter_has_its_own_default_and_no_option_is_called_required():
    cls = wl.solvers.Bicgstab  # it hands its options on to its base
    place = f"{cls.__module__}.{cls.__qualname__}"
    text = docstrings.separated(inspect.getdoc(cls), docstrings.signature_of(place))
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.default is not parameter.empty:
            found = re.search(rf"^{name} : .*, default: (.*)$", text, re.MULTILINE)
            assert found and found[1] == repr(parameter.default), name


def test_choices_are_no_default():
    parameters = docstrings.signature_of("wollemi.preconditioners.BlockJacobi")
    text = docstrings.separated(inspect.getdoc(wl.preconditioners.BlockJacobi), parameters)
    assert re.search(r"^storage : one of .*, default: None$", text, re.MULTILINE)
    assert not re.search(r"^\w+ : \{", text, re.MULTILINE)


def test_roles_are_links_to_the_names_of_the_reference(pages):
    places = docstrings.public_names()
    text = docstrings.linked(":class:`Cg`, :func:`~wollemi.solve`, :meth:`update`", places)
    assert text == "[`Cg`][wollemi.solvers.Cg], [`wollemi.solve`][wollemi.solve], `update`"
    assert "Csr" not in places or places["Csr"] == "wollemi.Csr"
    for place in set(places.values()):
        assert any(f"{{#{place}}}" in page for page in pages.values()), place


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
