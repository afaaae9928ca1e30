"""Running commands in the process of the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.cli import main


@dataclass(frozen=True)
class Ended:
    """The end of a command and its output."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on standard error; fails if there are more."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def wollemi(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Run a command; its words are joined by spaces or handed over one by one."""
    monkeypatch.delenv("COLUMNS", raising=False)  # the width of the output is that of a pipe

    def run(*words: object) -> Ended:
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        said = capsys.readouterr()
        code = end.value.code
        return Ended(code if isinstance(code, int) else int(code is not None), said.out, said.err)

    return run


@pytest.fixture
def laplacian(tmp_path: Path) -> Path:
    """Return the file of a system that every method solves."""
    n = 40
    S = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    path = tmp_path / "laplacian.mtx"
    wl.write(path, S)
    return path


@pytest.fixture
def indefinite(tmp_path: Path) -> Path:
    """Return the file of a system that CG gives up on."""
    path = tmp_path / "indefinite.mtx"
    wl.write(path, sp.diags_array(np.linspace(-1.0, 1.0, 40)).tocsr())
    return path
