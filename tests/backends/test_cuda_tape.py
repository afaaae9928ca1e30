"""What of an iteration shares kernels, and where their blocks must meet: decided without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.backends.cuda import fused, tape
from wollemi.backends.cuda.compiler import compile_source
from wollemi.core.operations import bicgstab, cg, cgs, gmres, matrix, vector

from .fake_cuda import FakeArray, FakeStatus, cells, fake_csr, vectors

pytest.importorskip("cuda.bindings.nvrtc")


def cg_tape(rows: int = 100, dtype: Any = np.float64, columns: int = 1, jacobi: bool = False):
    A, status = fake_csr(rows, dtype), FakeStatus(dtype, columns)
    x, r, p, q, z = vectors(5, rows, dtype, columns)
    rho, rho_old, pq = cells(3, dtype, columns)
    calls = [
        (matrix.csr_spmv, (A, p, q, 1.0, 0.0)),
        (cg.curvature, (p, q, pq, status)),
        (cg.update, (x, r, p, q, rho, rho_old, pq, status)),
    ]
    if jacobi:
        d = FakeArray((rows,), dtype)
        calls += [
            (vector.scale_rows, (d, r, z, 1.0, 0.0)),
            (cg.weigh, (r, z, rho, status)),
        ]
    return tape.Tape([*calls, (cg.direction, (p, z if jacobi else r, rho, rho_old, status))])


def bicgstab_tape(rows: int = 100, dtype: Any = np.float64):
    A, status = fake_csr(rows, dtype), FakeStatus(dtype)
    x, r, shadow, p, v, t = vectors(6, rows, dtype)
    rho, rho_old, alpha, omega = cells(4, dtype)
    real = np.zeros(1, dtype).real.dtype
    (scale,), halfway = cells(1, real), FakeArray((1,), np.uint8)
    return tape.Tape(
        [
            (bicgstab.direction, (p, r, v, rho, rho_old, alpha, omega, status)),
            (matrix.csr_spmv, (A, p, v, 1.0, 0.0)),
            (bicgstab.length, (shadow, v, rho, alpha, status)),
            (bicgstab.half, (r, v, alpha, halfway, status)),
            (matrix.csr_spmv, (A, r, t, 1.0, 0.0)),
            (bicgstab.stabilize, (t, r, omega, halfway, status)),
            (
                bicgstab.update,
                (x, r, p, r, t, shadow, alpha, omega, rho, rho_old, scale, status),
            ),
        ]
    )


def cgs_tape(rows: int = 100, dtype: Any = np.float64):
    A, status = fake_csr(rows, dtype), FakeStatus(dtype)
    x, r, shadow, p, u, q, v, t = vectors(8, rows, dtype)
    rho, rho_old, alpha = cells(3, dtype)
    (scale,) = cells(1, np.zeros(1, dtype).real.dtype)
    return tape.Tape(
        [
            (cgs.direction, (u, p, q, r, rho, rho_old, status)),
            (matrix.csr_spmv, (A, p, v, 1.0, 0.0)),
            (bicgstab.length, (shadow, v, rho, alpha, status)),
            (cgs.half, (u, q, v, alpha, status)),
            (matrix.csr_spmv, (A, u, t, 1.0, 0.0)),
            (cgs.update, (x, r, u, t, shadow, alpha, rho, rho_old, scale, status)),
        ]
    )


def names(steps: list[tape.Step]) -> list[list[str]]:
    return [[operation.name for operation, _ in step.calls] for step in steps]


def test_a_product_takes_the_sum_over_its_rows_along():
    assert names(cg_tape().steps()) == [
        ["csr.spmv", "cg.curvature"],
        ["cg.update"],
        ["cg.direction"],
    ]


def test_several_columns_share_no_kernel():
    assert [len(group) for group in names(cg_tape(columns=2).steps())] == [1, 1, 1, 1]


def test_what_changes_the_gathered_vector_waits_for_the_product():
    A, (p, q) = fake_csr(10), vectors(2, 10)
    calls = tape.Tape([(matrix.csr_spmv, (A, p, q, 1.0, 0.0)), (vector.axpby, (q, p, 1.0, 1.0))])
    assert names(calls.steps()) == [["csr.spmv"], ["vector.axpby"]]


def test_cg_meets_three_times_and_publishes_nothing_by_a_sum():
    plan = tape.meetings(cg_tape().steps())
    assert plan.before == (True, False, False)
    assert plan.publish == (False, False, False)


def test_bicgstab_publishes_the_half_residual_with_its_norm():
    steps = bicgstab_tape().steps()
    plan = tape.meetings(steps)
    gathered = [step.gathers is not None for step in steps]
    assert names(steps)[2] == ["bicgstab.half"]
    assert plan.publish[2]
    assert plan.before == (False, True, False, False, False)
    assert gathered == [False, True, False, True, False]


def test_a_product_after_a_write_of_its_vector_waits_for_all():
    A, (x, y, z) = fake_csr(10), vectors(3, 10)
    steps = tape.Tape(
        [
            (matrix.csr_spmv, (A, x, y, 1.0, 0.0)),
            (matrix.csr_spmv, (A, y, z, 1.0, 0.0)),
            (vector.axpby, (z, x, 1.0, 1.0)),
        ]
    ).steps()
    # x is gathered by the first, so its new value waits too
    assert tape.meetings(steps).before == (True, True)


def test_an_operation_that_is_not_on_rows_stands_alone():
    w = vectors(1, 10)[0]
    basis, h = FakeArray((3, 10, 1), np.float64), FakeArray((3, 1), np.float64)
    before, step = FakeArray((1,), np.float64), FakeArray((1,), np.int64)
    calls = tape.Tape([(gmres.project, (basis, w, h, before, step, FakeStatus()))])
    assert calls.steps()[0].other is not None


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("make", [cg_tape, bicgstab_tape, cgs_tape])
def test_shared_kernels_compile(make, dtype):
    calls = make(dtype=dtype)
    steps = calls.steps()
    for step in steps:
        if step.product and step.rows:
            kernel = fused.product_and_rows(step, warp=32, block=128)
            assert compile_source(kernel.source, "sm_90", kernel.symbol)
            assert kernel.source.count(kernel.symbol) == 1
    status = next(a for p, a in calls.arrays() if p.is_status)
    value = np.dtype(dtype).str[1:]
    for block, cluster in ((256, 0), (1024, 0), (512, 16)):
        kernel = fused.all_together(
            steps, tape.meetings(steps), status, value, warp=32, block=block, cluster=cluster
        )
        assert compile_source(kernel.source, "sm_90", kernel.symbol)


def test_a_preconditioned_iteration_is_one_kernel_too():
    calls = cg_tape(jacobi=True)
    steps = calls.steps()
    status = next(a for p, a in calls.arrays() if p.is_status)
    kernel = fused.all_together(steps, tape.meetings(steps), status, "f8", warp=32, block=256)
    assert compile_source(kernel.source, "sm_80", kernel.symbol)


def test_an_array_is_one_argument_however_often_it_occurs():
    steps = cg_tape().steps()
    status = next(a for p, a in cg_tape().arrays() if p.is_status)
    kernel = fused.all_together(steps, tape.meetings(steps), status, "f8", warp=32, block=256)
    pointers = [v for v in kernel.values if isinstance(v, int) and v >= 1 << 20]
    assert len(pointers) == len(set(pointers))


def test_the_direction_of_cg_is_left_to_the_next_product():
    steps = cg_tape().steps()
    assert tape.delayed(steps)
    plan = tape.meetings_delayed(steps)
    assert plan.before == (False, False) and plan.publish == (False, True)
    assert tape.delayed(cg_tape(jacobi=True).steps())


def test_directions_that_the_product_would_spoil_are_not_delayed():
    assert not tape.delayed(bicgstab_tape().steps())
    assert not tape.delayed(cgs_tape().steps())
    calls = bicgstab_tape()
    rotated = tape.Tape([*calls[1:], calls[0]])  # v is written by the product and read by p
    assert not tape.delayed(rotated.steps())


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("cluster", [0, 16])
def test_a_delayed_direction_compiles(dtype, cluster):
    for jacobi in (False, True):
        calls = cg_tape(dtype=dtype, jacobi=jacobi)
        steps = calls.steps()
        status = next(a for p, a in calls.arrays() if p.is_status)
        kernel = fused.all_together(
            steps,
            tape.meetings_delayed(steps),
            status,
            np.dtype(dtype).str[1:],
            warp=32,
            block=256,
            cluster=cluster,
            spare=vectors(1, 100, dtype)[0],
        )
        assert compile_source(kernel.source, "sm_90", kernel.symbol)
