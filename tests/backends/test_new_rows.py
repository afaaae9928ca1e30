"""Products, sums and orders of sparse rows on CPUs: one text makes them for omp and for SYCL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import structure

from .dpcpp.needs_dpcpp import needs_dpcpp

ON_CPUS = pytest.mark.parametrize("name", ["omp:3", pytest.param("dpcpp:cpu", marks=needs_dpcpp)])


def rough(rows: int, columns: int, seed: int, longest: int = 11) -> Any:
    """Return a matrix large enough for threads, with unsorted rows and duplicates."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, rows)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = rng.integers(0, columns, indptr[-1]).astype(np.int32)
    return sp.csr_array((rng.standard_normal(indptr[-1]), indices, indptr), (rows, columns))


def typed(S: Any, dtype: str, index: str) -> Any:
    """Return a matrix in other dtypes, complex values with an imaginary part."""
    data = S.data * (1 + 2j) if dtype.startswith("complex") else S.data
    return sp.csr_array((data.astype(dtype), S.indices.astype(index), S.indptr.astype(index)))


def same(result: wl.Csr, expected: Any, eps: float = 1e-12) -> None:
    assert result.has_sorted_indices and not result.has_duplicates
    difference = abs(result.to_scipy() - expected)
    assert difference.nnz == 0 or difference.max() < eps


def arrays(A: wl.Csr) -> list[np.ndarray[Any, Any]]:
    return [A.executor.to_host(getattr(A, name)) for name in ("indptr", "indices", "data")]


@ON_CPUS
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_of_many_rows(name: str, dtype: str, index: str) -> None:
    A, B = (typed(rough(9_000, 9_000, seed), dtype, index) for seed in (0, 1))
    made = wl.Csr(A, executor=name) @ wl.Csr(B, executor=name)
    assert (made.dtype, made.index_dtype) == (dtype, index)
    same(made, A @ B, 600 * float(np.finfo(dtype).eps))


@ON_CPUS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_have_the_bits_of_the_reference(name: str, dtype: str) -> None:
    """NumPy fuses the multiplications of complex numbers, so that theirs may differ."""
    A, B = rough(400, 300, 2), rough(300, 500, 3, longest=200)
    A.data[::7] = -0.0
    A, B = A.astype(dtype), B.astype(dtype)
    made, expected = (wl.Csr(A, executor=on) @ wl.Csr(B, executor=on) for on in (name, "reference"))
    for one, other in zip(arrays(made), arrays(expected), strict=True):
        assert one.tobytes() == other.tobytes()


@ON_CPUS
def test_products_with_columns_that_are_far_apart(name: str) -> None:
    """A set of columns is kept in words of 64, groups of 4,096 and a top of 262,144."""
    columns = np.array([0, 63, 64, 4095, 4096, 262143, 262144, 600_000, 699_999])
    B = sp.csr_array((np.ones(9), columns[::-1].copy(), [0, 4, 9]), (2, 700_000))
    A = sp.csr_array(np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 0.0]]))
    same(wl.Csr(A, executor=name) @ wl.Csr(B, executor=name), A @ B)


@ON_CPUS
def test_products_with_rows_that_are_long(name: str) -> None:
    A = rough(40, 3_000, 4, longest=2_500)
    A.sum_duplicates()
    same(wl.Csr(A, executor=name) @ wl.Csr(A.T.tocsr(), executor=name), A @ A.T, 1e-9)


@ON_CPUS
@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (3, 2, 2)])
def test_products_without_entries(name: str, shape: tuple[int, int, int]) -> None:
    m, p, n = shape
    left, right = (wl.Csr(sp.csr_array(of), executor=name) for of in ((m, p), (p, n)))
    made = left @ right
    assert made.shape == (m, n) and made.nnz == 0
    assert not arrays(made)[0].any()


@ON_CPUS
def test_values_of_a_known_product_are_those_of_the_product(name: str) -> None:
    A, B = (wl.Csr(rough(9_000, 9_000, seed), executor=name) for seed in (9, 10))
    C = A @ B
    (data,) = C.executor.run(structure.csr_matmul_values, A, B, C)
    np.testing.assert_array_equal(C.executor.to_host(data), arrays(C)[2])


def sorted_rough(rows: int, columns: int, seed: int) -> Any:
    made = rough(rows, columns, seed)
    made.sum_duplicates()
    return made


@ON_CPUS
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_sums_of_sorted_rows_are_merged(name: str, dtype: str, index: str) -> None:
    """Rows of one pattern, rows that share some columns, and rows that are empty in one matrix."""
    A, B = (sorted_rough(5_000, 300, seed) for seed in (11, 12))
    B = sp.csr_array(sp.vstack([B[:100], 2 * A[100:200], 0 * B[200:300], B[300:]]))
    B.eliminate_zeros()
    A, B = (typed(M, dtype, index) for M in (A, B))
    a, b = (wl.Csr(M, executor=name) for M in (A, B))
    for one, other, expected in ((a, b, A + B), (a, a, A + A), (b, a, B + A)):
        made = one + other
        assert made.index_dtype == index
        same(made, expected, 1e-5)


