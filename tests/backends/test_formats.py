"""Matrices on every executor: conversions run in its array namespace, and new values arrive."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wollemi as wl

from .awkward import INDEX_DTYPES, PATTERNS, VALUE_DTYPES, Pattern
from .calls import matrix
from .tolerance import UNITS, epsilon

FORMATS = ("csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense")
SQUARE = next(p for p in PATTERNS if p.name == "arrow")
DUPLICATES = next(p for p in PATTERNS if p.name == "duplicates")


def near(have: np.ndarray, want: np.ndarray, size: np.ndarray) -> bool:
    return bool((np.abs(have - want) <= UNITS * epsilon(want.dtype) * size).all())


def close(A: wl.Matrix, dense: np.ndarray) -> bool:
    """Whether ``A`` is ``dense`` up to the order in which duplicates were added."""
    return A.shape == dense.shape and near(A.to_dense(), dense, np.abs(dense) + 3)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_conversions_keep_the_matrix(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern, format: str
) -> None:
    i = PATTERNS.index(pattern) + FORMATS.index(format)
    A = matrix(pattern, VALUE_DTYPES[i % 4], INDEX_DTYPES[i // 4 % 2], rng)
    there = A.to(executor)
    converted = there.asformat(format)
    assert converted.executor == executor
    assert converted.dtype == A.dtype
    assert close(converted, A.to_dense())
    assert close(converted.asformat("csr"), A.to_dense())


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_transposes_multiply(
    executor: wl.Executor, rng: np.random.Generator, pattern: Pattern, format: str
) -> None:
    A = matrix(pattern, "complex128", "int32", rng)
    dense, there = A.to_dense(), A.to(executor).asformat(format)
    y = rng.standard_normal((A.shape[0], 2)) + 0j
    size = np.abs(A.to_dense()).T @ np.abs(y) + 3
    assert near(there.T @ y, dense.T @ y, size)
    assert near(there.H @ y, dense.conj().T @ y, size)


def test_the_data_of_a_hybrid_matrix_are_its_memory(
    executor: wl.Executor, rng: np.random.Generator
) -> None:
    A = matrix(SQUARE, "float64", "int32", rng).to(executor).asformat("hybrid")
    dense, values = A.to_dense(), np.array(executor.to_host(A.data))
    executor.copy_into(A.data, 2 * values)
    assert close(A, 2 * dense)
    A.data = values
    assert close(A, dense) and np.array_equal(executor.to_host(A.data), values)


@pytest.mark.parametrize("format", FORMATS)
def test_new_values_arrive(executor: wl.Executor, rng: np.random.Generator, format: str) -> None:
    A = matrix(SQUARE, "float64", "int32", rng).to(executor).asformat(format)
    x = rng.standard_normal(A.shape[1])
    before = A @ x
    A.update_values(2 * A.data)
    np.testing.assert_array_equal(A @ x, 2 * before)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_new_values_arrive_in_a_transpose_made_before(
    executor: wl.Executor, rng: np.random.Generator, format: str
) -> None:
    A = matrix(SQUARE, "float64", "int32", rng).to(executor).asformat(format)
    transposed, x = A.T, rng.standard_normal(A.shape[0])
    before = transposed @ x
    A.update_values(2 * A.data)
    np.testing.assert_array_equal(transposed @ x, 2 * before)


@pytest.mark.parametrize("format", FORMATS)
def test_new_values_arrive_where_memory_is_shared_and_only_there(
    executor: wl.Executor, rng: np.random.Generator, format: str
) -> None:
    there = matrix(SQUARE, "float64", "int32", rng).to(executor).asformat(format)
    back, x = there.to("reference"), rng.standard_normal(there.shape[1])
    before = (there @ x, back @ x)
    there.update_values(2 * there.data)
    np.testing.assert_array_equal(there @ x, 2 * before[0])
    dense = back.to_dense()
    assert near(back @ x, dense @ x, np.abs(dense) @ np.abs(x))


@pytest.mark.parametrize("format", FORMATS)
def test_matrices_pickle_with_their_place(
    executor: wl.Executor, rng: np.random.Generator, format: str
) -> None:
    A = matrix(DUPLICATES, "float64", "int64", rng).to(executor).asformat(format)
    x = rng.standard_normal(3)
    A @ x
    twin = pickle.loads(pickle.dumps(A))
    assert twin.executor == executor
    np.testing.assert_array_equal(twin @ x, A @ x)


@pytest.mark.parametrize("format", FORMATS)
def test_the_diagonal_is_native(
    executor: wl.Executor, rng: np.random.Generator, format: str
) -> None:
    A = matrix(DUPLICATES, "float64", "int32", rng)
    diagonal = A.to(executor).asformat(format).diagonal()
    assert executor.owns(diagonal)
    np.testing.assert_allclose(executor.to_host(diagonal), A.to_dense().diagonal(), rtol=1e-14)


@pytest.mark.parametrize("format", FORMATS)
def test_arithmetic_between_matrices(
    executor: wl.Executor, rng: np.random.Generator, format: str
) -> None:
    A = matrix(SQUARE, "float64", "int32", rng)
    dense, there = A.to_dense(), A.to(executor).asformat(format)
    size = np.abs(dense) @ np.abs(dense) + 1
    assert near((there @ there).to_dense(), dense @ dense, size)
    assert near((there + 2 * there).to_dense(), 3 * dense, 3 * np.abs(dense) + 1)
    assert near((there - there.T).to_dense(), dense - dense.T, 2 * np.abs(dense) + 1)


def test_operators_without_entries(executor: wl.Executor) -> None:
    x = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    with wl.default_executor(executor):
        np.testing.assert_array_equal(wl.Identity(3) @ x, x)
        np.testing.assert_array_equal(wl.Permutation([2, 0, 1]) @ x, x[[2, 0, 1]])
        np.testing.assert_array_equal(wl.Permutation([2, 0, 1]).T @ x, x[[1, 2, 0]])
        np.testing.assert_array_equal(wl.Diagonal([1.0, 2.0, 3.0]) @ x, x * [[1], [2], [3]])


@pytest.mark.parametrize("columns", [1, 4])
def test_results_in_place_on_native_arrays(
    executor: wl.Executor, rng: np.random.Generator, columns: int
) -> None:
    A = matrix(SQUARE, "float64", "int32", rng)
    x, y = (rng.standard_normal((50, columns)) for _ in range(2))
    there, out = A.to(executor), executor.from_host(y.copy())
    native = executor.from_host(x.copy())
    result = there.apply(native, out=out, alpha=2.0, beta=-1.0)
    assert result is out
    size = 2 * np.abs(A.to_dense()) @ np.abs(x) + np.abs(y)
    assert near(executor.to_host(out), 2 * A.to_dense() @ x - y, size)
    there.apply(native, out=native)
    assert near(executor.to_host(native), A.to_dense() @ x, size)
