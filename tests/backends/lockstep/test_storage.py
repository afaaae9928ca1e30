"""The kernels of GPUs that convert stored values, run by emulated waves."""

from __future__ import annotations

import numpy as np
import pytest

from ..awkward import PATTERNS
from ..needs import tool
from ..storage import PAIRS, compare
from .build import compiler
from .executor import WIDTHS, LockstepExecutor

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

#: One width of waves and one index dtype with each pair.
CASES = tuple(
    pytest.param(pair, WIDTHS[at % len(WIDTHS)], ("int32", "int64")[at % 2], id="-".join(pair))
    for at, pair in enumerate(PAIRS)
)


@pytest.mark.parametrize(("pair", "width", "index"), CASES)
def test_waves_read_what_is_stored(
    pair: tuple[str, str], width: int, index: str, rng: np.random.Generator
) -> None:
    for pattern in PATTERNS:
        compare(LockstepExecutor(width), pattern, pair, index, rng)
