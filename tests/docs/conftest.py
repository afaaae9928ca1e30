"""Pages and examples begin and end with the precision that JAX has by default."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _precision_of_jax() -> Iterator[None]:
    """Undo the change to double precision, which some pages make, before and after a test."""
    _use_single_precision()
    yield
    _use_single_precision()


def _use_single_precision() -> None:
    jax = sys.modules.get("jax")
    if jax is not None:
        jax.config.update("jax_enable_x64", False)
