"""The tutorials: notebooks that are kept as Python files, run here and shown with their output.

A file of ``docs/tutorials`` is text in the percent format of Jupytext, so that a change of it can
be read; the tests run it as a program. The site has its page, and the notebook to download.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from .gallery import missing_package, output
from .menu import card, title_and_sentence
from .places import PAGES, ROOT, WORK, version

#: The tutorials, in reading order.
TUTORIALS = (
    "first_solve",
    "choosing",
    "multigrid",
    "chemistry",
    "gpu",
    "several_gpus",
    "graphs",
    "graph_network",
    "your_own",
)
FOLDER = ROOT / "docs/tutorials"
SECONDS = 300
DOWNLOAD = "[Download this notebook]({}.ipynb)"

HEAD = """\
# Tutorials

Jupyter notebooks, run when this site was made. Each page has its notebook to download.
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
    lines = [HEAD, "::::{grid} 1 2 2 3", ":gutter: 3", ""]
    for name in TUTORIALS:
        page = (folder / f"{name}.md").read_text().replace(DOWNLOAD.format(name), "")
        lines += [card(title_of(name), f"/docs/tutorials/{name}", title_and_sentence(page)[1]), ""]
    lines += ["::::", "", "```{toctree}", ":hidden:", "", *TUTORIALS, "```"]
    (folder / "index.md").write_text("\n".join(lines) + "\n")


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
    from nbclient.exceptions import CellExecutionError
    from nbconvert import MarkdownExporter

    notebook = jupytext.reads(text, fmt="py:percent")
    empty = jupytext.writes(notebook, fmt="ipynb")
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    try:
        client.execute()
    except CellExecutionError as error:
        if not (need := missing_package(str(error))):
            raise
        print(f"site: the tutorial {name} is shown without all of its outputs: {need}", flush=True)
    page, resources = MarkdownExporter().from_notebook_node(
        nbformat.from_dict(notebook), resources={"output_files_dir": ".", "unique_key": name}
    )
    for file, data in resources["outputs"].items():
        (folder / Path(file).name).write_bytes(data)
    # links to tutorials in the text name files; links of the site name pages
    page = re.sub(r"\]\((\w+)\.py\)", r"](\1.md)", page)
    heading, _, rest = page.strip().partition("\n")
    rest = with_outputs(rest.replace("%matplotlib inline\n", ""))
    link = DOWNLOAD.format(name)
    (folder / f"{name}.md").write_text(f"{heading}\n\n{link}\n{rest}\n")
    (folder / f"{name}.ipynb").write_text(empty)


def with_outputs(page: str) -> str:
    """Return a page of nbconvert with its outputs in blocks that look unlike programs.

    Parameters
    ----------
    page : str
        Outputs are indented by four columns, outside of fences.
    """
    lines: list[str] = []
    block: list[str] = []
    inside = False
    for line in [*page.splitlines(), "end"]:
        if not inside and (line.startswith("    ") or (block and not line.strip())):
            block.append(line[4:])
            continue
        if block:
            lines += [output("\n".join(block)), ""]
            block = []
        inside ^= line.startswith("```")
        lines.append(line)
    return "\n".join(lines[:-1])
