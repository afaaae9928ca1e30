"""A user's own steps and solver, on every executor: nothing of wollemi was built with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operation import OPERATIONS
from wollemi.core.step import (
    INDEFINITE,
    NOT_FINITE,
    Steps,
    absolute,
    dot,
    finite,
    largest,
    norm2,
    real,
    sqrt,
    total,
    where,
)

from .calls import REFERENCE

with OPERATIONS.locally():  # each test of this module has them again
    step = Steps("mine", vectors="x r q s", scalars="rho curvature", reals="size", flags="tiny")
    own = Steps("own", vectors="x y", rows="d", numbers="alpha beta", status=False)

    @step
    def measure(w: Any) -> None:
        """Set rho = <r, r>, curvature = <r, q>, s = r where |r| is not tiny; size = max |r|."""
        w.rho, w.curvature, w.size = norm2(w.r), dot(w.r, w.q), largest(absolute(w.r))
        w.s = where(absolute(w.r) > 1e-30, w.r, 0)
        w.tiny = total(where(absolute(w.r) > 1e-3, 1, 0)) == 0
        w.halt(NOT_FINITE, when=~finite(w.curvature))
        w.halt(INDEFINITE, when=~(real(w.curvature) > 0) & (w.size > 0))

    @step
    def descend(w: Any) -> None:
        """Set x += alpha s, r -= alpha q with alpha = rho / curvature; observes |r|."""
        alpha = w.rho / w.curvature
        w.x += alpha * w.s
        w.r -= alpha * w.q
        w.observe(sqrt(norm2(w.r)))

    @own
    def damp(w: Any) -> None:
        """Set y = alpha d x + beta y."""
        w.y = w.alpha * w.d * w.x + w.beta * w.y


@pytest.fixture(autouse=True)
def _declared() -> None:
    for declared in (measure, descend, damp):
        OPERATIONS.add(declared.operation)


class SteepestDescent(wl.solvers.KrylovSolver):
    """Go down the residual, scaled by M where there is one."""

    def __init__(self, A: Any, M: Any = None, *, memory: int = 3, **settings: Any) -> None:
        super().__init__(A, M, **settings)
        self.memory = memory

    def allocate(self, work: Any) -> None:
        work.make(step)

    def initialize(self, work: Any) -> None:
        pass

    def iterate(self, work: Any) -> None:
        work.A._apply(work.r, work.q, 1.0, 0.0)
        measure(work)
        descend(work)


class Damped(wl.LinOp):
    def __init__(self, d: Any, executor: wl.Executor) -> None:
        self.d, self.executor = d, executor
        self.shape, self.dtype = (d.size, d.size), np.dtype(d.dtype)

    def apply_block(self, x: Any, y: Any, alpha: complex, beta: complex) -> None:
        damp.run(self.executor, x=x, y=y, d=self.d, alpha=0.5 * alpha, beta=beta)

    def to(self, executor: Any) -> Any:
        raise NotImplementedError

    def astype(self, dtype: Any) -> Any:
        return self


def system(dtype: str, n: int = 60) -> sp.csr_matrix:
    line = sp.diags([-1.0, 3.0, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
    if np.dtype(dtype).kind == "c":
        line = line + 0.2j * sp.triu(line, 1) - 0.2j * sp.tril(line, -1)
    return line.astype(dtype).tocsr()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_solver_with_steps_of_its_own(executor, dtype, columns, rng):
    S = system(dtype)
    b = rng.standard_normal((S.shape[0], columns)).astype(dtype)
    rtol = 1e-4 if np.dtype(dtype).char in "fF" else 1e-9
    found = SteepestDescent(wl.Csr(S, executor=executor), rtol=rtol).solve(b)
    expected = SteepestDescent(wl.Csr(S, executor=REFERENCE), rtol=rtol).solve(b)
    assert found.converged and abs(found.iterations - expected.iterations) <= 1
    np.testing.assert_allclose(found.x, expected.x, atol=1e-3 if rtol > 1e-6 else 1e-8)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("name", ["Cg", "Bicgstab", "Gmres"])
def test_an_operator_with_a_step_of_its_own_in_a_loop(executor, name, columns, rng):
    S = system("float64")
    b = rng.standard_normal((S.shape[0], columns))
    A = wl.Csr(S, executor=executor)
    M = Damped(executor.from_host(1 / S.diagonal()), executor)
    solver = getattr(wl.solvers, name)(A, M, rtol=1e-9)
    found = solver.solve(b)
    assert found.converged
    np.testing.assert_allclose(S @ found.x, b, atol=1e-7)


def test_steps_of_nobody_are_recorded(executor, rng):
    S = system("float64")
    solver = SteepestDescent(wl.Csr(S, executor=executor), rtol=1e-9)
    b = rng.standard_normal(S.shape[0])
    first, second = solver.solve(b), solver.solve(b)
    work = solver.take_workspace(b.dtype, 1)
    assert work.iteration.program is not None
    np.testing.assert_array_equal(first.x, second.x)


def test_moving_a_solver_of_ones_own_keeps_its_settings(executor):
    A = wl.Csr(system("float64"), executor="reference")
    mine = SteepestDescent(A, memory=7, rtol=1e-3)
    assert mine.to(executor).memory == 7
    assert mine.astype("float32").memory == 7


def test_an_inner_solver_keeps_its_dtype(executor, rng):
    S = system("float64")
    inner = wl.solvers.Cg(wl.Csr(S.astype("float32"), executor=executor), rtol=1e-3)
    A = wl.Csr(S, executor=executor)
    outer = wl.solvers.Fcg(A, inner, rtol=1e-9)
    assert outer.M.dtype == np.float32
    b = rng.standard_normal(S.shape[0])
    found = outer.solve(b)
    assert found.converged and found.x.dtype == np.float64
    work = outer.take_workspace(np.dtype("float64"), 1)
    assert _computes_in(work.M) == np.float32


def _computes_in(M: Any) -> np.dtype[Any]:
    return np.dtype(getattr(M, "inner", M).dtype)
