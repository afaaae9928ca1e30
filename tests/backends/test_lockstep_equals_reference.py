"""Every kernel of GPUs, run by emulated waves of 32 and 64 lanes, does what the reference does."""

from __future__ import annotations

import numpy as np
import pytest

from wollemi.core.operation import Operation

from .awkward import Block, Pattern
from .calls import make
from .lockstep.build import compiler
from .lockstep.executor import WIDTHS, LockstepExecutor
from .needs import tool
from .test_equals_reference import _cases, assert_equals_reference

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")


@pytest.fixture(scope="session", params=WIDTHS)
def lockstep(request: pytest.FixtureRequest) -> LockstepExecutor:
    return LockstepExecutor(request.param)


@pytest.mark.parametrize(
    ("operation", "block", "rows", "pattern", "dtype", "index", "variant"),
    [case for case in _cases() if LockstepExecutor.kernels.find(case.values[0])],
)
def test_waves_equal_the_reference(
    lockstep: LockstepExecutor,
    rng: np.random.Generator,
    operation: Operation,
    block: Block,
    rows: int,
    pattern: Pattern | None,
    dtype: str,
    index: str,
    variant: int,
) -> None:
    call = make(operation, block, rows, pattern, dtype, index, rng, variant)
    assert_equals_reference(call, lockstep, rng)
