"""The site: ``make site`` writes it into ``build/site/html``, without a network.

The pages are the Markdown files of the checkout, with the same paths, so that a link that works
there works here. Added to them are the first page (``website/index.md``); the first pages of the
tabs (``menu.py``); the tutorials, which are notebooks that run; the gallery, which runs every
example and shows its output and plots; the support matrix and the measurements; and the reference,
a page for each public class and function. Sphinx makes the HTML with the theme of NumPy and SciPy.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import places
from .finish import repair, unwritten
from .gallery import write_gallery
from .menu import write_tabs
from .packages import packages, write_packages
from .places import HTML, PAGES, ROOT, WORK
from .reference import write_reference
from .tutorials import write_tutorials

#: The files of the checkout that are on the site, with the same paths.
COPIED = (
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
    "README.md": "index.md",
    "examples": "examples/index.md",
    "docs/tutorials": "docs/tutorials/index.md",
    "benchmarks/results/": "benchmarks/README.md",
}
FOLDERS |= {name.rstrip("/"): page for name, page in FOLDERS.items()}
FOLDERS |= {f"examples/{folder.name}": f"examples/{folder.name}.md" for folder in packages()}


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
    first = (ROOT / "website/index.md").read_text()
    (PAGES / "index.md").write_text(first.replace("](../docs/", "](docs/"))  # one folder higher
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
    """Return the page that shows a program of the gallery or a tutorial, or describes records."""
    folder, _, name = place.rpartition("/")
    if folder == "benchmarks/results" and name.endswith(".jsonl"):
        return "benchmarks/README.md"
    shown = folder in ("examples", "docs/tutorials") and name.endswith(".py")
    return f"{place.removesuffix('.py')}.md" if shown else None


def write_generated() -> None:
    """Write the pages that are made from the code and from the records of the benchmarks."""
    from wollemi.cli.kernels import kernel_tables, markdown_page
    from wollemi_bench.page import markdown
    from wollemi_bench.results import read

    (PAGES / "docs/support-matrix.md").write_text(markdown_page(kernel_tables()))
    records = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))
    page = PAGES / "docs/measurements.md"
    markdown.write([run for path in records for run in read(path)], page)
    text = re.sub(r'^<a id="(.+?)"></a>$', r"(\1)=", page.read_text(), flags=re.MULTILINE)
    text = text.replace("# Performance\n", "# Measurements\n", 1)
    page.write_text(with_links(text, Path("docs")))


def write_pages() -> None:
    """Write all pages into ``build/site/pages``."""
    shutil.rmtree(PAGES, ignore_errors=True)
    copy_pages()
    for about, write in (
        ("the examples run", write_gallery),
        ("the packages of the examples", write_packages),
        ("the tutorials run", write_tutorials),
        ("the records of the benchmarks", write_generated),
        ("the reference", write_reference),
        ("the menu", write_tabs),
    ):
        print(f"site: {about} ...", flush=True)
        write()


def main() -> None:
    """Make the pages, and the site from them; a warning of Sphinx is an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", action="store_true", help="only the pages, without Sphinx")
    alone = parser.parse_args().pages
    write_pages()
    if alone:
        return
    # pages of sources that Sphinx keeps would lack new names: everything is read again
    shutil.rmtree(HTML, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-E", "-b", "html", "-W", "--keep-going", "-q"]
    command += ["-j", "auto", "-c", str(Path(__file__).parent), "-d", str(WORK / "doctrees")]
    status = subprocess.run([*command, str(PAGES), str(HTML)], check=False, cwd=ROOT).returncode
    if missing := unwritten(PAGES, HTML):
        sys.exit(
            f"site: Sphinx wrote no HTML for {', '.join(missing)}; an error in one of "
            "them ended its parallel writer, and the same command of sphinx with -j 1 prints it"
        )
    if status == 0:
        print(f"site: {repair(HTML)} pages of wollemi {places.version()} in {HTML}")
    sys.exit(status)


if __name__ == "__main__":
    main()
