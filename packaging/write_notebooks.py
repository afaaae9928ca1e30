"""Write docs/notebooks: three tutorials as notebooks with their output, for Jupyter.

    make notebooks

The text of the tutorials is in ``docs/tutorials``, in the percent format of Jupytext. Tests compare
both and run the notebooks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jupytext
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/notebooks"
NAMES = ("first_solve", "multigrid", "graph_network")

#: Seconds for one cell.
SECONDS = 120


def notebook_of(name: str) -> Any:
    """Return a tutorial as a notebook without output.

    Parameters
    ----------
    name : str
        The name of the file in ``docs/tutorials``, without its ending.
    """
    made = jupytext.read(ROOT / f"docs/tutorials/{name}.py")
    for number, cell in enumerate(made.cells):
        cell.id = f"{name}-{number}".replace("_", "-")
        cell.metadata = {}
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return made


def executed(notebook: Any, folder: Path) -> Any:
    """Return a notebook with its output, run in a folder.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails.
    """
    NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata = {}  # times of the run
    return notebook


def main() -> None:
    """Write all notebooks."""
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        made = executed(notebook_of(name), FOLDER)
        jupytext.write(made, FOLDER / f"{name}.ipynb")
        print(f"docs/notebooks/{name}.ipynb")


if __name__ == "__main__":
    main()
