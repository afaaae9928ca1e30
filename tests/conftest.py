"""The common part of all tests: fixed seeds, and a hypothesis that repeats itself."""

import gc
import os
import signal
import zlib
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import OPERATIONS
from wollemi.solvers.registry import discover

from .rare import rare_among

discover()  # tests take OPERATIONS to have the steps of every solver

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


#: The setting of ``make test-all``: tests that are marked rare run too.
RUNS_ALL = "WOLLEMI_TEST_ALL"

#: Tests that were not run because they are rare.
LEFT: list[pytest.Item] = []


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keep the tests and the modules that they import out of all garbage collections.

    They live as long as the process. To look at 60,000 tests takes half a second each time, and
    while they are collected Python would do so some fifteen times.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests that find nothing in most changes to ``make test-all``."""
    if os.environ.get(RUNS_ALL) or "rare" in config.option.markexpr:
        return
    left = rare_among(items)
    LEFT[:] = left
    config.hook.pytest_deselected(items=LEFT)
    items[:] = [item for item in items if item not in left]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the skipped tests; with several workers none of them collects here."""
    if not os.environ.get(RUNS_ALL):
        count = f"{len(LEFT)} " if LEFT else ""
        terminalreporter.write_line(f"{count}rare tests are left to make test-all")


def pytest_report_header() -> list[str]:
    return [f"executor {line}" for line in wl.available_executors()]


def _is_of_the_library(function: Any) -> bool:
    """Return whether a module of wollemi defines it; an example of a docstring has no file."""
    from_file = not function.__code__.co_filename.startswith("<")
    return from_file and function.__module__.startswith("wollemi.")


@pytest.fixture(autouse=True)
def _operations_are_taken_back() -> Iterator[None]:
    """No test finds another test's declarations; the library's declarations for it stay."""
    known = len(OPERATIONS)
    with OPERATIONS.locally():
        yield
        declared = list(OPERATIONS)[known:]
    for one in declared:
        if one.step is not None and _is_of_the_library(one.step.function):
            OPERATIONS.add(one, f"{one.step.function.__module__}.{one.step.function.__qualname__}")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that are the same in every run of a test, and others in every test."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
