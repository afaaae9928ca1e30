"""Products that read values of a lower precision than they compute in, on every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .awkward import PATTERNS
from .storage import PAIRS, compare

#: One index dtype with each pair: half the programs.
INDEX = dict(zip(PAIRS, ("int32", "int64", "int32", "int64", "int32", "int64"), strict=True))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_algorithm_reads_what_is_stored(
    executor: Any, pair: tuple[str, str], rng: np.random.Generator
) -> None:
    for pattern in PATTERNS:
        compare(executor, pattern, pair, INDEX[pair], rng)


def laplacian(n: int) -> Any:
    """Return the matrix of the 5-point stencil, with values that no precision has exactly."""
    ones = np.full(n - 1, -0.1)
    line = np.diag(np.full(n, 0.2)) + np.diag(ones, 1) + np.diag(ones, -1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)


@pytest.mark.parametrize(
    ("dtype", "stored", "solvers"),
    [
        ("float64", "float32", (wl.solvers.Cg, wl.solvers.Bicg, wl.solvers.Gmres)),
        ("float32", "bfloat16", (wl.solvers.Cg,)),
        ("complex128", "complex64", (wl.solvers.Cg,)),
    ],
)
def test_a_solver_solves_the_system_of_the_stored_values(
    executor: Any, dtype: str, stored: str, solvers: tuple[Any, ...]
) -> None:
    A = wl.Csr(laplacian(12).astype(dtype), executor=executor)
    S = A.stored(stored)
    b = np.linspace(1, 2, A.shape[0]).astype(dtype)
    rtol = 1e-5 if dtype == "float32" else 1e-10
    exact = S.tocsr().to_dense()
    for solver in solvers:
        result = solver(S, M="jacobi", rtol=rtol).solve(b)
        assert result.converged
        assert np.linalg.norm(b - exact @ result.x) <= 1.5 * rtol * np.linalg.norm(b)
        assert not np.allclose(A @ result.x, b, rtol=10 * rtol)  # the other system


def test_refinement_around_stored_values_solves_the_system_itself(executor: Any) -> None:
    A = wl.Csr(laplacian(12), executor=executor)
    b = np.linspace(1, 2, A.shape[0])
    for stored in ("float32", "bfloat16"):
        inner = wl.solvers.Cg(A.stored(stored), M="jacobi", rtol=1e-3)
        result = wl.solvers.Ir(A, inner=inner, rtol=1e-12).solve(b)
        assert result.converged
        assert np.linalg.norm(b - A @ result.x) <= 1e-12 * np.linalg.norm(b)


def test_new_values_reach_solvers_and_transposes(executor: Any) -> None:
    A = wl.Csr(laplacian(6), executor=executor)
    S = A.stored("float32")
    b = np.ones(A.shape[0])
    solver, transpose = wl.solvers.Cg(S, rtol=1e-10), S.T
    first = solver.solve(b).x
    S.update_values(2 * executor.to_host(A.data))
    np.testing.assert_allclose(solver.solve(b).x, first / 2, rtol=1e-8)
    np.testing.assert_allclose(transpose @ b, S @ b, rtol=1e-14)


def test_dense_matrices_are_multiplied_by_what_is_stored(
    executor: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    S = wl.Csr(laplacian(6), executor=executor).stored("float32")
    exact = S.tocsr().to_dense()
    monkeypatch.setattr(type(S), "asformat", None)  # it would widen all values
    for shape in ((36, 5), (3, 36, 2), (36,)):
        B, C = rng.random(shape), rng.random(shape)
        assert np.allclose(wl.spmm(S, B), exact @ B)
        expected = 2 * (exact @ B) - 0.5 * C
        assert np.allclose(wl.spmm(S, B, out=C, alpha=2.0, beta=-0.5), expected)
    narrow = rng.random((36, 3), np.float32)
    made = wl.spmm(S, narrow)
    assert made.dtype == np.float64 and np.allclose(made, exact @ narrow)
    with pytest.raises(wl.errors.ShapeMismatch, match="B: expected shape"):
        wl.spmm(S, np.ones((7, 2)))


def test_dense_matrices_of_another_dtype_convert_what_is_stored(executor: Any) -> None:
    S = wl.Csr(laplacian(4), executor=executor).stored("float32")
    exact = S.tocsr().to_dense()
    B = np.linspace(0, 1, 32).reshape(16, 2) * (1 + 2j)
    assert np.allclose(wl.spmm(S, B), exact @ B)
    assert np.allclose(wl.spmm(S, np.ones((16, 2)), alpha=1j), 1j * (exact @ np.ones((16, 2))))
    values = np.arange(S.nnz, dtype=np.float64)
    other = wl.Csr(laplacian(4), executor=executor)
    expected = wl.spmm(other, np.eye(16), values=values)
    assert np.allclose(wl.spmm(S, np.eye(16), values=values), expected)


def test_the_diagonal_is_read_without_widening_the_matrix(
    executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Row 1 has its diagonal twice, row 2 not at all.
    data, indices = [0.1, 5.0, 0.2, 0.3, 7.0], [0, 2, 1, 1, 0]
    A = wl.Csr((np.array(data), indices, [0, 2, 4, 5]), shape=(3, 3), executor=executor)
    S = A.stored("float32")
    monkeypatch.setattr(type(S), "asformat", None)  # it would widen all values
    stored = np.array(data, np.float32).astype(np.float64)
    found = np.asarray(S.executor.to_host(S.diagonal()))
    assert found.dtype == np.float64
    assert found.tolist() == [stored[0], stored[2] + stored[3], 0.0]
    M = wl.preconditioners.Jacobi(S, replacement=1.0)
    assert np.allclose(M @ np.ones(3), [1 / stored[0], 1 / found[1], 1.0])
    S.update_values(2 * np.array(data))
    assert np.asarray(S.executor.to_host(S.diagonal())).tolist() == (2 * found).tolist()
