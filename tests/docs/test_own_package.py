"""The package of the page for authors: installed, found by its names, and right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples/own_package"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which the package is installed, as pip installs a pure wheel."""
    site = tmp_path_factory.mktemp("site")
    facts = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
    shutil.copytree(PACKAGE / "wollemi_bands", site / "wollemi_bands")
    info = site / "wollemi_bands-0.1.0.dist-info"
    info.mkdir()
    name, version = facts["project"]["name"], facts["project"]["version"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = facts["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in of.items())
        for group, of in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return {**os.environ, "PYTHONPATH": str(site), "OMP_WAIT_POLICY": "passive"}


def run(environment: dict[str, str], *command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests_pass(installed, tmp_path):
    tests = shutil.copytree(PACKAGE / "tests", tmp_path / "tests")
    run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests), folder=tmp_path)


def test_its_names_are_known_to_the_command_line_and_to_files(installed, tmp_path):
    line = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
    wl.write(tmp_path / "A.mtx", wl.Csr(line.tocsr()))
    options = ["--method", "heavyball", "--precond", "sweeps:weight=0.7", "--rtol", "1e-8"]
    run(installed, "-m", "wollemi", "solve", "A.mtx", *options, folder=tmp_path)
    program = (
        'import wollemi as wl; A = wl.read("A.mtx", format="bands"); '
        'print(A.format, wl.Csr([[1.0]]).asformat("bands").offsets)'
    )
    assert run(installed, "-c", program, folder=tmp_path).split() == ["bands", "[0]"]


def test_all_of_its_text_is_data_of_the_package():
    facts = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
    patterns = facts["tool"]["setuptools"]["package-data"]["wollemi_bands"]
    shipped = {file for p in patterns for file in (PACKAGE / "wollemi_bands").glob(p)}
    assert shipped == set((PACKAGE / "wollemi_bands").glob("*.hpp"))
    assert np.all([file.stat().st_size > 0 for file in shipped])
