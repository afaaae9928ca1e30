"""The notebooks have the text of their tutorials, and run."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("jupytext")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    """Return the program that writes the notebooks."""
    path = ROOT / "packaging/write_notebooks.py"
    spec = importlib.util.spec_from_file_location("write_notebooks", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


write_notebooks = script()


@pytest.mark.parametrize("name", write_notebooks.NAMES)
def test_a_notebook_has_the_text_of_its_tutorial(name):
    stored = json.loads((ROOT / f"docs/notebooks/{name}.ipynb").read_text())
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in stored["cells"]]
    expected = [(c.cell_type, c.source) for c in write_notebooks.notebook_of(name).cells]
    assert cells == expected, "run `make notebooks`"


@pytest.mark.parametrize("name", write_notebooks.NAMES)
def test_a_notebook_runs_without_a_warning(name, tmp_path):
    made = write_notebooks.executed(write_notebooks.notebook_of(name), tmp_path)
    outputs = [output for cell in made.cells for output in cell.get("outputs", ())]
    assert outputs
    assert not [o["text"] for o in outputs if o.get("name") == "stderr"]
    cards = [o for o in outputs if "text/html" in o.get("data", {})]
    assert name != "multigrid" or len(cards) >= 4
