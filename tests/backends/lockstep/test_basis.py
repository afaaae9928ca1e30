"""The steps of GMRES with a basis of a lower precision, run by emulated waves."""

from __future__ import annotations

import numpy as np
import pytest

from ..basis import compare
from ..needs import tool
from ..storage import PAIRS
from .build import compiler
from .executor import WIDTHS, LockstepExecutor

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.mark.parametrize(
    ("pair", "width"),
    [pytest.param(p, WIDTHS[at % len(WIDTHS)], id="-".join(p)) for at, p in enumerate(PAIRS)],
)
def test_waves_read_and_write_what_is_stored(
    pair: tuple[str, str], width: int, rng: np.random.Generator
) -> None:
    compare(LockstepExecutor(width), pair, rng)
