"""Executors of this machine and emulated GPUs, as the parameters of fixtures."""

from __future__ import annotations

from typing import Any

import pytest

import wollemi as wl
from wollemi.core.executor import Executor
from wollemi.core.operation import Operation

from .conftest import GPUS, executor_names
from .lockstep.build import compiler
from .lockstep.executor import WIDTHS, LockstepExecutor
from .needs import tool


def named_and_emulated(supporting: Operation | None = None, *, reference: bool = False) -> Any:
    """Return pairs of a name and the width of a wave, which is 0 unless a GPU is emulated.

    Parameters
    ----------
    supporting : Operation, optional
        Only executors of this machine that have a kernel for it.
    reference : bool
        Whether the reference executor comes first.
    """
    cxx = tool(compiler() is not None, "no C++ compiler: set CXX")
    return [
        *([("reference", 0)] if reference else []),
        *(pytest.param(("lockstep", width), marks=cxx) for width in WIDTHS),
        *(
            pytest.param((name, 0), marks=[pytest.mark.gpu] * (name.partition(":")[0] in GPUS))
            for name in executor_names()
            if supporting is None or wl.executor(name).supports(supporting)
        ),
    ]


def executor_of(pair: tuple[str, int]) -> Executor:
    """Return the executor of a pair of :func:`named_and_emulated`."""
    name, width = pair
    return LockstepExecutor(width) if width else wl.executor(name)
