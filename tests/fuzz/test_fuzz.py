"""A slice of ``make fuzz``: the same examples in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

import wollemi as wl

from . import batches, eigenvalues, expressions, files, least_squares, preconditioners, scales
from .batch import Target, run_batch


@pytest.mark.parametrize(
    "target",
    [
        files.TARGET,
        expressions.TARGET,
        scales.TARGET,
        least_squares.TARGET,
        eigenvalues.TARGET,
        preconditioners.TARGET,
        batches.TARGET,
    ],
    ids=lambda t: t.name,
)
def test_nothing_is_found(target: Target, tmp_path: Path) -> None:
    with wl.default_executor("omp:1"):
        run_batch(target, tmp_path, seed=0, count=120)
