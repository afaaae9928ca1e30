"""What of an iteration shares kernels, and where their blocks must meet: decided without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wollemi.backends.cuda.loop import fused
from wollemi.backends.cuda.runtime.compiler import compile_source
from wollemi.backends.gpu import tape
from wollemi.core.operations import bicgstab, cg, cgs, gmres, matrix, vector

from ...needs import nvrtc
from .fake_cuda import FakeArray, FakeStatus, cells, fake_csr, vectors

nvrtc()


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


def gmres_tape(rows: int = 100, dtype: Any = np.float64, size: int = 31, jacobi: bool = False):
    A, status = fake_csr(rows, dtype), FakeStatus(dtype)
    real = np.zeros(1, dtype).real.dtype
    v, w, z = vectors(3, rows, dtype)
    basis, hessenberg = FakeArray((size, rows, 1), dtype), FakeArray((size, size, 1), dtype)
    h, g, sine = (FakeArray((size, 1), dtype) for _ in range(3))
    cosine = FakeArray((size, 1), real)
    (before, after), (count, step) = cells(2, real), cells(2, np.int64)
    preconditioned = [(vector.scale_rows, (FakeArray((rows,), dtype), v, z, 1.0, 0.0))]
    return tape.Tape(
        [
            *(preconditioned if jacobi else []),
            (matrix.csr_spmv, (A, z if jacobi else v, w, 1.0, 0.0)),
            (gmres.project, (basis, w, h, before, step, status)),
            (gmres.subtract, (basis, w, h, after, step, status)),
            (gmres.again, (basis, w, h, before, after, step, status)),
            (
                gmres.rotate,
                (h, after, before, hessenberg, cosine, sine, g, count, step, status),
            ),
            (gmres.append, (w, after, v, basis, step, status)),
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


def test_an_operation_that_is_not_on_rows_stands_alone():
    w = vectors(1, 10)[0]
    basis, h = FakeArray((3, 10, 1), np.float64), FakeArray((3, 1), np.float64)
    before, step = FakeArray((1,), np.float64), FakeArray((1,), np.int64)
    calls = tape.Tape([(gmres.project, (basis, w, h, before, step, FakeStatus()))])
    assert calls.steps()[0].other is not None


@pytest.mark.parametrize("chosen", ["stream", "subwarp"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("make", [cg_tape, bicgstab_tape, cgs_tape])
def test_shared_kernels_compile(make, dtype, chosen):
    calls = make(dtype=dtype)
    steps = calls.steps()
    for step in steps:
        if step.product and step.rows:
            step.product[1][0].plan.kernel = chosen
            kernel = fused.product_and_rows(step, warp=32, block=128)
            assert compile_source(kernel.source, "sm_90", kernel.symbol)
            assert kernel.source.count(kernel.symbol) == 1
