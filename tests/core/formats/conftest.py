"""Parts for users' code are tested on every installed executor: tests that take ``on``."""

import pytest

import wollemi as wl

from ...backends.conftest import GPUS, executor_names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "on" in metafunc.fixturenames:
        parameters = [
            pytest.param(name, marks=[pytest.mark.gpu] * (name.partition(":")[0] in GPUS))
            for name in ["reference", *executor_names()]
        ]
        metafunc.parametrize("on", parameters, indirect=True, scope="session")


@pytest.fixture(scope="session")
def on(request: pytest.FixtureRequest) -> wl.Executor:
    """Where the test runs."""
    return wl.executor(request.param)
