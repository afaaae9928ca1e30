"""What every test shares: fixed seeds, and a hypothesis that repeats itself."""

import signal
import zlib
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import OPERATIONS

# Random examples that differ from run to run belong into a search, not into a suite.
hypothesis.settings.register_profile(
    "wollemi",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("wollemi")

# A shell that starts this in the background has it ignore Ctrl-C: solves that are to be interrupted
# would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    return [f"executor {line}" for line in wl.available_executors()]


@pytest.fixture(autouse=True)
def _operations_are_taken_back() -> Iterator[None]:
    """What a test declares, no other test finds."""
    with OPERATIONS.locally():
        yield


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that are the same in every run of a test, and others in every test."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
