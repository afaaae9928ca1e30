"""Programs of steps that the build did not know: every step of wollemi, run as a user's own."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.omp import kernels
from wollemi.backends.omp.level import native
from wollemi.backends.omp.step_program import program_of, program_text
from wollemi.core.operation import OPERATIONS
from wollemi.core.step import Steps, absolute, conj, dot, largest, norm2, real, total, where

from ..awkward import Block
from ..calls import make

ALL = [operation for operation in OPERATIONS if operation.step is not None]
REFERENCE = wl.executor("reference")
OMP = wl.executor("omp:2")
CASES = [
    ("float32", Block("one", 1)),
    ("complex128", Block("three", 3, stopped=(1,))),
    ("float64", Block("gaps", 4, gap=3)),
]

with OPERATIONS.locally():  # each test of this module has them again
    plain = Steps("test_program", vectors="x y", scalars="rho", reals="size", status=False)

    @plain
    def swap(w: Any) -> None:
        """Set x, y = y, x."""
        w.x, w.y = w.y, w.x

    @plain
    def mixed(w: Any) -> None:
        """Set x = conj(y) where |x| < |y|, and sums of all kinds."""
        smaller = (absolute(w.x) < absolute(w.y)) & (w.x != w.y)
        w.x = where(smaller, conj(w.y), -w.x / 2) + real(w.y)
        w.rho = total(w.x * w.y) + dot(w.x, w.y) * norm2(w.y)
        w.size = largest(absolute(w.x) * 2)


@pytest.fixture(autouse=True)
def _declared() -> None:
    for declared in (swap, mixed):
        OPERATIONS.add(declared.operation)


class Interpreted(SimpleNamespace):
    """omp, with each step run by its program, although the build made an entry of it."""

    def __init__(self) -> None:
        super().__init__(synchronize=lambda: None)
        names = "from_host to_host allocate transfer transfer_type zeros copy_into copy name"
        for name in names.split():
            setattr(self, name, getattr(OMP, name))

    def run(self, operation: Any, *arguments: Any) -> None:
        native().run_step(OMP, program_of(operation), *arguments)


@pytest.mark.parametrize("operation", ALL, ids=lambda o: o.name)
@pytest.mark.parametrize(("dtype", "block"), CASES, ids=str)
def test_the_program_of_every_step_does_what_the_step_does(operation, dtype, block, rng):
    call = make(operation, block, 300, None, dtype, "int32", rng)
    expected, got = call.run(REFERENCE), call.run(Interpreted())
    precision = 1e-4 if dtype == "float32" else 1e-11
    for name, want in expected.items():
        np.testing.assert_allclose(got[name], want, rtol=precision, atol=precision, err_msg=name)


@pytest.mark.parametrize("columns", [1, 2, 16, 70])
@pytest.mark.parametrize("operation", [wl.solvers.krylov.cg.update.operation], ids=["cg.update"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_sums_over_many_rows_on_two_threads(operation, columns, dtype, rng):
    call = make(operation, Block("many", columns), 40_000 // columns, None, dtype, "int32", rng)
    expected, got = call.run(OMP), call.run(Interpreted())
    precision = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    for name, want in expected.items():
        np.testing.assert_allclose(got[name], want, rtol=precision, err_msg=name)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_expressions_of_all_kinds(dtype, columns, rng):
    call = make(mixed.operation, Block("any", columns), 700, None, dtype, "int32", rng)
    expected, got = call.run(REFERENCE), call.run(OMP)
    precision = 1e-3 if dtype in ("float32", "complex64") else 1e-10
    for name, want in expected.items():
        np.testing.assert_allclose(got[name], want, rtol=precision, atol=precision, err_msg=name)


def test_all_names_are_read_before_any_is_written():
    x, y = np.arange(3000.0)[:, None].copy(), -np.arange(3000.0)[:, None].copy()
    before = x.copy(), y.copy()
    swap.run(OMP, x=x, y=y)
    np.testing.assert_array_equal(x, before[1])
    np.testing.assert_array_equal(y, before[0])


def test_one_array_under_two_names_is_read_before_it_is_written():
    with OPERATIONS.locally():
        two = Steps("test_aliases", vectors="x y z", scalars="rho", status=False)

        @two
        def move(w: Any) -> None:
            """Set x = x + y; rho = <z, z> of the z before."""
            w.x = w.x + w.y
            w.rho = norm2(w.z)

    x, y, rho = np.ones((2000, 1)), np.full((2000, 1), 2.0), np.zeros(1)
    move.run(OMP, x=x, y=y, z=x, rho=rho)
    assert (rho[0], x[0, 0]) == (2000.0, 3.0)


def test_halves_of_a_step_make_the_whole(rng):
    operation = wl.solvers.krylov.cg.update.operation
    call = make(operation, Block("three", 3), 200, None, "complex128", "int32", rng)
    expected = call.run(Interpreted())

    class Halves(Interpreted):
        def run(self, operation: Any, *arguments: Any) -> None:
            slots = np.zeros((1, 3))
            program = program_of(operation)
            native().run_step_visiting(OMP, program, *arguments, slots)
            native().run_step_finishing(OMP, program, *arguments, slots)

    got = call.run(Halves())
    for name, want in expected.items():
        np.testing.assert_array_equal(got[name], want, err_msg=name)


def test_arguments_that_do_not_fit_are_named():
    x, long, narrow = np.ones((3, 1)), np.ones((4, 1)), np.ones((3, 1), np.float32)
    program = program_of(swap.operation)
    with pytest.raises(TypeError, match=r"test_program\.swap: y: expected 3 along axis 0"):
        native().run_step(OMP, program, x, long)
    with pytest.raises(TypeError, match=r"test_program\.swap: y: expected dtype float64, got"):
        native().run_step(OMP, program, x, narrow)
    with pytest.raises(wl.errors.ShapeMismatch, match="y: expected n = 3 along axis 0"):
        swap.run(OMP, x=x, y=long)
    with pytest.raises(wl.errors.UnsupportedDtype, match="y: expected dtype float64, got"):
        swap.run(OMP, x=x, y=narrow)


def test_a_step_that_tells_the_status_of_stopped_columns_leaves_them(rng):
    call = make(
        wl.solvers.krylov.cg.update.operation,
        Block("none", 2, stopped=(0, 1)),
        30,
        None,
        "float64",
        "int32",
        rng,
    )
    expected, got = call.run(REFERENCE), call.run(Interpreted())
    for name, want in expected.items():
        np.testing.assert_array_equal(got[name], want, err_msg=name)


def test_a_product_and_a_sum_are_one_instruction():
    text = program_text(wl.solvers.krylov.cg.update.operation, is_complex=False)
    elements = text.split(";")[1].split(",")
    assert [one.split()[0] for one in elements] == [
        "R.add_product",
        "R.sub_product",
        "R.sum_of_squares",
    ]


@pytest.fixture
def _unknown_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the build know no step of a solver."""
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_is_current", lambda entry, operation: operation.step is None)
        known = kernels.kernel._kernels
        others = {operation: kernel for operation, kernel in known.items() if not operation.step}
        patch.setattr(kernels.kernel, "_kernels", others)
        yield


@pytest.mark.usefixtures("_unknown_steps")
@pytest.mark.parametrize("name", ["Cg", "Bicgstab", "Gmres", "Minres", "Idr", "Qmr"])
def test_solvers_run_with_programs_alone(name, rng):
    n = 400
    S = 2.5 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    result = getattr(wl.solvers, name)(wl.Csr(S, executor=OMP), rtol=1e-9).solve(rng.random(n))
    assert result.converged
