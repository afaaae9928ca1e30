"""An emulated GPU that is the current one, and the GPU of the machine."""

from __future__ import annotations

import pytest

from ..lockstep.build import compiler
from ..lockstep.executor import LockstepExecutor
from ..needs import cuda, tool


class Current(LockstepExecutor):
    """An emulated GPU that is the current one, as a GPU mostly is."""

    def goes_straight(self) -> bool:
        self._properties = self._properties or {}
        return self._mine.capture is None and self._observer is None


EXECUTORS = [
    pytest.param(
        lambda: Current(32),
        id="waves",
        marks=tool(compiler() is not None, "no C++ compiler: install g++, or set CXX"),
    ),
    pytest.param(cuda, id="cuda", marks=pytest.mark.gpu),
]
