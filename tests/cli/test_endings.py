"""How a command ends when somebody stops it, or nobody listens."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from wollemi.cli.console import CLOSED_PIPE, INTERRUPTED


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
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("wollemi.cli.solve").io, "read", interrupted)
    ended = wollemi("solve", tmp_path / "a.mtx")
    assert ended.status == INTERRUPTED
    assert ended.complaint == "wollemi: interrupted"
