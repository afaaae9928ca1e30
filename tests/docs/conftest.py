"""Pages and examples begin with JAX's own settings, and leave none to the tests after them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _precision_of_jax() -> Iterator[None]:
    """Begin with single precision, JAX's own, and restore the precision afterwards."""
    before = False
    if "jax" in sys.modules:
        config = sys.modules["jax"].config
        before = config.jax_enable_x64
        config.update("jax_enable_x64", False)
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", before)
