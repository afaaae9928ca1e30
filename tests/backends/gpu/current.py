"""An emulated GPU that is the current one, and the GPU of the machine."""

from __future__ import annotations

from typing import Any

import pytest

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import cuda, tool


class Current(LockstepExecutor):
    """An emulated GPU that is the current one, as a GPU mostly is."""

    def goes_straight(self) -> bool:
        self._properties = self._properties or {}
        return self._mine.capture is None and self._observer is None


def emulated_and_real(emulated: type[LockstepExecutor] = LockstepExecutor) -> list[Any]:
    """Return the parameters of a test: an emulated GPU, and the GPU of the machine."""
    compiles = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")
    return [
        pytest.param(lambda: emulated(32), id="waves", marks=compiles),
        pytest.param(cuda, id="cuda", marks=pytest.mark.gpu),
    ]


EXECUTORS = emulated_and_real(Current)
