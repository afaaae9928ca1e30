"""The site has every page, every example and every public name; `make site` makes it."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from tests.api.record import OF_TORCH
from website import (
    build,
    docstrings,
    finish,
    gallery,
    menu,
    names,
    packages,
    reference,
    tutorials,
)

import wollemi as wl

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("site_check", ROOT / "packaging/site_check.py")
assert _spec is not None and _spec.loader is not None
site_check = importlib.util.module_from_spec(_spec)
sys.modules["site_check"] = site_check  # a dataclass looks its module up
_spec.loader.exec_module(site_check)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    for library in ("torch", "jax"):
        pytest.importorskip(library, reason=f"a module needs {library}; make test installs it")
    return reference.pages()


def test_every_public_name_has_a_page_and_a_row_in_the_table_of_its_module(pages):
    assert set(OF_TORCH) <= set(names.modules())
    for module, offered in names.modules().items():
        table = pages[f"reference/{module}"]
        assert f"`{module} </reference/{module}>`" in pages["reference/index"]
        for name in offered:
            assert f"<{name.path}>`" in table
            assert f"reference/{name.path}" in pages


def test_a_page_has_the_object_its_methods_and_its_inherited_methods(pages):
    page = pages["reference/wollemi.solvers.Cg"]
    assert ".. autoclass:: wollemi.solvers.Cg\n" in page
    assert "Inherited from KrylovSolver\n" in page and "Inherited from LinOp\n" in page
    for method in ("wollemi.solvers.KrylovSolver.solve", "wollemi.solvers.KrylovSolver.update"):
        assert f"<{method}>`" in page
    assert "Used in" in page and "/docs/" in page


def test_no_page_shows_members_for_extensions_alone():
    for path in names.owners().values():
        own = [*names.own_members(path), *sum(names.inherited_members(path).values(), ())]
        cls = next(cls for cls, name in names.owners().items() if name == path)
        for member in own:
            assert not names.is_internal(cls, member.name)
            assert not member.name.startswith("_")
    assert names.is_internal(wl.solvers.Cg, "iterate")
    assert not names.is_internal(wl.loggers.Logger, "finish")


def test_signatures_are_those_that_a_user_writes():
    assert list(docstrings.signature_of(wl.Csr).parameters)[:2] == ["arg", "shape"]
    assert "self" not in docstrings.signature_of(wl.solvers.Cg).parameters
    assert list(docstrings.signature_of(wl.solve).parameters)[:2] == ["A", "b"]


def test_roles_are_links_to_the_names_of_the_reference():
    known = names.places()
    text = docstrings.linked(
        ":class:`Cg`, :func:`~wollemi.solve`, :meth:`update`, :meth:`no_such`",
        "wollemi.solvers.Cg",
        known,
    )
    assert ":py:obj:`Cg <wollemi.solvers.Cg>`" in text
    assert ":py:obj:`solve <wollemi.solve>`" in text
    assert ":py:obj:`update <wollemi.solvers.KrylovSolver.update>`" in text
    assert "``no_such``" in text


def functions() -> list[tuple[str, object]]:
    """Return the public functions, classes and methods for programs, with their names."""
    found = []
    for module, offered in names.modules().items():
        if module in ("wollemi.extend", "wollemi.interop.petsc"):
            continue  # protocols, which docs/extend.md and PETSc describe
        for name in offered:
            if name.kind in ("class", "function"):
                found.append((name.path, name.value))
            if name.kind == "class" and name.path in names.owners().values():
                found += [
                    (f"{name.path}.{member.name}", getattr(member.value, "__func__", member.value))
                    for member in names.own_members(name.path)
                    if member.kind == "method"
                ]
    return found


def test_every_public_parameter_is_documented():
    faults = []
    for path, value in functions():
        text = docstrings.completed(inspect.getdoc(value) or "", path, value)
        signature = docstrings.signature_of(value)
        if signature is not None:
            known = docstrings.described(text)
            faults += [f"{path}: {name}" for name in signature.parameters if name not in known]
    assert not faults, "\n".join(faults)


def test_shared_parameters_come_after_the_summary():
    def f(A, b):
        """Solve.

        More.
        """

    made = docstrings.completed(inspect.getdoc(f), "wollemi.f", f)
    assert made.startswith(
        "Solve.\n\nParameters\n----------\nA : LinOp or matrix\n    The operator"
    )
    assert made.endswith("\n\nMore.")


def test_stars_of_shapes_open_no_emphasis():
    text = docstrings.linked("shape (*batch, n), ``f(*args)``", "wollemi.Csr", names.places())
    assert text == "shape (\\*batch, n), ``f(*args)``"


def test_every_page_can_be_reached_from_the_menu():
    there = {f"docs/{page.stem}" for page in (ROOT / "docs").glob("*.md")}
    made = {"docs/support-matrix", "docs/measurements", "docs/tutorials/index", "licenses/README"}
    made |= {tab.page for tab in menu.TABS}
    files = {str(Path(n).with_suffix("")) for n in build.COPIED if n.endswith(".md")}
    missing = (there | made | files | set(menu.RECORDS)) ^ menu.pages()
    assert not missing, f"website/menu.py must name each page once: {sorted(missing)}"
    assert len(menu.TABS) == 6


def test_a_tab_begins_with_cards_of_its_pages():
    about = menu.title_and_sentence("# A page\n\n[Graphs](a.md) are sparse. More.\n")
    assert about == ("A page", "Graphs are sparse.")
    card = menu.card("Heat", "/examples/heat", "A plate.", "heat.png")
    assert ":link: /examples/heat" in card and ":img-top: heat.png" in card


def test_programs_on_pages_are_not_cut_at_the_right():
    pages = [ROOT / "README.md", ROOT / "website/index.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        for block in re.findall(
            r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
        ):
            for line in block.splitlines():
                assert len(line) <= 100, f"{page.name}: {line}"


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        ("[e](examples)", ".", "[e](examples/index.md)"),
        ("[r](../benchmarks/results)", "docs", "[r](../benchmarks/README.md)"),
        ("[r](../benchmarks/results/)", "docs", "[r](../benchmarks/README.md)"),
        ("[t](docs/tutorials)", ".", "[t](docs/tutorials/index.md)"),
        ("[h](../examples/heat.py)", "docs", "[h](../examples/heat.md)"),
        ("[h](../README.md)", "docs", "[h](../index.md)"),
        ("[p](first-solve.md#an-x) [w](https://a.b/c)", "docs", None),
    ],
)
def test_links_to_folders_lead_to_pages(text, folder, expected):
    assert build.with_links(text, Path(folder)) == (expected or text)


#: Pages that are made, which no file of the checkout is.
MADE = re.compile(
    r"(index|(docs/)?(examples|tutorials|reference)/.*|docs/(support-matrix|measurements))\.md"
)


def copied_pages() -> list[Path]:
    places = [ROOT / name for name in build.COPIED]
    found = [
        page for place in places for page in ([place] if place.is_file() else place.rglob("*"))
    ]
    return [page for page in found if page.suffix == ".md"]


def test_every_link_of_a_page_leads_to_a_page_of_the_site():
    """Sphinx fails for a link to a file or a folder that the site does not have."""
    lost = []
    for page in copied_pages():
        folder = page.relative_to(ROOT).parent
        text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", build.with_links(text, folder)):
            place = Path(os.path.normpath(folder / target))
            copied = any(place.is_relative_to(name) for name in build.COPIED)
            kept = copied and (ROOT / place).is_file() and place.suffix not in (".jsonl", ".py")
            if not (kept or MADE.fullmatch(place.as_posix())):
                lost.append(f"{page.name}: {target}")
    assert not lost


def test_a_package_of_the_examples_has_a_page_with_its_files():
    for folder in packages.packages():
        page = packages.page_of(folder)
        assert page.startswith(f"# A package: {packages.project(folder)['name']}")
        for path in packages.files_of(folder):
            assert f"## `{path.relative_to(folder)}`" in page and path.read_text().strip() in page


def test_every_example_says_what_it_is():
    titles = [gallery.title_of(example) for example in gallery.examples()]
    assert len(set(titles)) == len(titles)
    for example in gallery.examples():
        first = example.read_text().splitlines()[0]
        assert re.match(r'"""[A-Z]', first), f"{example.name}: begin with a sentence"


