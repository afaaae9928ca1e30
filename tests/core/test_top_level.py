"""The top level of the repository has the listed files and folders alone (docs/design.md)."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from .sources import ROOT

#: The parts of the project, each with a line in docs/design.md or CONTRIBUTING.md.
FOLDERS = {"core", "solvers", "backends", "src", "benchmarks", "tests", "docs", "examples"}

#: Scripts of releases and the site, and the texts of other projects with their licenses.
SUPPORT = {"packaging", "website", "licenses", "third_party"}

#: Files that tools or readers look for at the top level.
FILES = {
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff",
    "Makefile", "CMakeLists.txt", "pyproject.toml",
    ".clang-format", ".gitattributes", ".gitignore", ".github", ".ci",
}  # fmt: skip


def test_the_top_level_has_no_other_entries() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and its checkout: a source distribution has no list of files")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    entries = {path.partition("/")[0] for path in listed.split("\0") if path}
    allowed = FOLDERS | SUPPORT | FILES
    assert not entries - allowed, "move them into a folder of the project, or list them here"
    assert not allowed - entries, "remove them from the list of this test"
