"""The tests of SciPy's operators, on the reference executor."""

import pytest

import wollemi as wl

from ..backends.test_scipy_operators import *  # noqa: F403


@pytest.fixture
def executor() -> wl.Executor:
    return wl.executor("reference")