@ON_CPUS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_have_the_bits_of_the_reference(name: str, dtype: str) -> None:
    A, B = (sorted_rough(700, 90, seed).astype(dtype) for seed in (16, 17))
    made, expected = (
        0.3 * wl.Csr(A, executor=on) - 0.7 * wl.Csr(B, executor=on) for on in (name, "reference")
    )
    for one, other in zip(arrays(made), arrays(expected), strict=True):
        assert one.tobytes() == other.tobytes()


@ON_CPUS
def test_sums_keep_what_cancels(name: str) -> None:
    A = wl.Csr(sorted_rough(9_000, 500, 13), executor=name)
    made = A - A
    assert made.nnz == A.nnz
    assert not arrays(made)[2].any()


@ON_CPUS
def test_sums_of_a_sorted_and_an_unsorted_matrix(name: str) -> None:
    A, B = sorted_rough(9_000, 7_000, 14), rough(9_000, 7_000, 15)
    for one, other in ((A, B), (B, A)):
        same(wl.Csr(one, executor=name) + wl.Csr(other, executor=name), one + other)


@ON_CPUS
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("longest", [11, 64, 65, 200, 3_000])
def test_sorting_keeps_the_order_of_duplicates(name: str, longest: int, index: str) -> None:
    """Up to 64 columns are put in order by counting, and longer rows are merged of such."""
    S = typed(rough(99_000 // longest, 50, 6, longest), "float64", index)
    A = wl.Csr(S, executor=name)
    indices, data, order = map(A.executor.to_host, A.executor.run(structure.csr_sort, A))
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    expected = np.lexsort((S.indices, rows))
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(indices, S.indices[expected])
    np.testing.assert_array_equal(data, S.data[expected])


@ON_CPUS
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("columns", [1, 400, 900_000])
def test_transposes_keep_the_order_of_rows(name: str, columns: int, index: str) -> None:
    """Of 900,000 columns and 50,000 entries counters of one part alone are made."""
    S = typed(rough(9_000, columns, 5), "float64", index)
    A = wl.Csr(sp.csr_array(S, shape=(9_000, columns)), executor=name)
    found = A.executor.run(structure.csr_transpose, A)
    indptr, indices, data, order = map(A.executor.to_host, found)
    expected = np.argsort(S.indices, kind="stable")
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(data, S.data[expected])
    np.testing.assert_array_equal(indices, np.repeat(np.arange(9_000), np.diff(S.indptr))[expected])
    np.testing.assert_array_equal(np.diff(indptr), np.bincount(S.indices, minlength=columns))


@ON_CPUS
@pytest.mark.parametrize("rows", [1, 300, 900_000])
def test_coordinates_keep_their_order_within_a_row(name: str, rows: int) -> None:
    rng = np.random.default_rng(7)
    row, col = (rng.integers(0, n, 50_000).astype(np.int32) for n in (rows, 90))
    data = rng.standard_normal(50_000)
    A = wl.Coo((data, (row, col)), shape=(rows, 90), executor=name)
    indptr, indices, found = map(A.executor.to_host, A.executor.run(structure.coo_to_csr, A))
    order = np.argsort(A.executor.to_host(A.row), kind="stable")
    np.testing.assert_array_equal(indices, A.executor.to_host(A.col)[order])
    np.testing.assert_array_equal(found, A.executor.to_host(A.data)[order])
    np.testing.assert_array_equal(np.diff(indptr), np.bincount(row, minlength=rows))


@needs_dpcpp
def test_rows_that_are_not_stored_are_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from wollemi.backends.dpcpp import new_rows

    A, B = (wl.Csr(rough(9_000, 7_000, seed), executor="dpcpp:cpu") for seed in (5, 6))
    B = B.T.tocsr()
    stored = arrays(A @ B)
    monkeypatch.setattr(new_rows, "ROWS_AT_ONCE", 0)
    for one, other in zip(arrays(A @ B), stored, strict=True):
        assert one.tobytes() == other.tobytes()


@needs_dpcpp
def test_results_that_int32_cannot_count_are_made_with_int64(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from wollemi.backends.dpcpp import new_rows

    monkeypatch.setattr(new_rows, "index_dtype", lambda *_: np.dtype(np.int64))
    A = wl.Csr(2 * np.eye(3), executor="dpcpp:cpu")
    B = wl.Csr(np.eye(3)[::-1].copy(), executor="dpcpp:cpu")  # a sum of one pattern counts nothing
    for made, true in ((A @ A, 4 * np.eye(3)), (A + B, 2 * np.eye(3) + np.eye(3)[::-1])):
        assert made.index_dtype == np.int64
        np.testing.assert_array_equal(made.to_dense(), true)
