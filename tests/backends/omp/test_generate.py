"""The text that the build generates for omp: from the declarations, when they change."""

import runpy
import sys
from pathlib import Path

import pytest

from .declared import declared

SCRIPT = Path(__file__).parents[3] / "backends" / "omp" / "generate.py"  # not installed


def test_every_map_operation_gets_an_entry_and_nothing_is_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # as the build runs it: from the checkout, before anything is installed
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    write = runpy.run_path(str(SCRIPT))["write"]
    write(tmp_path)
    first = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.cpp")}
    text = "".join(path.read_text() for path in tmp_path.glob("*.cpp"))
    for operation in declared():
        if operation.is_map:
            assert operation.symbol in text
    write(tmp_path)
    assert {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.cpp")} == first
