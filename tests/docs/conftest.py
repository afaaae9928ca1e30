"""Pages and examples leave no settings to the tests after them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _precision_of_jax() -> Iterator[None]:
    """Restore JAX's precision, which some pages set to double."""
    before = "jax" in sys.modules and sys.modules["jax"].config.jax_enable_x64
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", before)
