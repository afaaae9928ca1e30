"""Every command of the README is one that works."""

from __future__ import annotations

import importlib.util
import io
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from website import speed

import wollemi as wl
from wollemi.core.registry import backend_names

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def commands() -> list[list[str]]:
    """Return the words of each command in the blocks for a shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]


def test_commands_are_of_kinds_that_are_tested_here():
    kinds = {"cd", "git", "make", "mpiexec", "pip", "python3", "source", "wollemi"}
    assert {words[0] for words in commands()} <= kinds


def test_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text()
    targets = [words[1] for words in commands() if words[0] == "make"]
    assert {"demo", "test"} <= set(targets)  # tests/docs runs the demo, and this is the test
    for target in [*targets, *re.findall(r"`make (\w+)`", README)]:
        assert re.search(f"^{target}:", makefile, re.MULTILINE), target


def test_extras_are_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r'pip install "wollemi\[(\w+)\]"', README)
    assert {"cuda", "hip", "dpcpp", "plot"} <= set(named)
    for extra in named:
        assert extra in extras["optional-dependencies"]


@pytest.mark.parametrize(
    "words", [words for words in commands() if words[0] in ("mpiexec", "wollemi")], ids=" ".join
)
def test_commands_of_wollemi_run(tmp_path, words):
    words = words[words.index("wollemi") :]  # tests/distributed runs the command on ranks
    words = ["omp:1,omp:1" if word == "mpi" else word for word in words]
    S = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(50, 50)).tocsr()
    wl.write(tmp_path / "A.mtx", S)
    wl.write(tmp_path / "b.mtx", S @ np.ones(50))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    for option, file in pairwise(words):
        if option in ("--plot", "--out", "--report"):
            assert (tmp_path / file).stat().st_size


def test_the_times_are_those_of_the_records():
    for page in (README, (ROOT / "docs/performance.md").read_text()):
        assert speed.table() in page
        assert speed.machines() in " ".join(page.split())
    assert speed.PICTURE.read_text() == speed.picture(), "run: python -m website.speed"
    ratios = [ratio for _, ratio in speed.bars()]
    range_of_bars = f"{min(ratios):.1f} to {max(ratios):.1f} times the time of wollemi"
    assert len(ratios) == 5 and range_of_bars in README


def test_six_rows_compare_with_other_libraries():
    section = README.partition("## Why wollemi\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!instead|---)(.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert len(rows) == 6
    for library in ("SciPy", "CuPy", "PyAMG", "Ginkgo", "PETSc"):
        assert any(library in name for name, _ in rows)


def test_progress_of_a_build_is_one_line_for_each_tenth():
    spec = importlib.util.spec_from_file_location("progress", ROOT / "packaging/with_progress.py")
    assert spec is not None and spec.loader is not None
    progress = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(progress)
    lines = ["cmake\n", "[0/2] Re-checking globbed directories\n"]
    lines += [f"[{i}/40] Building CXX object\n" for i in range(1, 41)]
    out = io.StringIO()
    assert progress.follow(lines, out) == lines
    assert len(out.getvalue().splitlines()) == 11
    assert out.getvalue().endswith("  compiled 40 of 40 files\n")


def test_pictures_are_there_and_have_a_text():
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", README)
    assert pictures
    for text, file in pictures:
        assert text and (ROOT / file).is_file()


def test_the_names_of_executors_in_the_table_are_those_that_are_installed():
    named = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert named == backend_names()
