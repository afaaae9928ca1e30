"""The kernels for GPUs, run on the CPU device with sub-groups as a GPU has them.

Sub-groups are emulated there, slowly: a few small cases say that the text is right for SYCL. What
it computes is tested elsewhere, on waves in lock step and on GPUs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.operation import OPERATIONS, Operation

from .awkward import BLOCKS, PATTERNS, Block
from .calls import make
from .dpcpp import needs_dpcpp
from .equality import assert_equals_reference
from .gaps import KNOWN_GAPS

pytestmark = needs_dpcpp

# Work that is on the device: what is done by the host is the same for all of them.
ON_THE_DEVICE = [
    o
    for o in OPERATIONS
    if any(p.intent != "in" and p.dims for p in o.parameters)
    and o.name not in KNOWN_GAPS.get("dpcpp", {})
]
ONE, FEW = (next(b for b in BLOCKS if b.columns == k) for k in (1, 9))
ROWS = 37


@pytest.fixture(scope="module", params=[16])
def gpu(request: pytest.FixtureRequest) -> wl.Executor:
    from wollemi.backends.dpcpp.devices import facts, select
    from wollemi.backends.dpcpp.executor import DpcppExecutor

    device = select("cpu")
    adapted = dataclasses.replace(
        facts(device), kind="gpu", sub_groups=(request.param,), largest_block=64
    )
    return DpcppExecutor(device, adapted)


@pytest.mark.parametrize("block", [ONE, FEW], ids=str)
@pytest.mark.parametrize("operation", ON_THE_DEVICE, ids=lambda o: o.name)
def test_equals_the_reference(
    gpu: Any, operation: Operation, block: Block, rng: np.random.Generator
) -> None:
    largest = max(PATTERNS, key=lambda p: len(p.places))
    pattern = largest if any(p.is_matrix for p in operation.parameters) else None
    call = make(operation, block, ROWS, pattern, np.float64, np.int32, rng)
    assert_equals_reference(call, gpu, rng)
