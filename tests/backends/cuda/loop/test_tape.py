"""The steps of an iteration that share kernels, and their barriers: decided without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from wollemi.backends.cuda.loop import fused
from wollemi.backends.cuda.runtime import compiler
from wollemi.backends.gpu import tape
from wollemi.core.operation import Operation, parse_signature
from wollemi.core.operations import matrix, vector
from wollemi.core.program import Call

from ...needs import nvrtc
from ...recorded import SOLVES, in_dtypes, recorded
from .fake_cuda import ALGORITHMS, fake_csr, vectors

nvrtc()


def names(steps: list[tape.TapeStep]) -> list[list[str]]:
    return [[operation.name for operation, _ in step.calls] for step in steps]


def test_a_product_takes_the_sum_over_its_rows_along():
    assert names(tape.steps_of(recorded("Cg"))) == [
        ["csr.spmv", "cg.curvature"],
        ["cg.update"],
        ["cg.direction"],
    ]


def test_several_columns_share_no_kernel():
    steps = tape.steps_of(recorded("Cg", columns=2))
    assert [len(group) for group in names(steps)] == [1, 1, 1, 1]


@pytest.mark.parametrize("kernel", ["stream", "subwarp"])
@pytest.mark.parametrize(("stored", "spelled"), [("float32", "float"), ("float16", "wl::half")])
def test_a_product_of_stored_values_takes_the_sum_along(kernel, stored, spelled):
    step = next(s for s in tape.steps_of(recorded("Cg", rows=1000)) if s.product and s.rows)
    A = step.product[1][0]
    A.data.dtype, A.plan.algorithm = np.dtype(stored), ALGORITHMS[kernel]
    made = fused.product_and_rows(step, warp=32, block=128)
    assert f"const {spelled}* " in made.source.rpartition("WL_ENTRY")[2]
    assert compiler.compile_source(made.source, "sm_90", made.symbol)


def test_what_changes_the_gathered_vector_waits_for_the_product():
    A, (p, q) = fake_csr(10), vectors(2, 10)
    calls = [
        Call(matrix.csr_spmv, (A, p, q, 1.0, 0.0)),
        Call(vector.axpby, (q, p, 1.0, 1.0)),
    ]
    assert names(tape.steps_of(calls)) == [["csr.spmv"], ["vector.axpby"]]


def test_an_operation_that_is_not_on_rows_stands_alone():
    steps = tape.steps_of(recorded("Gmres").expanded())
    assert [step.other is not None for step in steps] == [False, *[True] * 6]


def test_a_map_operation_without_a_functor_stands_alone():
    own = Operation("own.map", parse_signature("x: inout T[n,k]"), "", lambda e: 0, ("n", "k"))
    A, (p, q) = fake_csr(10), vectors(2, 10)
    calls = [Call(matrix.csr_spmv, (A, p, q, 1.0, 0.0)), Call(own, (q,))]
    assert [step.other is not None for step in tape.steps_of(calls)] == [False, True]


@pytest.mark.parametrize("chosen", ["stream", "subwarp"])
@pytest.mark.parametrize(("name", "jacobi", "dtype"), in_dtypes(SOLVES))
def test_shared_kernels_compile(name, jacobi, dtype, chosen):
    for step in tape.steps_of(recorded(name, dtype=dtype, jacobi=jacobi)):
        if step.product and step.rows:
            step.product[1][0].plan.algorithm = ALGORITHMS[chosen]
            kernel = fused.product_and_rows(step, warp=32, block=128)
            assert compiler.compile_source(kernel.source, "sm_90", kernel.symbol)
            assert kernel.source.count(kernel.symbol) == 1
