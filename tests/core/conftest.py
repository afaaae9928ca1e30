"""Everything here lives on the reference executor: core knows no other."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wollemi as wl
from wollemi.core.executor import Executor

from .made import lazy

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def reference() -> Iterator[Executor]:
    with wl.default_executor("reference") as executor:
        yield executor


@pytest.fixture
def run_python() -> Callable[[str], None]:
    """Run a program in a fresh interpreter, away from the checkout; ``{root}`` is its path."""

    def run(program: str) -> None:
        text = program.replace("{root!r}", repr(str(ROOT)))
        done = subprocess.run(
            [sys.executable, "-c", text], cwd=ROOT.parent, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    return run


@pytest.fixture(params=[wl.Csr, lazy], ids=["matrix", "lazy"])
def op(request: pytest.FixtureRequest) -> Any:
    """Make an operator of a dense array, as a matrix or as a callable."""
    return request.param
