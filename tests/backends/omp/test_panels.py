"""Products on omp with an operand in panels that stay in cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.omp import panels

#: Two whole panels of 128 columns and a narrow one.
COLUMNS = 300


@pytest.fixture
def S(rng: np.random.Generator) -> Any:
    """Rows of every length, none at all among them, and panels that some rows do not touch."""
    dense = rng.standard_normal((600, COLUMNS)) * (rng.random((600, COLUMNS)) < 0.2)
    dense[::7] = 0.0
    dense[1::7, :200] = 0.0
    dense[3] = rng.standard_normal(COLUMNS)
    return sp.csr_array(dense)


def product(A: wl.Csr, B: Any, **options: Any) -> Any:
    return wl.spmm(A, B, kernel="panels", **options)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [1, 15, 16, 33, 64, 100, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_panels_give_the_dense_product(
    rng: np.random.Generator, S: Any, columns: int, dtype: str, index: Any
) -> None:
    S = S.astype(dtype)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    B, C = (rng.standard_normal((r, columns)).astype(dtype) for r in (COLUMNS, 600))
    width = panels.width_of("spmm", wl.Csr(S).row_statistics, columns)
    assert width < COLUMNS or columns < 33
    want = 0.5 * (S.toarray() @ B) - 2 * C
    got = product(wl.Csr(S, executor="omp:2"), B, out=C.copy(), alpha=0.5, beta=-2.0)
    np.testing.assert_allclose(got, want, rtol=0, atol=200 * np.finfo(dtype).eps)


def test_the_order_of_a_panels_pieces_does_not_depend_on_threads(
    rng: np.random.Generator, S: Any
) -> None:
    B = rng.standard_normal((COLUMNS, 70)).astype(np.float32)
    one, *others = (
        product(wl.Csr(S.astype(np.float32), executor=f"omp:{threads}"), B) for threads in (1, 2, 3)
    )
    for other in others:
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("kernel", ["row-split", "row-blocks", "panels"])
@pytest.mark.parametrize("columns", [64, 250])
def test_an_operand_with_gaps_is_read_in_place_or_copied_where_no_cache_holds_it(
    rng: np.random.Generator, columns: int, kernel: str
) -> None:
    n = 1100  # 77 entries a row: enough uses for a copy of the 1.1 MB of 250 columns
    dense = (rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.07)).astype(np.float32)
    C, B = (rng.standard_normal((n, 300)).astype(np.float32)[:, :columns] for _ in range(2))
    A = wl.Csr(dense, executor="omp:2")
    got = wl.spmm(A, B, kernel=kernel)
    np.testing.assert_allclose(got, dense @ B, rtol=0, atol=200 * np.finfo(np.float32).eps)
    samples = wl.sddmm(A, C, B, kernel=kernel).to_scipy().toarray()
    want = np.where(dense != 0, C @ B.T, 0)
    np.testing.assert_allclose(samples, want, rtol=0, atol=1000 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_rows_that_no_entry_asks_for_are_not_read(
    rng: np.random.Generator, S: Any, value: float
) -> None:
    dense = S.toarray()
    dense[:, [0, 127, 128, 299]] = 0.0
    B = rng.standard_normal((COLUMNS, 40))
    want = dense @ B
    B[[0, 127, 128, 299]] = value
    np.testing.assert_allclose(product(wl.Csr(dense, executor="omp"), B), want, atol=1e-11)


def test_without_beta_the_result_is_not_read(rng: np.random.Generator, S: Any) -> None:
    B, out = rng.standard_normal((COLUMNS, 40)), np.full((600, 40), np.nan)
    np.testing.assert_allclose(product(wl.Csr(S, executor="omp"), B, out=out), S @ B, atol=1e-11)


def test_panels_take_other_values_of_the_same_pattern(rng: np.random.Generator, S: Any) -> None:
    A, B = wl.Csr(S, executor="omp"), rng.standard_normal((COLUMNS, 40))
    product(A, B)
    values = rng.standard_normal((2, S.nnz))
    got = product(A, np.stack([B, B]), values=values)
    for block, data in zip(got, values, strict=True):
        np.testing.assert_allclose(block, sp.csr_array((data, S.indices, S.indptr)) @ B, atol=1e-11)


def test_entries_that_come_twice_count_twice(rng: np.random.Generator) -> None:
    indices = np.sort(rng.integers(0, COLUMNS, (50, 400)), axis=1).ravel()
    data, indptr = rng.standard_normal(indices.size), np.arange(51) * 400
    A = wl.Csr((data, indices, indptr), shape=(50, COLUMNS), executor="omp")
    B = rng.standard_normal((COLUMNS, 64))
    want = sp.csr_array((data, indices, indptr), shape=(50, COLUMNS)) @ B
    np.testing.assert_allclose(product(A, B), want, atol=1e-11)


@pytest.mark.parametrize("operation", ["spmm", "sddmm", "fusedmm"])
def test_panels_refuse_columns_that_fall(operation: str) -> None:
    A = wl.Csr(([1.0, 1.0], [1, 0], [0, 2]), shape=(1, 2), executor="omp")
    with pytest.raises(wl.errors.InvalidArgument, match="sort"):
        A.plan_for(operation, 4, "panels")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_one_column_is_the_product_with_a_vector(
    rng: np.random.Generator, S: Any, dtype: str
) -> None:
    A = wl.Csr(S.astype(dtype), executor="omp:2")
    x = rng.standard_normal(COLUMNS).astype(dtype)
    np.testing.assert_array_equal(wl.spmm(A, x), A @ x)
    np.testing.assert_array_equal(wl.spmm(A, x[:, None])[:, 0], A @ x)
    apart = np.stack([x, x], axis=1)[:, 1:]
    np.testing.assert_array_equal(wl.spmm(A, apart), A @ apart)


def test_one_column_takes_other_values_too(rng: np.random.Generator, S: Any) -> None:
    A, x = wl.Csr(S, executor="omp:2"), rng.standard_normal(COLUMNS)
    values = rng.standard_normal(S.nnz)
    want = sp.csr_array((values, S.indices, S.indptr), shape=S.shape) @ x
    np.testing.assert_allclose(wl.spmm(A, x, values=values), want, atol=1e-12)
