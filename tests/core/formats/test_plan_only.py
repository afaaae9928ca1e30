"""Matrices without their original arrays: products by the plan, and errors with remedies."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.dtypes import VALUE_DTYPES
from wollemi.core.errors import (
    ArraysGivenUp,
    InvalidArgument,
    InvalidMatrix,
    UnsupportedOperation,
)
from wollemi.core.formats.planned import PlannedMatrix

from ...backends.lockstep.build import compiler
from ...backends.lockstep.executor import LockstepExecutor
from ...backends.needs import tool

N = 600


def unequal(dtype: Any = np.float64) -> sp.csr_array:
    """Return a positive definite matrix with rows of very different lengths, one of all columns."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.zipf(1.6, N), N // 2)
    i = np.repeat(np.arange(N), lengths)
    j = rng.integers(0, N, i.size)
    values = rng.standard_normal(i.size)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(i.size)
    half = sp.coo_array((values, (i, j)), shape=(N, N)).tocsr()
    half = half + sp.coo_array((np.ones(N), (np.zeros(N, int), np.arange(N))), shape=(N, N))
    made = half + half.conj().T
    made = made + sp.diags_array(abs(made).sum(axis=1) + 1.0)
    return sp.csr_array(made.astype(dtype))


def near(x: Any, y: Any) -> bool:
    """Return whether two results are equal up to rounding."""
    return bool(abs(x - y).max() <= 100 * np.finfo(x.dtype).eps * abs(y).max())


def gpu(warp: int = 32) -> LockstepExecutor:
    return LockstepExecutor(warp)


EMULATED = tool(compiler() is not None, "no C++ compiler: set CXX")
#: The emulated GPU's kernels with plans that hold the entries.
GPU_KERNELS = ("sell", "sell-near", "row-segments")


def planned(S: sp.csr_array, on: Any = "omp", kernel: str = "sell") -> PlannedMatrix:
    return wl.Csr(S, executor="reference").to(on).with_kernel(kernel).plan_only()


@pytest.mark.parametrize("dtype", VALUE_DTYPES)
@pytest.mark.parametrize("columns", [1, 3])
def test_products_are_those_of_the_matrix(dtype: Any, columns: int) -> None:
    S = unequal(dtype)
    A = wl.Csr(S, executor="omp").with_kernel("sell")
    P = A.plan_only()
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, columns)).astype(dtype)
    Y = rng.standard_normal((N, columns)).astype(dtype)
    for x, y in ((X, Y), (X[:, 0], Y[:, 0]), (X[::-1, 1 % columns], Y[:, 0])):
        same = np.array_equal if x.ndim == 1 else near  # A @ X is a product with a dense matrix
        assert same(P @ x, A @ x)
        found = P.apply(x, out=y.copy(), alpha=2.0, beta=-0.5)
        assert same(found, A.apply(x, out=y.copy(), alpha=2.0, beta=-0.5))


@EMULATED
@pytest.mark.parametrize("kernel", GPU_KERNELS)
@pytest.mark.parametrize("warp", [32, 64])
def test_products_on_emulated_gpus(kernel: str, warp: int) -> None:
    on, S = gpu(warp), unequal()
    P = planned(S, on, kernel)
    rng = np.random.default_rng(1)
    for x in (rng.standard_normal(N), rng.standard_normal((N, 3))):
        y = rng.standard_normal(x.shape)
        np.testing.assert_allclose(on.to_host(P @ on.from_host(x)), S @ x, rtol=1e-12, atol=1e-10)
        out = P.apply(on.from_host(x), out=on.from_host(y.copy()), alpha=2.0, beta=3.0)
        np.testing.assert_allclose(on.to_host(out), 2 * (S @ x) + 3 * y, rtol=1e-12, atol=1e-10)


@EMULATED
def test_patterns_on_an_emulated_gpu() -> None:
    on, n = gpu(), 20
    T = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    S = sp.kronsum(sp.kronsum(T, T), T, format="csr")
    A = wl.Csr(S, executor="reference").to(on)
    P = A.plan_only()
    assert P.plan.kernel == "sell-pattern"
    assert P.nbytes < A.plan_nbytes and P.nbytes < 0.8 * A.nbytes
    x = np.arange(n**3) / n**3
    np.testing.assert_allclose(on.to_host(P @ on.from_host(x)), S @ x, rtol=1e-12, atol=1e-12)


