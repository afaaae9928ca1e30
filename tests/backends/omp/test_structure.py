"""Products and sums of matrices: index dtypes, and rows of many threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.omp import kernels

EXECUTOR = wl.executor("omp:3")


def rough(rows: int, columns: int, seed: int) -> Any:
    """Return a matrix large enough for threads, with unsorted rows and duplicates."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, rows)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = rng.integers(0, columns, indptr[-1]).astype(np.int32)
    return sp.csr_array((rng.standard_normal(indptr[-1]), indices, indptr), (rows, columns))


def same(result: wl.Csr, expected: Any) -> None:
    assert result.has_sorted_indices and not result.has_duplicates
    difference = abs(result.to_scipy() - expected)
    assert difference.nnz == 0 or difference.max() < 1e-12


def test_products_whose_terms_do_not_fit_at_once() -> None:
    """216 M terms of float64 are more than 2 GiB: rows are counted first."""
    dense = np.random.default_rng(8).integers(-4, 5, (600, 600)).astype(float) * 2 + 1
    A = wl.Csr(dense, executor="omp:2")
    np.testing.assert_array_equal((A @ A).to_dense(), dense @ dense)


@pytest.mark.parametrize("longest", [1, 15, 16, 17, 40, 60_000])
def test_coordinates_multiply_by_rows_of_any_length(longest: int) -> None:
    rng = np.random.default_rng(longest)
    rows = np.sort(np.arange(90_000) // longest).astype(np.int32)
    columns = rng.integers(0, 70, rows.size).astype(np.int32)
    S = sp.coo_array((rng.standard_normal(rows.size), (rows, columns)))
    A = wl.Coo((S.data, (rows, columns)), shape=S.shape, executor=EXECUTOR)
    x = rng.standard_normal(S.shape[1])
    np.testing.assert_allclose(A @ x, S @ x, atol=1e-9)


def test_sums_of_many_rows() -> None:
    A, B = rough(9_000, 7_000, 2), rough(9_000, 7_000, 3)
    same(wl.Csr(A, executor=EXECUTOR) - wl.Csr(B, executor=EXECUTOR), A - B)


def test_duplicates_of_many_rows() -> None:
    A = rough(9_000, 50, 4)
    same(wl.Csr(A, executor=EXECUTOR).without_duplicates(), A)


def test_results_repeat_bit_for_bit() -> None:
    A = wl.Csr(rough(9_000, 9_000, 7), executor=EXECUTOR)
    first, second = A @ A, A @ A
    for name in A.arrays:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("name", ["csr_matmul", "csr_add"])
def test_results_that_int32_cannot_count_are_made_with_int64(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    entry = getattr(kernels.native(), name)

    def small(executor: wl.Executor, A: wl.Csr, *rest: Any) -> Any:
        if A.index_dtype == np.int32:
            raise OverflowError("the result has more entries than int32 indices can count")
        return entry(executor, A, *rest)

    monkeypatch.setattr(kernels.native(), name, small)
    A = wl.Csr(np.eye(3), executor=EXECUTOR)
    B = wl.Csr(np.eye(3)[::-1].copy(), executor=EXECUTOR)  # a sum of one pattern counts nothing
    result = A @ B if name == "csr_matmul" else A + B
    assert result.index_dtype == np.int64
    flipped = np.eye(3)[::-1]
    true = flipped if name == "csr_matmul" else np.eye(3) + flipped
    np.testing.assert_array_equal(result.to_dense(), true)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_sums_have_the_zeros_of_the_reference(dtype: str) -> None:
    """The sum of negative zeros and the entry of one matrix alone are zeros without a sign."""
    zeros = np.array([-0.0, 0.0, -0.0, 1.0, -0.0]).astype(dtype)
    zeros = zeros * zeros.dtype.type(-0.0 if zeros.dtype.kind == "f" else complex(-0.0, -0.0))
    patterns = [[0, 1, 2, 3, 4], [0, 1, 2, 5, 6], [5, 6, 7, 8, 9]]
    for columns in patterns:
        sums = []
        for executor in ("reference", "omp"):
            A = wl.Csr((zeros, patterns[0], [0, 5]), shape=(1, 10), executor=executor)
            B = wl.Csr((-zeros, columns, [0, 5]), shape=(1, 10), executor=executor)
            C = wl.Csr((zeros, columns, [0, 5]), shape=(1, 10), executor=executor)
            sums.append([np.asarray(S.data).tobytes() for S in (A - B, A + B, A - C, 2 * A + C)])
        assert sums[0] == sums[1], columns
