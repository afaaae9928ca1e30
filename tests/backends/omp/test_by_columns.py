"""Products with a transpose by columns: parts of the rows, and their separate sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import matrix as operations

DTYPES = ("float32", "float64", "complex64", "complex128")
REFERENCE = wl.executor("reference")


def of_entries(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return a matrix of random values, with duplicates and unsorted rows."""
    values = np.random.default_rng(1).standard_normal(len(rows))
    order = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(np.asarray(rows)[order], np.arange(shape[0] + 1))
    indices = np.asarray(columns)[order].astype(np.int32)
    return sp.csr_array((values, indices, indptr.astype(np.int32)), shape)


def random(rows: int, columns: int, entries: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    places = rng.integers(0, rows, entries), rng.integers(0, columns, entries)
    return of_entries(*places, (rows, columns))


def band(n: int, *offsets: int) -> Any:
    return sp.diags_array([1.0 + o / n for o in offsets], offsets=offsets, shape=(n, n)).tocsr()


def one_row(columns: int) -> Any:
    """Return a matrix with entries in one row: parts cut it."""
    return of_entries(np.full(60_000, 2), np.arange(60_000) * 7 % columns, (5, columns))


MATRICES = {
    "random": random(4_000, 3_000, 70_000),
    "tall": random(60_000, 40, 70_000),
    "wide": random(40, 60_000, 70_000),
    "far more columns than entries": random(300, 200_000, 20_000),
    "band": band(20_000, -1, 0, 1, 130),
    # Windows of later parts begin before the windows of earlier ones.
    "falling": sp.csr_array(band(20_000, -1, 0, 1, 130)[:, ::-1]),
    "gaps": of_entries(np.arange(40_000) // 2, np.arange(40_000) * 5 + 1000, (20_000, 210_000)),
    "one row": one_row(4_000),
    "many rows are empty": sp.vstack([random(2_000, 500, 40_000), sp.csr_array((9_000, 500))]),
    "few": random(30, 40, 100),
    "one part": random(30, 90_000, 17_000),
    "no entries": sp.csr_array((50_000, 70_000)),
    "no rows": sp.csr_array((0, 9)),
    "no columns": sp.csr_array((9, 0)),
}


def product(A: wl.Csr, x: Any, y: Any, alpha: complex = 1.0, beta: complex = 0.0) -> Any:
    """Return ``alpha A^T x + beta y``, in place."""
    A.executor.run(operations.csr_spmv_transposed, A, x, y, alpha, beta)
    return y


def assert_near(S: Any, x: Any, y: Any, have: Any, alpha: complex, beta: complex) -> None:
    S = S.astype(np.promote_types(S.dtype, np.float64))
    want = alpha * (S.T @ x) + (0 if beta == 0 else beta * y)
    sizes = S.copy()
    sizes.data = abs(S.data)  # SciPy's abs adds up duplicates first, some of which cancel
    size = abs(alpha) * (sizes.T @ abs(x)) + (0 if beta == 0 else abs(beta * y))
    unit = np.finfo(have.dtype).eps
    np.testing.assert_array_less(abs(have - want), 40 * unit * size + 1e-30)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("columns", [1, 3, 17, 40])
def test_any_pattern_has_the_product_of_the_transpose(name: str, columns: int) -> None:
    S = sp.csr_array(MATRICES[name])
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((S.shape[0], columns)), rng.standard_normal((S.shape[1], columns))
    for alpha, beta in ((1.0, 0.0), (-0.75, 1.0), (2.0, -1.25)):
        A = wl.Csr(S, executor="omp:3")
        before = np.full_like(y, np.nan) if beta == 0 else y
        assert_near(S, x, y, product(A, x, before.copy(), alpha, beta), alpha, beta)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("name", ["random", "band", "falling"])
def test_any_dtype_and_rows_apart(name: str, columns: int, index: str, dtype: str) -> None:
    S = MATRICES[name].astype(dtype)
    if np.dtype(dtype).kind == "c":
        S.data *= np.exp(1j).astype(dtype)
    rng = np.random.default_rng(4)
    wide = [rng.standard_normal((n, columns + 3)).astype(dtype) for n in S.shape]
    x, y = (array[:, 1 : columns + 1] for array in wide)
    A = wl.Csr((S.data, S.indices.astype(index), S.indptr.astype(index)), S.shape, executor="omp:2")
    assert A.index_dtype == index
    kept, before = wide[1].copy(), y.copy()
    product(A, x, y, -0.5, 1.5)
    assert_near(S, x, before, y, -0.5, 1.5)
    kept[:, 1 : columns + 1] = y
    np.testing.assert_array_equal(wide[1], kept)  # memory between the rows stays


@pytest.mark.parametrize("name", MATRICES)
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    S = sp.csr_array(MATRICES[name])
    x = np.random.default_rng(5).standard_normal((S.shape[0], 2))
    found = set()
    for threads in (1, 2, 3, 8):
        A = wl.Csr(S, executor=f"omp:{threads}")
        found |= {product(A, x, np.empty((S.shape[1], 2))).tobytes() for _ in range(2)}
    assert len(found) == 1


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_stay_in_their_columns(special: float) -> None:
    S = MATRICES["random"].copy()
    S.data[[0, 35_000, -1]] = special
    x = np.random.default_rng(6).standard_normal((S.shape[0], 1))
    x[1_000] = special
    y = np.empty((S.shape[1], 1))
    got = product(wl.Csr(S, executor="omp:2"), x, y.copy())
    want = product(wl.Csr(S, executor=REFERENCE), x, y.copy())
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isposinf(got), np.isposinf(want))
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(want))


@pytest.mark.parametrize("order", ["C", "F"])
def test_users_blocks_may_be_in_any_order(order: Any) -> None:
    S = MATRICES["random"]
    X = np.asarray(np.random.default_rng(7).standard_normal((S.shape[0], 6)), order=order)
    A = wl.Csr(S, executor="omp:2")
    np.testing.assert_allclose(A.T @ X, S.T @ X, atol=1e-11)
    np.testing.assert_allclose(X.T @ A, X.T @ S, atol=1e-11)


def test_threads_of_python_may_multiply_at_the_same_time() -> None:
    from concurrent.futures import ThreadPoolExecutor

    S = MATRICES["random"]
    x = np.random.default_rng(8).standard_normal((S.shape[0], 1))
    A = wl.Csr(S, executor="omp:2")
    want = product(A, x, np.empty((S.shape[1], 1)))
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(lambda _: product(A, x, np.empty((S.shape[1], 1))), range(40))
        for got in made:
            np.testing.assert_array_equal(got, want)
