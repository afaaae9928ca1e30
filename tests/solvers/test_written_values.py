"""Solves on the host notice values that were written into the array of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.formats import watched_values

EXECUTORS = ["reference", "omp"]
FORMATS = ["csr", "csc", "coo", "bsr", "ell", "sellp", "hybrid", "dense"]


def tridiagonal(n: int, dtype: Any = float) -> Any:
    return sp.diags_array([-1.0, 4.0, -1.5], offsets=[-1, 0, 1], shape=(n, n)).tocsr().astype(dtype)


def written(format: str, executor: str, dtype: Any = float, n: int = 60) -> Any:
    if format == "dense":
        return wl.Dense(tridiagonal(n, dtype).toarray(), executor=executor)
    return wl.Csr(tridiagonal(n, dtype), executor=executor).asformat(format)


def multiply(values: Any) -> None:
    values *= 3


def exchange(values: Any) -> None:
    flat = values.reshape(-1)
    first, last = np.flatnonzero(flat == flat.max())[0], np.flatnonzero(flat == flat.min())[-1]
    flat[first] *= 2  # the exchange alone would be nothing in a matrix of equal rows
    flat[[first, last]] = flat[[last, first]]


def require_right(solve: Callable[[], Any], A: Any, b: Any, rtol: float) -> None:
    x = solve()
    np.testing.assert_array_less(np.linalg.norm(b - A.to_dense() @ x), 1.5 * rtol * 60**0.5)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("call", ["wl.solve", "solver", "wl.linalg", "iterations"])
def test_a_solve_uses_values_written_since_the_last_one(
    call: str, format: str, executor: str
) -> None:
    A, b, rtol = written(format, executor), np.ones(60), 1e-9
    solver = wl.solvers.Gmres(A, M="none", rtol=rtol)

    def solve() -> Any:
        if call == "wl.linalg":
            x, info = wl.linalg.gmres(A, b, rtol=rtol)
            assert info == 0
            return x
        method = {} if call == "wl.solve" else {"method": "gmres"}
        result = solver.solve(b) if call == "solver" else wl.solve(A, b, rtol=rtol, **method)
        assert result.converged
        return result.x

    for change in (multiply, exchange):
        require_right(solve, A, b, rtol)
        change(A.data)
    require_right(solve, A, b, rtol)


def test_copies_in_a_wider_dtype_follow_new_values() -> None:
    """A float32 matrix and a float64 right-hand side: the solve multiplies by a copy."""
    A, b = wl.Csr(tridiagonal(60, np.float32), executor="omp"), np.linspace(1, 2, 60)
    solver = wl.solvers.Gmres(A, M="none", rtol=1e-6)
    assert solver.solve(b).converged
    A.update_values(3 * A.data)
    require_right(lambda: solver.solve(b).x, A, b, 1e-6)
    A.data[:] = A.data / 2
    require_right(lambda: solver.solve(b).x, A, b, 1e-6)


@pytest.mark.parametrize("format", ["coo", "ell", "hybrid"])
def test_a_transpose_that_is_a_copy_follows_new_values(format: str) -> None:
    A, b = written(format, "omp"), np.linspace(1, 2, 60)
    solver = wl.solvers.Bicg(A, M="none", rtol=1e-9)
    for _ in range(3):
        result = solver.solve(b)
        assert result.converged
        A.update_values(A.data * np.linspace(1, 1.2, A.data.size).reshape(A.data.shape))


def test_values_written_before_the_first_solve_are_used() -> None:
    A, b = wl.Csr(tridiagonal(60), executor="omp"), np.ones(60)
    A.T @ (A @ b)  # makes copies of the values
    A.data[:] *= 3
    require_right(lambda: wl.solvers.Bicg(A, M="none", rtol=1e-9).solve(b).x, A, b, 1e-9)


def test_values_written_after_an_update_are_used() -> None:
    A, b = wl.Csr(tridiagonal(60), executor="omp"), np.ones(60)
    wl.solve(A, b)
    A.update_values(2 * A.data)
    A.data[:] *= 3
    require_right(lambda: wl.solve(A, b, rtol=1e-9).x, A, b, 1e-9)


def test_a_sum_of_operators_follows_its_matrices() -> None:
    A, b = wl.Csr(tridiagonal(60), executor="omp"), np.ones(60)
    operator = A + 2.0 * wl.LinearOperator((60, 60), lambda x: x)
    solver = wl.solvers.Gmres(operator, M="none", rtol=1e-9)
    solver.solve(b)
    A.data[:] *= 3
    x = solver.solve(b).x
    assert np.linalg.norm(A.to_dense() @ x + 2 * x - b) <= 1e-8


def test_factors_of_earlier_values_are_named() -> None:
    A, b = wl.Csr(tridiagonal(60)), np.ones(60)
    solver = wl.solvers.Direct(A)
    A.data[:] *= np.linspace(1, 5, A.nnz)
    result = solver.solve(b)
    assert not result.converged and "update()" in result.reason
    solver.update()
    assert solver.solve(b).converged


def test_the_matrices_of_a_batch_are_followed() -> None:
    matrix = tridiagonal(6)
    A = wl.Csr((np.stack([matrix.data, 2 * matrix.data]), matrix.indices, matrix.indptr))
    direct, b = wl.solvers.Direct(A), np.ones((2, 6))
    for _ in range(2):
        for result in (direct.solve(b), wl.solve(A, b, rtol=1e-9)):
            assert result.converged.all()
            for k in range(2):
                np.testing.assert_allclose(A[k].to_dense() @ result.x[k], b[k], rtol=1e-6)
        A.data[0] *= 3


def test_least_squares_use_written_values() -> None:
    A = wl.Csr(tridiagonal(60, complex)[:, :40], executor="omp")
    b = np.linspace(1, 2, 60)
    solver = wl.solvers.Lsmr(A, atol=1e-12, btol=1e-12)
    solver.solve(b)
    A.data[:] *= 2j
    expected = np.linalg.lstsq(A.to_dense(), b)[0]
    np.testing.assert_allclose(solver.solve(b).x, expected, rtol=1e-6)


def test_shift_and_invert_uses_written_values() -> None:
    matrix = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(60, 60)).tocsr()
    A = wl.Csr(matrix, executor="omp")
    solver = wl.solvers.Lanczos(A, k=2, sigma=0)
    first = solver.solve().eigenvalues
    A.data[:] *= 3
    np.testing.assert_allclose(solver.solve().eigenvalues, 3 * np.asarray(first), rtol=1e-8)


@pytest.mark.parametrize("size", [10, 5_001, 70_000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128"])
def test_marks_differ_after_one_change_and_after_an_exchange(size: int, dtype: str) -> None:
    values = np.random.default_rng(0).uniform(1, 2, size).astype(dtype)
    before = watched_values.marks_of(values)
    assert watched_values.marks_of(values.copy()) == before
    for place in (0, size // 2, size - 1):
        changed = values.copy()
        changed[place] = -1
        assert watched_values.marks_of(changed) != before
    swapped = values.copy()
    swapped[[1, size - 2]] = swapped[[size - 2, 1]]
    assert watched_values.marks_of(swapped) != before
    assert watched_values.marks_of(np.asfortranarray(values.reshape(-1, 1))) == before
