"""Times from a failure in a group to the end of all its processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wollemi_bench", reason="pip install ./benchmarks")

from wollemi_bench import groups, groups_ends


def test_a_member_fails_and_the_process_ends() -> None:
    took = groups_ends.seconds([sys.executable], "members", "omp", "exception outside")
    assert 0 < took < groups_ends.GIVEN_UP


def test_a_job_that_does_not_fail_is_refused() -> None:
    command = [sys.executable, "-c", "print('solved')"]
    with pytest.raises(RuntimeError, match="killed: the job ended with 0\nsolved"):
        groups_ends.seconds(command, "ranks", "omp", "killed")


def test_the_launcher_of_another_mpi_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, ranks in (("beside", 1), ("path", 2)):
        program = tmp_path / folder / "mpiexec"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho {ranks}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    assert groups_ends.mpiexec() == [str(tmp_path / "path" / "mpiexec"), "-n", "2"]


def test_the_suite_writes_a_record_for_each_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(command: list[str], kind: str, executor: str, failure: str) -> float:
        return 0.5 if kind == "members" else 1.5

    def launchers() -> dict[str, list[str]]:
        return {"one process": ["python"], "mpiexec": ["mpiexec"]}

    monkeypatch.setattr(groups_ends, "seconds", seconds)
    monkeypatch.setattr(groups_ends, "launchers", launchers)
    file = tmp_path / "groups.jsonl"
    groups.run("omp", only=("ends",), write=file)
    found: Iterator[dict[str, Any]] = map(json.loads, file.read_text("utf-8").splitlines())
    told = [(one["links"], one["measured"], one["value"], one["unit"]) for one in found]
    assert told == [
        *(("one process", failure, 0.5, "s") for failure in groups_ends.OF_MEMBERS),
        *(("mpiexec", failure, 1.5, "s") for failure in groups_ends.OF_RANKS),
    ]


def test_a_slow_end_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def records(device: str, executor: str, rounds: int) -> Iterator[groups.Record]:
        for seconds in ([1.0, 2.0, 3.0], [1.0, 6.0, 2.0]):
            yield groups.Record(device, 2, "torchrun", "1", "killed", "s", 2.0, seconds)

    monkeypatch.setattr(groups_ends, "records", records)
    with pytest.raises(SystemExit) as ended:
        groups_ends.main("omp", "3")
    assert ended.value.code == 1
    assert "| torchrun | killed | 2.00 | 1.00 to 6.00 |" in capsys.readouterr().out
