"""The kernels for GPUs, run on the CPU device with sub-groups as a GPU has them.

Sub-groups are emulated there, slowly: a few small cases say that the text is right for SYCL. Its
results are tested elsewhere, on waves in lock step and on GPUs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.operation import OPERATIONS, Operation
from wollemi.core.unsupported import REASONS

from ..awkward import BLOCKS, PATTERNS, Block
from ..calls import make
from ..equality import assert_equals_reference
from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp

# Work that is on the device: the host's part is the same for all of them.
ON_THE_DEVICE = [
    o
    for o in OPERATIONS
    if any(p.intent != "in" and p.dims for p in o.parameters)
    and o.name not in REASONS.get("dpcpp", {})
]
ONE, FEW = (next(b for b in BLOCKS if b.columns == k) for k in (1, 9))
ROWS = 37


def _with_sub_groups_of(width: int) -> wl.Executor:
    from wollemi.backends.dpcpp.devices import facts, select
    from wollemi.backends.dpcpp.executor import DpcppExecutor

    device = select("cpu")
    adapted = dataclasses.replace(facts(device), kind="gpu", sub_groups=(width,), largest_block=64)
    return DpcppExecutor(device, adapted)


@pytest.fixture(scope="module")
def gpu() -> wl.Executor:
    return _with_sub_groups_of(16)


@pytest.mark.rare
@pytest.mark.parametrize("block", [ONE, FEW], ids=str)
@pytest.mark.parametrize("operation", ON_THE_DEVICE, ids=lambda o: o.name)
def test_equals_the_reference(
    gpu: Any, operation: Operation, block: Block, rng: np.random.Generator
) -> None:
    largest = max(PATTERNS, key=lambda p: len(p.places))
    pattern = largest if any(p.is_matrix for p in operation.parameters) else None
    call = make(operation, block, ROWS, pattern, np.float64, np.int32, rng)
    assert_equals_reference(call, gpu, rng)


@pytest.mark.parametrize("name", ["csr.sort", "csr.transpose", "csr.sum_duplicates", "coo.to_csr"])
def test_orders_of_entries_equal_the_reference(
    gpu: Any, name: str, rng: np.random.Generator
) -> None:
    largest = max(PATTERNS, key=lambda p: len(p.places))
    call = make(OPERATIONS[name], ONE, ROWS, largest, np.float64, np.int32, rng)
    assert_equals_reference(call, gpu, rng)


@pytest.mark.parametrize(("width", "lanes"), [(8, 4), pytest.param(32, 16, marks=pytest.mark.rare)])
def test_products_are_right_with_sub_groups_of_other_widths(
    width: int, lanes: int, rng: np.random.Generator
) -> None:
    executor = _with_sub_groups_of(width)
    dense = np.where(rng.random((40, 30)) < 0.6, rng.standard_normal((40, 30)), 0.0)
    A, x = wl.Csr(dense).to(executor), rng.standard_normal(30)
    assert (A.plan.kernel, A.plan.state) == ("subwarp", lanes)
    np.testing.assert_allclose(A @ x, dense @ x, rtol=1e-12)
    np.testing.assert_allclose(A.asformat("coo") @ x, dense @ x, rtol=1e-12)
