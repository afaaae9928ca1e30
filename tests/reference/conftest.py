"""The reference executor, and the small things that hand-checked examples are made of."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.executor import Executor
from wollemi.core.status import Status


@pytest.fixture
def executor() -> Executor:
    return wl.executor("reference")


@pytest.fixture
def run(executor: Executor) -> Callable[..., Any]:
    return executor.run


@pytest.fixture
def make_status(executor: Executor) -> Callable[..., Status]:
    """Make a status of as many columns as there are thresholds."""

    def make(*thresholds: float, stop: Any = None, capacity: int = 4) -> Status:
        status = Status(executor, len(thresholds), np.float64, capacity)
        status.threshold[:] = thresholds
        if stop is not None:
            status.arm(np.array(stop, np.uint8))
        return status

    return make


@pytest.fixture
def do(executor: Executor) -> Callable[..., None]:
    """Run a step on arrays that are given under its names."""

    def do(step: Any, **named: Any) -> None:
        step(SimpleNamespace(executor=executor, **named))

    return do
