"""A slice of ``make fuzz``: the same examples in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

import wollemi as wl

from .__main__ import TARGETS
from .batch import Target, run_batch


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda t: t.name)
def test_nothing_is_found(target: Target, tmp_path: Path) -> None:
    with wl.default_executor("omp:1"):
        run_batch(target, tmp_path, seed=0, count=120)
