"""The end of a command that is stopped, or has no reader."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import pytest
from rich.console import Console

from wollemi.cli import INTERRUPTED
from wollemi.cli.console import CLOSED_PIPE
from wollemi.cli.kernels import NARROW
from wollemi.core.operation import OPERATIONS


@pytest.mark.parametrize("command", [["kernels"], ["kernels", "--markdown"], ["info"]])
def test_a_closed_pipe_has_a_status_of_its_own(command):
    process = subprocess.Popen(
        [sys.executable, "-m", "wollemi", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait() == CLOSED_PIPE
    assert said == b""


def test_ctrl_c_has_a_status_of_its_own_and_one_line(wollemi, tmp_path, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("wollemi.cli.solve").io, "read", interrupted)
    ended = wollemi("solve", tmp_path / "a.mtx")
    assert ended.status == INTERRUPTED
    assert ended.complaint == "wollemi: interrupted"


def test_ctrl_c_while_libraries_load_ends_as_later(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    ended = subprocess.run(
        [sys.executable, "-m", "wollemi", "info"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == INTERRUPTED
    assert ended.stderr == "wollemi: interrupted\n"


@pytest.mark.parametrize("width", [40, 60, NARROW, 140])
def test_every_operation_is_explained_whatever_the_width_of_the_terminal(monkeypatch, width):
    out = Console(width=width, highlight=False)
    command = import_module("wollemi.cli.kernels")
    monkeypatch.setattr(command, "console", lambda: out)
    with out.capture() as captured:
        command.kernels(every=True)
    shown = "".join(captured.get().split())
    assert all(len(line) <= width for line in captured.get().splitlines())
    for operation in OPERATIONS:
        assert operation.name in shown
        assert operation.summary.split()[0] in shown


@pytest.mark.parametrize("width", [40, 80])
def test_info_keeps_every_word_on_a_narrow_terminal(monkeypatch, width):
    out = Console(width=width, highlight=False)
    command = import_module("wollemi.cli.info")
    with out.capture() as captured:
        out.print(command._executors(), command._versions())
    assert "…" not in captured.get()
    assert all(len(line) <= width for line in captured.get().splitlines())


def test_the_shell_is_offered_its_completion(wollemi):
    said = wollemi("--help").out
    assert "--install-completion" in said and "--show-completion" in said