def test_an_example_without_its_package_is_shown_without_output():
    assert gallery.missing_package("Traceback\nModuleNotFoundError: No module named 'torch'\n")
    assert not gallery.missing_package("Traceback\nValueError: wrong\n")


def test_outputs_look_unlike_programs():
    page = "```python\n    x = 1\n```\n\n    1\n\n    2\n\ntext\n"
    made = tutorials.with_outputs(page)
    assert "```python\n    x = 1\n```" in made
    assert ":class: output\n\n1\n\n2\n" in made and made.endswith("text")


def test_every_tutorial_has_its_place_and_a_heading():
    files = {file.stem for file in (ROOT / "docs/tutorials").glob("*.py")}
    assert files == set(tutorials.TUTORIALS)
    assert all(tutorials.title_of(name) for name in tutorials.TUTORIALS)


def test_nothing_is_fetched_from_another_place():
    for file in (ROOT / "website").rglob("*"):
        if file.suffix in (".css", ".js", ".html", ".svg"):
            found = re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+", file.read_text())
            assert not found, f"{file.name}: {found}"
    assert 'html_math_renderer = "mathml"' in (ROOT / "website/conf.py").read_text()


def test_formulas_are_mathml():
    pytest.importorskip("latex2mathml", reason="make site installs it")
    from website.mathml import mathml

    assert mathml("b - A x", "inline").startswith("<math") and "<mi>b</mi>" in mathml("b", "block")
    norm = mathml(r"\lVert b \rVert_2", "block")  # a stretched bar stands below the line
    assert norm.count('stretchy="false">&#x02016;') == 2


