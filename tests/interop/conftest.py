"""Helpers of several tests of other libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ..backends.needs import package

# On a GPU JAX takes three quarters of the memory for each process, and these tests are of the host.
os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture
def jax_in_doubles() -> Iterator[None]:
    """JAX computes in float64, and compiles quickly: compiling takes most of these tests' time."""
    jax = package("jax")
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.enable_x64(True):
        yield
    jax.config.update("jax_disable_most_optimizations", False)