@EMULATED
def test_a_solver_on_an_emulated_gpu() -> None:
    on, S = gpu(), unequal()
    P = planned(S, on, "row-segments")
    result = wl.solvers.Cg(P, rtol=1e-10).solve(on.from_host(np.ones(N)))
    assert result.converged
    np.testing.assert_allclose(S @ on.to_host(result.x), 1, rtol=1e-8)


@pytest.mark.parametrize("columns", [1, 2])
def test_solvers_need_products_alone(columns: int) -> None:
    S = unequal()
    A = wl.Csr(S, executor="omp").with_kernel("sell")
    P = A.plan_only()
    b = np.arange(columns * N).reshape(N, columns) / N + 1
    jacobi = wl.preconditioners.Jacobi(A)
    ours = wl.solvers.Cg(P, M=jacobi, rtol=1e-10).solve(b)
    theirs = wl.solvers.Cg(A, M=jacobi, rtol=1e-10).solve(b)
    assert np.all(ours.converged) and np.array_equal(ours.x, theirs.x)
    assert np.all(wl.solve(P, b, rtol=1e-8).converged)
    x, info = wl.linalg.cg(P, b[:, 0])
    assert info == 0
    np.testing.assert_allclose(S @ x, b[:, 0], rtol=1e-3)


def test_operators_of_it() -> None:
    S = unequal()
    P, x = planned(S), np.ones(N)
    np.testing.assert_allclose((P + 2 * wl.Identity(N)) @ x, S @ x + 2 * x, rtol=1e-12)
    np.testing.assert_allclose((P @ P) @ x, S @ (S @ x), rtol=1e-12)
    np.testing.assert_allclose((wl.Csr(S) @ P) @ x, S @ (S @ x), rtol=1e-12)
    np.testing.assert_allclose(P.to_dense(), S.toarray(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(P.to_scipy_operator() @ x, S @ x, rtol=1e-12)


def test_the_arrays_are_free() -> None:
    A = wl.Csr(unequal(), executor="omp").with_kernel("sell")
    held, memory = A.nbytes, weakref.ref(A.data)
    P = A.plan_only()
    gc.disable()
    try:
        del A
        assert memory() is None
    finally:
        gc.enable()
    assert P.nbytes == P.plan_nbytes
    assert 0.9 * held < P.nbytes < 1.6 * held
    assert f"nnz={P.nnz} on {P.executor.name}, by its plan alone: sell" in repr(P)


def test_it_follows_the_values_of_its_matrix() -> None:
    S = unequal()
    A = wl.Csr(S, executor="omp").with_kernel("sell")
    P = A.plan_only()
    A.update_values(2 * A.data)
    np.testing.assert_allclose(P @ np.ones(N), 2 * S.sum(axis=1), rtol=1e-12)


def test_values_stored_in_a_lower_precision() -> None:
    A = wl.Csr(unequal(), executor="omp").stored("float32").with_kernel("sell")
    P = A.plan_only()
    assert "float64 stored in float32" in repr(P)
    assert np.array_equal(P @ np.ones(N), A @ np.ones(N))


def test_rows_that_are_cut_are_in_the_plan() -> None:
    rng = np.random.default_rng(0)
    S = sp.csr_array(sp.random_array((40, 30_000), density=0.001, rng=rng))
    dense = sp.coo_array((rng.random(30_000), (np.full(30_000, 7), np.arange(30_000))), S.shape)
    S = sp.csr_array(S + dense)
    A = wl.Csr(S, executor="omp").with_kernel("sell")
    P, x = A.plan_only(), rng.standard_normal(30_000)
    np.testing.assert_allclose(P @ x, S @ x, rtol=1e-10)
    assert np.array_equal(P @ x, A @ x)
    A.update_values(-A.data)
    np.testing.assert_allclose(P @ x, -(S @ x), rtol=1e-10)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (3, 4)])
