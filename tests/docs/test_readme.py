"""Every command of the README is one that works."""

from __future__ import annotations

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

import wollemi as wl
from wollemi.core.registry import backend_names

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def commands() -> list[list[str]]:
    """Return the words of each command in the blocks for a shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]


def test_commands_are_of_kinds_that_are_tested_here():
    assert {words[0] for words in commands()} <= {"make", "pip", "wollemi"}


def test_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text()
    targets = [words[1] for words in commands() if words[0] == "make"]
    assert {"demo", "test"} <= set(targets)  # tests/docs runs the demo, and this is the test
    for target in [*targets, *re.findall(r"`make (\w+)`", README)]:
        assert re.search(f"^{target}:", makefile, re.MULTILINE), target


def test_extras_are_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in re.findall(r'pip install "wollemi\[(\w+)\]"', README):
        assert extra in extras["optional-dependencies"]


@pytest.mark.parametrize(
    "words", [words for words in commands() if words[0] == "wollemi"], ids=" ".join
)
def test_commands_of_wollemi_run(tmp_path, words):
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


def test_pictures_are_there_and_have_a_text():
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", README)
    assert pictures
    for text, file in pictures:
        assert text and (ROOT / file).is_file()


def test_the_names_of_executors_in_the_table_are_those_that_are_installed():
    named = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert named == backend_names()
