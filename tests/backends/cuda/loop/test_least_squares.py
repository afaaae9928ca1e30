"""Iterations of LSQR and LSMR: their kernels compile, and two lengths of vectors are a graph."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.loop import fused, loop
from wollemi.backends.cuda.loop.schedule import phases_of
from wollemi.backends.cuda.runtime import compiler
from wollemi.backends.gpu import tape
from wollemi.core.formats import Csr, Diagonal

from ...recorded import FAKE, fake_matrix
from .fake_cuda import FakeArray
from .test_schedule import SHAPES, text

CASES = [(name, scaled) for name in ("Lsqr", "Lsmr") for scaled in (False, True)]


def program(
    name: str, shape: tuple[int, int], dtype: Any = np.float64, scaled: bool = False
) -> Any:
    """Return the program of an iteration with matrices that have addresses and no entries."""
    m, n = shape
    A, AH = fake_matrix(m, dtype), fake_matrix(n, dtype)
    A.__dict__["shape"], AH.__dict__["shape"] = (m, n), (n, m)
    M = Diagonal._from_arrays(FAKE, (n, n), FakeArray((n,), dtype)) if scaled else None
    with mock.patch.object(Csr, "H", AH):
        solver = getattr(wl.solvers, name)(A, M)
    work = solver.take_workspace(dtype, 1)
    return FAKE.record(work.iteration.body)


@pytest.mark.parametrize(
    ("name", "scaled", "dtype"),
    [
        *((*case, "float64") for case in CASES),
        ("Lsmr", False, "float32"),
        ("Lsqr", True, "complex64"),
    ],
)
def test_products_share_a_kernel_with_what_follows(name, scaled, dtype):
    steps = tape.steps_of(program(name, (100, 70), dtype, scaled))
    shared = [step for step in steps if step.product and step.rows]
    assert len(shared) == 2
    for step in shared:
        kernel = fused.product_and_rows(step, warp=32, block=128)
        assert compiler.compile_source(kernel.source, "sm_90", kernel.symbol)


@pytest.mark.parametrize(
    ("name", "scaled", "dtype"), [("Lsmr", False, "float64"), ("Lsqr", True, "complex128")]
)
def test_an_iteration_of_a_square_matrix_compiles_as_one_kernel(name, scaled, dtype):
    made = text(program(name, (100, 100), dtype, scaled), SHAPES["grid with matrices"]).kernel
    assert compiler.compile_source(made.source, "sm_90", made.symbol)


def test_two_lengths_of_vectors_do_not_fit_one_kernel():
    calls = program("Lsmr", (100, 70))
    phases = phases_of(tape.steps_of(calls))
    assert phases is not None
    assert not loop.fits_one_kernel(FAKE, calls, phases)
