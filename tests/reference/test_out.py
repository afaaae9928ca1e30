"""The tests of where results go, on the reference executor."""

import pytest

import wollemi as wl

from ..backends.test_out import *  # noqa: F403


@pytest.fixture
def executor() -> wl.Executor:
    return wl.executor("reference")