def test_nothing_in_it(shape: tuple[int, int]) -> None:
    A = wl.Csr(sp.csr_array(shape), executor="omp")
    P = A.with_kernel("sell").plan_only()
    assert np.array_equal(P @ np.ones(shape[1]), np.zeros(shape[0]))
    y = P.apply(np.ones(shape[1]), out=np.full(shape[0], 2.0), beta=3.0)
    assert np.array_equal(y, np.full(shape[0], 6.0))


@pytest.mark.parametrize(
    ("ask", "remedy"),
    [
        (lambda P: P.tocsr(), "tocsr: .*keep it as long"),
        (lambda P: P.data, "data: "),
        (lambda P: P.indices, "indices: "),
        (lambda P: P.sum(axis=0), "sum: "),
        (lambda P: P.diagonal(), "diagonal: "),
        (lambda P: P.to_scipy(), "to_scipy: "),
        (lambda P: P.stored("float32"), "stored: "),
        (lambda P: P.T, r"T: .*A\.transpose\(\)\.plan_only\(\)"),
        (lambda P: P.H, r"H: .*A\.transpose\(\)\.conj\(\)"),
        (lambda P: np.ones(N) @ P, r"T: .*A\.transpose\(\)"),
        (lambda P: P.rmatvec(np.ones(N)), "H: "),
        (lambda P: P.update_values(np.ones(3)), "update_values: .*this one follows"),
        (lambda P: setattr(P, "data", np.ones(3)), "data: .*this one follows"),
        (lambda P: P.to("reference"), r"to: .*A\.to\(executor\)\.plan_only"),
        (lambda P: P.astype("complex128"), r"astype\('complex128'\): "),
        (lambda P: P @ (1j * np.ones(N)), r"astype\(.*convert the vectors"),
        (lambda P: pickle.dumps(P), "pickle: .*pickle the matrix"),
        (lambda P: copy.copy(P), "copy: "),
        (lambda P: copy.deepcopy(P), "copy: "),
        (lambda P: P.copy(), "copy: "),
        (lambda P: wl.spmm(P, np.ones((N, 4))), "this product: "),
        (lambda P: wl.sddmm(P, np.ones((N, 4)), np.ones((N, 4))), "this product: "),
    ],
)
def test_what_needs_arrays_says_what_to_do(ask: Any, remedy: str) -> None:
    P = planned(unequal())
    with pytest.raises(ArraysGivenUp, match=remedy) as raised:
        ask(P)
    assert "plan_only() gave up the arrays" in str(raised.value)


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda P: wl.preconditioners.Jacobi(P), InvalidArgument),
        (lambda P: wl.preconditioners.Amg(P), InvalidArgument),
        (lambda P: wl.solvers.Direct(P), InvalidArgument),
        (lambda P: wl.Csr(P), UnsupportedOperation),
        (lambda P: wl.linalg.norm(P), UnsupportedOperation),
        (lambda P: wl.Csr(unequal()).multiply(P), InvalidArgument),
    ],
)
def test_functions_that_read_entries_name_it(ask: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"PlannedMatrix without arrays \(plan_only\(\) gave"):
        ask(planned(unequal()))


def test_names_that_no_matrix_has() -> None:
    P = planned(unequal())
    assert not hasattr(P, "tocsr") and not hasattr(P, "nonsense")
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = P.nonsense
    with pytest.raises(InvalidArgument, match="nnz: a PlannedMatrix cannot change it"):
        P.nnz = 3
    assert P.to("omp") is P and P.astype("float64") is P


def test_a_plan_that_reads_the_arrays_says_which_does_not() -> None:
    A = wl.Csr(sp.eye_array(100, format="csr"), executor="omp")
    with pytest.raises(UnsupportedOperation, match=r"'row-blocks'.*A\.with_kernel\(name\).*'sell'"):
        A.plan_only()
    with pytest.raises(UnsupportedOperation, match="no algorithm of reference holds the entries"):
        A.to("reference").plan_only()
    for format in ("coo", "csc", "ell", "dense"):
        with pytest.raises(UnsupportedOperation, match=r"A\.tocsr\(\)\.with_kernel"):
            A.asformat(format).plan_only()
    with pytest.raises(InvalidMatrix):
        wl.spmm(np.ones((2, 2)), np.ones((2, 2)))  # no matrix at all is another matter
