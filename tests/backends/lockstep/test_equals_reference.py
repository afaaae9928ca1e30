"""Every kernel of GPUs, on emulated waves of 32 and 64 lanes, has the reference's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.core.algorithm import Plan
from wollemi.core.operation import Operation
from wollemi.core.operations import masks
from wollemi.core.operations import products as ml

from ..awkward import Block, Pattern
from ..calls import REFERENCE, make
from ..equality import assert_near, cases
from ..needs import tool
from ..tolerance import allowed
from .build import compiler
from .executor import WIDTHS, LockstepExecutor

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

# They need a program for each of many shapes, which gpu/products/test_waves.py deals out, and
# test_mask_waves.py.
ELSEWHERE = {
    *(ml.csr_spmm, ml.csr_sddmm, ml.csr_fusedmm, ml.csr_fusedmm_backward),
    *(ml.csr_fusedmm_softmax, ml.csr_fusedmm_softmax_backward),
    *(masks.fusedmm, masks.fusedmm_backward),
    *(ml.csr_fusedmm_traced, ml.csr_edge_function, masks.fusedmm_traced),
    *(masks.fusedmm_softmax, masks.fusedmm_softmax_backward),
    *(ml.csr_softmax, ml.csr_softmax_backward, ml.csr_spmm_max, ml.csr_spmm_where_equal),
}

# One index dtype with each value dtype: half the programs.
INDEX = {"float32": "int32", "float64": "int64", "complex64": "int64", "complex128": "int32"}


@pytest.fixture(scope="session")
def waves() -> list[LockstepExecutor]:
    return [LockstepExecutor(width) for width in WIDTHS]


def assert_same(have: dict[str, Any], want: dict[str, Any], tolerance: dict[str, Any]) -> None:
    assert have.keys() == want.keys()
    for name, expected in want.items():
        if isinstance(expected, Plan):
            assert have[name].statistics == expected.statistics
        elif name in tolerance:
            assert_near(name, have[name], expected, tolerance[name])
        else:
            np.testing.assert_array_equal(have[name], expected, err_msg=name)


@pytest.mark.parametrize(
    ("operation", "block", "rows", "pattern", "dtype", "variant"),
    [
        pytest.param(
            *case.values[:5], case.values[6], id=case.id.rpartition("-")[0], marks=case.marks
        )
        for case in cases()
        if LockstepExecutor.kernels.find(case.values[0]) and case.values[0] not in ELSEWHERE
    ],
)
def test_waves_equal_the_reference(
    waves: list[LockstepExecutor],
    rng: np.random.Generator,
    operation: Operation,
    block: Block,
    rows: int,
    pattern: Pattern | None,
    dtype: str,
    variant: int,
) -> None:
    call = make(operation, block, rows, pattern, dtype, INDEX[dtype], rng, variant)
    expected = call.run(REFERENCE)
    tolerance = allowed(call, expected, rng)
    for wave in waves:
        assert_same(call.run(wave), expected, tolerance)
