"""The menu of the site: six tabs, their groups, and the pages of each group in reading order."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .places import PAGES, ROOT


@dataclass(frozen=True)
class Group:
    """Pages of one subject.

    Attributes
    ----------
    title : str
        The heading of the group.
    pages : tuple of str
        Their paths without the suffix.
    """

    title: str
    pages: tuple[str, ...]


@dataclass(frozen=True)
class Tab:
    """A part of the site.

    Attributes
    ----------
    page : str
        The path of its first page, without the suffix.
    title : str
        The text of the tab.
    about : str
        One sentence for its first page.
    groups : tuple of Group
        Its pages; empty where another module writes the first page.
    """

    page: str
    title: str
    about: str
    groups: tuple[Group, ...] = ()


def _docs(*names: str) -> tuple[str, ...]:
    return tuple(f"docs/{name}" for name in names)


#: The tables of the benchmarks; they are in the menu and have no cards.
RECORDS = tuple(
    f"benchmarks/results/{file.stem}" for file in sorted((ROOT / "benchmarks/results").glob("*.md"))
)

TABS = (
    Tab(
        "start",
        "Start",
        "Install wollemi, solve a first system, and find the counterparts of a library you know.",
        (
            Group("First steps", _docs("install", "first-solve", "command-line",
                                       "choosing-a-solver")),
            Group("Tutorials", ("docs/tutorials/index",)),
            Group("Help", _docs("troubleshooting", "estimates", "glossary")),
            Group(
                "Coming from another library",
                _docs(
                    "comparison",
                    "coming-from-scipy",
                    "coming-from-cupy",
                    "coming-from-pyamg",
                    "coming-from-petsc",
                    "coming-from-ginkgo",
                    "coming-from-jax",
                    "coming-from-dgl",
                    "coming-from-warp",
                    "coming-from-torch-sla",
                    "coming-from-pypardiso",
                ),
            ),
        ),
    ),
    Tab(
        "guide",
        "Guide",
        "One page for each task: the method, a program that runs, and the limits.",
        (
            Group(
                "Linear systems",
                _docs(
                    "preconditioners",
                    "multigrid",
                    "indefinite-systems",
                    "least-squares",
                    "batches",
                    "precision",
                    "verdicts",
                ),
            ),
            Group("Applications", _docs("pde-assembly", "time-stepping", "eigenvalues")),
            Group("Machine learning", _docs("machine-learning", "derivatives", "cuda-graphs")),
            Group("Inside other programs", _docs("lineax", "petsc")),
            Group("Devices", _docs("executors", "cuda", "hip", "dpcpp", "distributed")),
            Group("Your own parts", _docs("own-operator")),
        ),
    ),
    Tab("examples/index", "Examples", "Programs to copy from, with their output and plots."),
    Tab("reference/index", "Reference", "Every public class and function."),
    Tab(
        "performance",
        "Performance",
        "Measured times, and the tools that measure your matrices on your machine.",
        (
            Group("Results", _docs("how-fast", "performance", "solve-table", "iterations",
                                   "measurements")),
            Group("Kernels", _docs("vector-products", "sparse-products", "sampled-products",
                                   "tensor-cores", "solver-loops")),
            Group("Method", ("benchmarks/README", *_docs("reproducibility", "papers"))),
            Group("Records", RECORDS),
        ),
    ),
    Tab(
        "develop",
        "Develop",
        "Add parts to wollemi, read its design, and contribute.",
        (
            Group(
                "Extend",
                _docs(
                    "add-a-solver",
                    "add-a-preconditioner",
                    "add-a-format",
                    "add-an-algorithm",
                    "add-a-kernel",
                    "add-a-backend",
                    "extend",
                ),
            ),
            Group(
                "Design",
                _docs(
                    "design",
                    "design-operations",
                    "design-matrices",
                    "design-plans",
                    "kernel-selection",
                    "design-solvers",
                    "design-programs",
                    "design-groups",
                    "design-interop",
                    "algorithms",
                ),
            ),
            Group("Project", ("CONTRIBUTING", "CHANGELOG", "SECURITY", "licenses/README",
                              "docs/api-stability")),
        ),
    ),
)  # fmt: skip

#: Pages that the reference lists before the modules.
OF_REFERENCE = _docs("api", "support-matrix")


def repository() -> str:
    """Return the address of the repository: of the workflow that runs; "" elsewhere."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else ""


def pages() -> set[str]:
    """Return the path of every page that the menu names, without suffixes."""
    named = {page for tab in TABS for group in tab.groups for page in group.pages}
    return named | {tab.page for tab in TABS} | set(OF_REFERENCE)


def title_and_sentence(text: str) -> tuple[str, str]:
    r"""Return the heading of a page in Markdown, and the first sentence below it.

    Parameters
    ----------
    text : str
        The page.

    Examples
    --------
    >>> title_and_sentence("# Batches\n\nA batch has [systems](a.md) of one size. It\n")
    ('Batches', 'A batch has systems of one size.')
    """
    lines = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    title = re.search(r"^# (.+)$", lines, re.MULTILINE)
    found = re.search(r"^(?=[A-Z`\[*])(?:(?!\n\n).)+", lines, re.MULTILINE | re.DOTALL)
    paragraph = " ".join(found[0].split()) if found else ""
    paragraph = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    sentence = re.match(r"(.+?[.:])(?=\s+[A-Z`(]|$)", paragraph)
    shown = (sentence[1] if sentence else paragraph).rstrip(":").rstrip()
    return (title[1] if title else ""), shown if shown.endswith(".") else f"{shown}." * bool(shown)


def write_tabs() -> None:
    """Write the first page of each tab that has groups: cards, and the menu of its pages."""
    for tab in TABS:
        if tab.groups:
            (PAGES / f"{tab.page}.md").write_text(_tab_page(tab))


def _tab_page(tab: Tab) -> str:
    parts = [f"# {tab.title}", tab.about]
    for group in tab.groups:
        if group.pages != RECORDS:
            parts += [f"## {group.title}", _cards(group)]
        entries = "\n".join(f"/{page}" for page in group.pages)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {group.title}\n\n{entries}\n```")
    return "\n\n".join(parts) + "\n"


def _cards(group: Group) -> str:
    cards = []
    for page in group.pages:
        title, sentence = title_and_sentence((PAGES / f"{page}.md").read_text())
        cards.append(card(title, f"/{page}", sentence))
    return "\n\n".join(["::::{grid} 1 2 2 3\n:gutter: 3", *cards, "::::"])


def card(title: str, page: str, text: str, image: str = "") -> str:
    """Return a card of a grid, in MyST, which leads to a page.

    Parameters
    ----------
    title, text : str
        Its heading and its sentence.
    page : str
        The page, without the suffix.
    image : str
        The path of a picture; none by default.
    """
    top = [f":img-top: {image}", f":img-alt: {title}"] if image else []
    options = [f":link: {page}", ":link-type: doc", *top, ":class-card: site-card"]
    return "\n".join([f":::{{grid-item-card}} {title}", *options, "", text, ":::"])
