"""The tutorials: notebooks that are kept as Python files, run here and shown with their output.

A file of ``docs/tutorials`` is text in the percent format of Jupytext, so that a change of it can
be read; the tests run it as a program. The site has its page, and the notebook to download.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from tests.api.record import version

from .places import PAGES, ROOT, WORK

#: The tutorials, in reading order.
TUTORIALS = ("first_solve", "choosing", "gpu", "several_gpus", "graphs", "your_own")
FOLDER = ROOT / "docs/tutorials"
SECONDS = 300

HEAD = """\
# Tutorials

Notebooks that were run when this site was made. Each page has its notebook to download; the text of
all is in `docs/tutorials`.
"""


def title_of(name: str) -> str:
    """Return the heading of a tutorial."""
    found = re.search(r"^# # (.+)$", (FOLDER / f"{name}.py").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"docs/tutorials/{name}.py has no heading: begin with '# # A title'")
    return found[1]


def write_tutorials() -> None:
    """Write a page and a notebook for each tutorial, and a page that lists them."""
    folder = PAGES / "docs/tutorials"
    folder.mkdir(parents=True, exist_ok=True)
    for name in TUTORIALS:
        for file in outcome(name).iterdir():
            shutil.copy(file, folder)
    lines = [f"{i}. [{title_of(name)}]({name}.md)" for i, name in enumerate(TUTORIALS, 1)]
    (folder / "index.md").write_text("\n".join([HEAD, *lines]) + "\n")


def outcome(name: str) -> Path:
    """Run a tutorial; return the folder with its page, its pictures and its notebook.

    It runs once for each version of its text; ``build/site/outcomes`` keeps the output.
    """
    text = (FOLDER / f"{name}.py").read_text()
    made_from = f"{text} {version()} {Path(__file__).read_text()}"
    key = hashlib.sha256(made_from.encode()).hexdigest()[:16]
    kept = WORK / "outcomes" / f"tutorial-{name}-{key}"
    if not kept.exists():
        begun = kept.with_suffix(".begun")
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir(parents=True)
        run(name, text, begun)
        begun.rename(kept)
    return kept


def run(name: str, text: str, folder: Path) -> None:
    """Run a notebook and write its page, its pictures and the notebook itself into a folder.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises; the error has the cell and its traceback.
    """
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import MarkdownExporter

    notebook = jupytext.reads(text, fmt="py:percent")
    empty = jupytext.writes(notebook, fmt="ipynb")
    NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    page, resources = MarkdownExporter().from_notebook_node(
        nbformat.from_dict(notebook), resources={"output_files_dir": ".", "unique_key": name}
    )
    for file, data in resources["outputs"].items():
        (folder / Path(file).name).write_bytes(data)
    # links to tutorials in the text name files; links of the site name pages
    page = re.sub(r"\]\((\w+)\.py\)", r"](\1.md)", page)
    heading, _, rest = page.strip().partition("\n")
    link = f"[The notebook]({name}.ipynb) of this page."
    (folder / f"{name}.md").write_text(f"{heading}\n\n{link}\n{rest}\n")
    (folder / f"{name}.ipynb").write_text(empty)