def test_the_repairs_of_html_leave_valid_lists():
    text = '<dl>\n<dd><em class="sig-param">A</em>,</dd>\n</dl><dl><dt>a</dt></dl>'
    assert finish.repaired(text) == (
        '<ul class="sig-lines"><li><em class="sig-param">A</em>,</li>\n</ul><dl><dt>a</dt></dl>'
    )


def test_pages_without_html_are_found(tmp_path):
    pages, site = tmp_path / "pages", tmp_path / "html"
    for name in ("index.md", "docs/cuda.md", "docs/hip.md"):
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).touch()
    (site / "docs").mkdir(parents=True)
    (site / "docs/cuda.html").touch()
    assert finish.unwritten(pages, site) == ["docs/hip.md", "index.md"]


def test_broken_links_and_wrong_headings_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="x">A</h1><a href="b.html#y">b</a><h3>C</h3>')
    (tmp_path / "b.html").write_text('<h1>B</h1><a href="a.html#x">a</a><a href="c.html">c</a>')
    assert site_check.broken_links(tmp_path) == [
        "a.html: a level of headings is skipped: [1, 3]",
        "a.html: b.html#y names an anchor that does not exist",
        "b.html: c.html leads nowhere",
    ]


def test_the_score_counts_audits_by_their_impact():
    def audit(impact, check):
        return {"impact": impact, "nodes": [{"any": [{"impact": check}], "all": [], "none": []}]}

    passed = [audit(None, "critical")] * 9
    assert site_check.score_of({"passes": passed, "violations": []}) == 100
    assert (
        site_check.score_of({"passes": passed, "violations": [audit("critical", "critical")]}) == 90
    )


def test_the_site_needs_the_extra_docs_alone():
    makefile = (ROOT / "Makefile").read_text()
    rule = re.search(r"^\$\(STAMPS\)/docs:.*?\n\n", makefile, re.MULTILINE | re.DOTALL)[0]
    assert "wollemi[docs]" in rule and "STAMPS)/test" not in rule
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert not {re.match(r"[\w-]+", line)[0] for line in extras["docs"]} & {"torch", "jax", "cupy"}


def test_a_workflow_publishes_the_site():
    text = (ROOT / ".github/workflows/site.yml").read_text()
    for step in ("make site-check", "build/site/html", "actions/deploy-pages"):
        assert step in text
