"""wollemi inside programs of petsc4py: matrices, preconditioners and solvers, by options.

Debian's petsc4py needs NumPy 1, so the cases run in a process of their own, ``petsc_program.py``.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("petsc_program.py")

#: NumPy 1 for this Python; `make petsc` puts it there.
NUMPY = ROOT / "build/petsc"


@cache
def environment() -> dict[str, str] | None:
    """Return the variables of a process that can import petsc4py, or None."""
    folders = sorted(Path("/usr/lib/petscdir").glob("petsc3*/*-real"))
    base = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    candidates = [base]
    for folder in folders:
        path = os.pathsep.join([str(NUMPY), str(folder / "lib/python3/dist-packages")])
        candidates.append({**base, "PETSC_DIR": str(folder), "PYTHONPATH": path})
    for candidate in candidates:
        words = [sys.executable, "-c", "from petsc4py import PETSc"]
        if subprocess.run(words, env=candidate, capture_output=True).returncode == 0:
            return candidate
    return None


def run(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program with petsc4py, or skip the test."""
    variables = environment()
    if variables is None:
        pytest.skip(
            "petsc4py cannot be imported; with Debian's python3-petsc4py and `make petsc` this runs"
        )
    if os.geteuid() == 0:
        variables = variables | {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(
        words, env=variables, cwd=folder, capture_output=True, text=True, timeout=300
    )


@cache
def outcomes() -> dict[str, str]:
    """Return the traceback of each case, "" for one that passed."""
    done = run(sys.executable, str(PROGRAM))
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def cases() -> list[str]:
    """Return the names of the cases, without importing petsc4py."""
    tree = ast.parse(PROGRAM.read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in names if name.startswith("case_")]


@pytest.mark.parametrize("name", cases())
def test_case(name):
    failure = outcomes()[name]
    assert not failure, failure


def test_two_processes_precondition_their_blocks():
    launcher = shutil.which("mpirun.openmpi")
    if launcher is None:
        pytest.skip("there is no mpirun.openmpi; Debian's openmpi-bin brings it")
    command = (launcher, "--oversubscribe", "-n", "2", sys.executable, str(PROGRAM), "parallel")
    done = run(*command)
    assert done.returncode == 0, done.stderr


def test_the_example_runs(tmp_path):
    done = run(sys.executable, str(ROOT / "examples/petsc_options.py"), "12", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Amg of wollemi" in done.stdout


def test_the_page_runs(tmp_path):
    page = (ROOT / "docs/petsc.md").read_text()
    (tmp_path / "page.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.S)))
    done = run(sys.executable, "page.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
