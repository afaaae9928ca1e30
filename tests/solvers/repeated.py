"""Results of the same factors, twice: with the same bits where the engine repeats its sums."""

from __future__ import annotations

from typing import Any

import numpy as np

import wollemi as wl
from wollemi.solvers.direct.engine import chosen_engine


def assert_repeated(on: wl.Executor, found: Any, before: Any) -> None:
    """Require the same bits, or the same numbers but for rounding where Direct takes cuDSS."""
    if chosen_engine("auto", on).name == "cudss":  # docs/reproducibility.md
        rounding = 100 * np.finfo(before.dtype).eps * np.abs(before).max()
        np.testing.assert_allclose(found, before, rtol=0, atol=rounding)
    else:
        np.testing.assert_array_equal(found, before)
