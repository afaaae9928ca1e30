"""Operators of users that work by array functions, by operations, or by both."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.extend import vector

from .conftest import DTYPES, tolerance

N = 40


class Scaled(wl.LinOp):
    """x -> d x, by a way of computing."""

    def __init__(self, way: str, d: np.ndarray, executor: Any) -> None:
        self.executor, self.way, self.given = wl.executor(executor), way, d
        self.d = self.executor.from_host(d.reshape(-1, 1))
        self.shape, self.dtype = (len(d), len(d)), d.dtype
        self.by_operations = wl.Diagonal(d, executor=self.executor)

    def apply_block(self, x: Any, y: Any, alpha: complex, beta: complex) -> None:
        if self.way == "arrays":
            y[...] = alpha * self.d * x if beta == 0 else alpha * self.d * x + beta * y
        elif self.way == "operations":
            self.by_operations.apply_block(x, y, alpha, beta)
        elif self.way == "a temporary of array functions":
            self.executor.run(vector.axpby, self.d * x, y, alpha, beta)
        else:  # operations, and an array function after them
            self.by_operations.apply_block(x, y, alpha / 2, beta / 2)
            y *= 2

    def to(self, executor: Any) -> Scaled:
        return Scaled(self.way, self.given, executor)

    def astype(self, dtype: Any) -> Scaled:
        return Scaled(self.way, self.given.astype(dtype), self.executor)


WAYS = ["arrays", "operations", "a temporary of array functions", "both"]


def diagonal(dtype: str) -> np.ndarray:
    return np.linspace(1, 4, N).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_a_solver_applies_an_operator_in_each_iteration_however_it_works(
    on: wl.Executor, way: str, dtype: str
) -> None:
    d = diagonal(dtype)
    A, b, rtol = Scaled(way, d, on), np.ones(N, dtype), tolerance(dtype)
    for made in (wl.solvers.Cg(A, rtol=rtol).solve(b), wl.solve(A, b, rtol=rtol)):
        assert made.converged
        np.testing.assert_allclose(made.x, 1 / d, rtol=20 * rtol)


@pytest.mark.parametrize("way", WAYS)
def test_only_operators_of_operations_alone_are_recorded(on: wl.Executor, way: str) -> None:
    A = Scaled(way, diagonal("float64"), on)
    assert A.resident is (way == "operations")
    assert (2.0 * A + wl.Identity(N, executor=on)).resident is A.resident


@pytest.mark.parametrize("way", WAYS)
def test_a_preconditioner_is_applied_in_each_iteration_however_it_works(
    on: wl.Executor, way: str
) -> None:
    class Inverse(wl.preconditioners.Preconditioner):
        parts = ("inverse",)

        def setup(self, A: Any) -> None:
            self.inverse = Scaled(way, 1 / A.executor.to_host(A.diagonal()), A.executor)

        def apply_block(self, x: Any, y: Any, alpha: complex, beta: complex) -> None:
            self.inverse.apply_block(x, y, alpha, beta)

    A = wl.Csr(np.diag(diagonal("float64")), executor=on)
    made = wl.solve(A, np.ones(N), method="cg", M=Inverse, rtol=1e-10)
    assert made.converged and made.iterations <= 2


def test_a_class_that_declares_how_it_works_is_not_asked() -> None:
    class Declared(Scaled):
        resident = False

        def apply_block(self, x: Any, y: Any, alpha: complex, beta: complex) -> None:
            raise AssertionError("applied")

    assert not Declared("arrays", diagonal("float64"), "omp").resident


def test_a_preconditioner_of_array_functions_alone_needs_no_declaration(on: wl.Executor) -> None:
    class Halved(wl.preconditioners.Preconditioner):
        def setup(self, A: Any) -> None:
            pass

        def apply_block(self, x: Any, y: Any, alpha: complex, beta: complex) -> None:
            y[...] = 0.5 * alpha * x if beta == 0 else 0.5 * alpha * x + beta * y

    A = wl.Csr(2.0 * np.eye(N), executor=on)
    M = Halved(A)
    assert not M.resident
    assert wl.solvers.Cg(A, M=M, rtol=1e-10).solve(np.ones(N)).converged


def test_arrays_that_a_set_up_makes_are_told_since_they_do_not_move(on: wl.Executor) -> None:
    class Inverse(wl.preconditioners.Preconditioner):
        def __init__(self, A: Any, *, weights: Any = None, executor: Any = None) -> None:
            self.weights = np.ones(N) if weights is None else weights  # an option, not the set-up's
            super().__init__(A, executor=executor)

        def setup(self, A: Any) -> None:
            self.inverse = A.executor.from_host(1 / A.executor.to_host(A.diagonal()))

        def apply_block(self, x: Any, y: Any, alpha: complex, beta: complex) -> None:
            y[...] = alpha * self.inverse[:, None] * x + (beta * y if beta != 0 else 0)

    class Moving(Inverse):
        def to(self, executor: Any) -> Any:
            return type(self)(self._matrix.to(executor))

    class Own(wl.preconditioners.Jacobi):
        """A set-up of wollemi's."""

    A = wl.Csr(2.0 * np.eye(N), executor=on)
    for make in (lambda: Inverse(A), lambda: wl.solvers.Cg(A, M=Inverse())):
        with pytest.warns(
            UserWarning, match=r"Inverse: .*'inverse'.*parts = \('inverse',\)"
        ) as seen:
            make()
        assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Moving(A)
        Own(A)
