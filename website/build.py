"""The site: ``make site`` writes it into ``build/site/html``, without a network.

The pages are the Markdown files of the checkout, with the same paths, so that a link that works
there works here. Four parts are made: the tutorials, which are notebooks that run; the gallery,
which runs every example and shows its output and plots; the support matrix and the measurements;
and the reference, a page for each public module with every public name. MkDocs with the Material
theme makes the HTML, because it takes these files as they are (Sphinx would need another dialect of
links), and mkdocstrings reads numpydoc without importing anything.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.api.record import MODULES, names_of, public_module

from .gallery import write_gallery
from .places import PAGES, ROOT
from .tutorials import write_tutorials

#: The files of the checkout that are on the site, with the same paths.
COPIED = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CITATION.cff",
    "LICENSE",
    "docs",
    "licenses",
    "benchmarks/README.md",
    "benchmarks/results",
)

#: Folders are no pages; links to them go to the page that describes them.
FOLDERS = {
    "examples": "examples/index.md",
    "docs/tutorials": "docs/tutorials/index.md",
    "benchmarks/results/": "benchmarks/README.md",
}
FOLDERS |= {name.rstrip("/"): page for name, page in FOLDERS.items()}


def copy_pages() -> None:
    """Copy the pages, with links to folders leading to pages."""
    for name in COPIED:
        source, target = ROOT / name, PAGES / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            kept = shutil.ignore_patterns("*.jsonl", "*.py")
            shutil.copytree(source, target, ignore=kept, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)
    shutil.copy(ROOT / "website/site.css", PAGES)
    for page in PAGES.rglob("*.md"):
        page.write_text(with_links(page.read_text(), page.relative_to(PAGES).parent))


def with_links(text: str, folder: Path) -> str:
    """Return Markdown with links to folders and programs replaced by links to their pages.

    Parameters
    ----------
    text : str
        A page.
    folder : Path
        Where it is, relative to the root of the checkout.
    """

    def link(match: re.Match[str]) -> str:
        target = match[1]
        place = os.path.normpath(folder / target)
        page = FOLDERS.get(place) or _page_of_program(place)
        return f"]({os.path.relpath(page, folder)})" if page else match[0]

    return re.sub(r"\]\(([^)#:]+)\)", link, text)


def _page_of_program(place: str) -> str | None:
    """Return the page that shows a program of the gallery, or a tutorial."""
    folder, _, name = place.rpartition("/")
    shown = folder in ("examples", "docs/tutorials") and name.endswith(".py")
    return f"{place.removesuffix('.py')}.md" if shown else None


def reference() -> dict[str, str]:
    """Return the text of the page of each public module, by the module's name."""
    return {module: _reference_page(module) for module in MODULES}


def _reference_page(name: str) -> str:
    module = public_module(name)
    about = (module.__doc__ or "").strip().splitlines()
    parts = [f"# {name}", about[0] if about else ""]
    for inner in names_of(module):
        value = getattr(module, inner)
        public = f"{name}.{inner}"
        parts.append(f"## {inner} {{#{public}}}")
        if public in MODULES:
            parts.append(f"A module: [{public}]({public}.md).")
        elif hasattr(value, "__qualname__"):
            parts.append(f"::: {value.__module__}.{value.__qualname__}")
        elif public_name := getattr(value, "__name__", ""):
            parts.append(f"A module: [wollemi.{inner}](wollemi.{inner}.md). `{public_name}`")
        else:
            parts.append(f"`{public}`: {type(value).__name__}")
    return "\n\n".join(parts) + "\n"


def write_generated() -> None:
    """Write the pages that are made from the code and from the records of the benchmarks."""
    from wollemi.cli.kernels import kernel_tables, markdown_page
    from wollemi_bench.page import markdown
    from wollemi_bench.results import read

    (PAGES / "docs/support-matrix.md").write_text(markdown_page(kernel_tables()))
    records = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))
    markdown.write([run for path in records for run in read(path)], PAGES / "docs/measurements.md")


def write_reference() -> None:
    """Write the pages of the reference and the page that lists them."""
    folder = PAGES / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Reference", "", "Every public name, from the docstrings.", ""]
    for name, text in reference().items():
        (folder / f"{name}.md").write_text(text)
        lines.append(f"- [{name}]({name}.md)")
    (folder / "index.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Make the pages, and the site from them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", action="store_true", help="only the pages, without MkDocs")
    alone = parser.parse_args().pages
    shutil.rmtree(PAGES, ignore_errors=True)
    copy_pages()
    write_gallery()
    write_tutorials()
    write_generated()
    write_reference()
    if alone:
        return
    config = ROOT / "website/mkdocs.yml"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config)]
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
