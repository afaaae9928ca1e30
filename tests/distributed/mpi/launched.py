"""Programs of ranks.py under a launcher, and the outcomes that every launcher must give."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = str(Path(__file__).with_name("ranks.py"))
Done = subprocess.CompletedProcess[str]


def launch(launcher: Sequence[str], *arguments: str) -> Done:
    """Run a program on ranks, with one thread in each."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [*launcher, PROGRAMS, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        check=False,
    )


def require_success(done: Done) -> None:
    assert done.returncode == 0, done.stderr[-3000:]


def require_interrupted(done: Done) -> None:
    """Require that Ctrl-C on one of two ranks ended the solve on both."""
    require_success(done)
    assert done.stdout.count("interrupted") == 2


def require_heard(done: Done) -> None:
    """Require that two ranks of three learned of the failure of the third."""
    assert done.stdout.count("heard of it") == 2 and done.stdout.count("failed") == 1, done.stderr
