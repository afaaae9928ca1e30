"""Requirements of tests besides Python: CI must have them, elsewhere their absence skips tests.

Each reason names the missing part, and where the test runs.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

import wollemi as wl

IN_CI = os.environ.get("CI") == "true"


def tool(here: bool, why: str) -> pytest.MarkDecorator:
    """Return a mark that skips with the reason where a tool is missing, but not in CI."""
    return pytest.mark.skipif(not here and not IN_CI, reason=f"{why}; then this runs, as in CI")


def swept(values: Iterable[Any], usual: Iterable[Any]) -> list[Any]:
    """Return parameters, unusual ones marked as rare: ``make test-all`` runs them."""
    common = list(usual)
    return [value if value in common else rarely(value) for value in values]


def rarely(value: Any) -> Any:
    """Return a parameter, or several in a tuple, that ``make test-all`` runs."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.rare)


def alternating(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """Return all pairs of two lists, each second one of them marked as rare, as on a chessboard."""
    columns = list(second)
    return [
        (a, b) if (i + j) % 2 == 0 else rarely((a, b))
        for i, a in enumerate(first)
        for j, b in enumerate(columns)
    ]


#: Differences between architectures are few: the text is the same, and compilers take it alike.
CUDA_TARGETS = swept(("sm_80", "sm_90", "sm_100"), ["sm_90"])


def package(name: str, *, in_ci: bool = True) -> Any:
    """Return a module, or skip the test (at the top of a file, all of them) where it is not.

    Parameters
    ----------
    name : str
        The imported modules.
    in_ci : bool
        Whether CI has it: its absence is a failure there.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if in_ci and IN_CI:
            raise
        where = "make test installs it and runs this" if in_ci else "this runs where it is"
        pytest.skip(f"{error}; {where}", allow_module_level=True)


def nvrtc() -> Any:
    """Return the module that compiles for GPUs of NVIDIA, or skip the test; none is needed."""
    package("cuda.bindings.nvrtc")
    return package("wollemi.backends.cuda.runtime.compiler")


@cache
def _available() -> frozenset[str]:
    return frozenset(line.name for line in wl.available_executors() if line.available)


def cuda(device: int = 0) -> Any:
    """Return a GPU of NVIDIA, or skip the test where there is none."""
    name = f"cuda:{device}"
    if name not in _available():
        pytest.skip(f"there is no {name}; make test-gpu runs this where there is one")
    return wl.executor(name)


def hopper() -> Any:
    """Return a GPU of compute capability 9.0, or skip the test where there is none."""
    executor = cuda()
    if executor.device.capability != (9, 0):
        pytest.skip("cuda:0 is no Hopper; make test-gpu runs this where it is one (H100, H200)")
    return executor
