"""The tests of everyday operations, on the reference executor."""

import pytest

import wollemi as wl

from ..backends.test_everyday import *  # noqa: F403


@pytest.fixture
def executor() -> wl.Executor:
    return wl.executor("reference")
