"""What tests need beside Python: in CI it has to be there, elsewhere its absence skips them."""

from __future__ import annotations

import os
from functools import cache

import pytest

import wollemi as wl


def tool(here: bool, why: str) -> pytest.MarkDecorator:
    """Return a mark that skips with the reason where a tool is missing, but not in CI."""
    missing = not here and os.environ.get("CI") != "true"
    return pytest.mark.skipif(missing, reason=why)


@cache
def _available() -> frozenset[str]:
    return frozenset(line.name for line in wl.available_executors() if line.available)


def cuda(device: int = 0) -> wl.Executor:
    """Return a GPU, or skip the test where it is not."""
    if f"cuda:{device}" not in _available():
        pytest.skip(f"there is no cuda:{device}; make test-gpu runs this where there is one")
    return wl.executor(f"cuda:{device}")
