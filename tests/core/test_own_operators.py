"""Classes of operators of other packages: transposes, missing attributes, and their checker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.extend import check_operator

DTYPES = ["float32", "float64", "complex64", "complex128"]


class Plain(wl.LinOp):
    def __init__(self, M: Any, executor: Any = "omp") -> None:
        self.executor, self.M = wl.executor(executor), np.asarray(M)
        self.shape, self.dtype = self.M.shape, self.M.dtype

    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        product = alpha * (self.M @ x)
        y[...] = product if beta == 0 else product + beta * y

    def to(self, executor: Any) -> Any:
        return type(self)(self.M, executor)

    def astype(self, dtype: Any) -> Any:
        return type(self)(self.M.astype(dtype), self.executor)


class WithT(Plain):
    @property
    def T(self) -> Any:
        return type(self)(self.M.T, self.executor)


class WithH(Plain):
    @property
    def H(self) -> Any:
        return type(self)(self.M.conj().T, self.executor)


def matrix(dtype: str, rows: int = 6) -> Any:
    rng = np.random.default_rng(3)
    made = rng.standard_normal((rows, 6)) + 6 * np.eye(rows, 6)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.standard_normal((rows, 6))
    return made.astype(dtype)


@pytest.mark.parametrize("executor", ["reference", "omp"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [WithT, WithH])
def test_one_transpose_follows_from_the_other(kind, dtype, executor):
    M = matrix(dtype, 8)
    A, y = kind(M, executor), np.linspace(0, 1, 8).astype(dtype)
    np.testing.assert_allclose(A.T @ y, M.T @ y, rtol=1e-4)
    np.testing.assert_allclose(A.H @ y, M.conj().T @ y, rtol=1e-4)
    for turned, expected in ((A.T.T, M), (A.H.H, M), (A.T.H, M.conj()), (A.H.T, M.conj())):
        np.testing.assert_allclose(turned.to_dense(), expected, rtol=1e-4)
    assert check_operator(A) == ["apply_block", "T", "H", "astype"]
    assert A.H.astype("complex64").dtype == np.complex64
    assert A.H.to("reference").executor.name == "reference"


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("method", [wl.solvers.Bicg, wl.solvers.Qmr, wl.solvers.Lsmr])
def test_methods_with_transposes_take_them(method, dtype):
    M = matrix(dtype)
    result = method(WithH(M), atol=1e-10).solve(np.ones(6))
    assert result.converged
    np.testing.assert_allclose(M @ result.x, np.ones(6), atol=1e-7)
    with pytest.raises(
        wl.errors.UnsupportedOperation, match=r"Plain has no .*define T in the class"
    ):
        method(Plain(M), atol=1e-10).solve(np.ones(6))


@pytest.mark.parametrize("name", ["T", "H", "shape", "dtype", "resident"])
def test_a_method_in_the_place_of_a_property_is_refused(name):
    with pytest.raises(wl.errors.InvalidArgument, match=rf"Bad\.{name} is a method.*@property"):
        type("Bad", (Plain,), {name: lambda self: None})


PLACE = wl.executor("omp")
RIGHT = {"shape": (2, 2), "dtype": np.dtype(float), "executor": PLACE}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shape": None}, "sets no shape"),
        ({"dtype": None}, "sets no dtype"),
        ({"executor": None}, "sets no executor"),
        ({"shape": 2}, "two integers, got 2"),
        ({"shape": (2.0, 2)}, "two integers"),
        ({"dtype": float}, r"got <class 'float'>: np\.dtype"),
        ({"dtype": np.dtype(int)}, "compute in float32"),
        ({"executor": "omp"}, r"got 'omp': wl\.executor"),
    ],
)
def test_a_missing_attribute_is_named_when_the_operator_is_made(change, says):
    given = {name: value for name, value in (RIGHT | change).items() if value is not None}

    class Bad(Plain):
        def __init__(self) -> None:
            for name, value in given.items():
                setattr(self, name, value)

    with pytest.raises(wl.errors.InvalidArgument, match=says):
        Bad()


def test_a_subclass_may_set_them_after_the_constructor_of_its_base():
    class Base(Plain):
        def __init__(self) -> None:
            self.executor = PLACE

    class Whole(Base):
        def __init__(self) -> None:
            super().__init__()
            self.M, self.shape, self.dtype = np.eye(2), (2, 2), np.dtype(float)

    assert (Whole() @ np.ones(2)).tolist() == [1, 1]
    with pytest.raises(wl.errors.InvalidArgument, match=r"Base\.__init__ sets no shape"):
        Base()


class ReadsY(Plain):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        y[...] = alpha * (self.M @ x) + beta * y


class NoAlpha(Plain):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        y[...] = self.M @ x if beta == 0 else self.M @ x + beta * y


class Affine(Plain):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        product = alpha * (self.M @ x + 1)
        y[...] = product if beta == 0 else product + beta * y


class ChangesX(Plain):
    def apply_block(self, x: Any, y: Any, alpha: Any, beta: Any) -> None:
        product = alpha * (self.M @ x)
        x *= 0.5
        y[...] = product if beta == 0 else product + beta * y


class WrongT(Plain):
    @property
    def T(self) -> Any:
        return type(self)(self.M)


class WrongCast(Plain):
    def astype(self, dtype: Any) -> Any:
        return self


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (ReadsY, "must overwrite y"),
        (NoAlpha, "is not 2 A x"),
        (Affine, "is not A x"),
        (ChangesX, "changed its operand x"),
        (WrongT, "T: <y, A x>"),
        (WrongCast, "expected that dtype"),
    ],
)
def test_the_checker_names_the_method_that_is_wrong(kind, says):
    with pytest.raises(wl.errors.InvalidArgument, match=says):
        check_operator(kind(matrix("float64")))


@pytest.mark.parametrize("name", ["Csr", "Coo", "Sellp", "Bsr", "Dense"])
def test_the_checker_passes_matrices(name):
    assert len(check_operator(wl.Csr(matrix("complex128")).asformat(name.lower()))) == 4
