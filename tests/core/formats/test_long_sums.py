"""Sums of many single-precision values equal the rounded double-precision sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

N = 1_000_000


def one_row(on: wl.Executor, dtype: str) -> Any:
    return wl.Csr((np.full(N, 0.1, dtype), np.arange(N), [0, N]), (1, N), executor=on)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_million_tenths_add_up(on: wl.Executor, dtype: str) -> None:
    A, true = one_row(on, dtype), float(np.float32(0.1)) * N
    tenths = sp.diags_array(np.full(N, 0.1, dtype))
    for found in (
        A.sum(),
        A.sum(axis=1),
        A.T.sum(axis=0),
        N * A.mean(axis=1),
        wl.linalg.norm(A, np.inf),
        wl.linalg.norm(A.T, 1),
        wl.linalg.norm(A) ** 2 / float(np.float32(0.1)),
        wl.Csr(tenths, executor=on).trace(),
    ):
        host = found if np.isscalar(found) else on.to_host(found)
        np.testing.assert_allclose(np.ravel(host)[0], true, rtol=1e-6)


FORMATS = ["csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr", "dense"]


@pytest.mark.parametrize("columns", [1, 3, 17])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_products_with_long_rows(on: wl.Executor, dtype: str, format: str, columns: int) -> None:
    n = 200_000  # one after the other, as many tenths drift by 2e-3
    A = wl.Csr((np.full(n, 0.1, dtype), np.arange(n), [0, n]), (1, n), executor=on)
    true, x = float(np.float32(0.1)) * n, np.ones((n, columns), dtype)
    for B in (A.asformat(format), A.T.asformat(format).T):
        np.testing.assert_allclose(on.to_host(B @ x), np.full((1, columns), true), rtol=1e-5)
        np.testing.assert_allclose(on.to_host(B @ x[:, 0].copy()), [true], rtol=1e-5)


@pytest.mark.parametrize("format", ["csr", "coo", "ell", "sellp", "hybrid", "bsr"])
def test_products_with_long_and_short_rows(on: wl.Executor, format: str) -> None:
    rng, n = np.random.default_rng(0), 3000
    S = sp.random_array((n, n), density=1e-3, rng=rng, format="lil", dtype="float32")
    for row in (0, 5, 1900):
        S[row, :] = rng.standard_normal(n)
    A, x = wl.Csr(sp.csr_array(S), executor=on), rng.standard_normal((n, 5))
    x = x.astype("float32")
    found = on.to_host(A.asformat(format) @ x)
    np.testing.assert_allclose(found, sp.csr_array(S).astype(float) @ x, rtol=1e-6, atol=2e-4)


def test_rows_with_an_infinite_entry_stay_infinite(on: wl.Executor) -> None:
    data = np.ones(10_000, "float32")
    data[4000] = np.inf
    A = wl.Csr((data, np.arange(10_000), [0, 10_000]), (1, 10_000), executor=on)
    for format in FORMATS:
        assert on.to_host(A.asformat(format) @ np.ones(10_000, "float32"))[0] == np.inf


def test_products_with_the_transpose_of_long_columns(on: wl.Executor) -> None:
    n, true = 200_000, float(np.float32(0.1)) * 200_000
    tall = wl.Csr((np.full(n, 0.1, "float32"), np.zeros(n, int), np.arange(n + 1)), (n, 2))
    T = tall.to(on).lean().T
    for x in (np.ones(n, "float32"), np.ones((n, 3), "float32")):
        found = on.to_host(T @ x)
        np.testing.assert_allclose(found[0], np.full(x.shape[1:], true), rtol=1e-5)
        np.testing.assert_array_equal(found[1], np.zeros(x.shape[1:]))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_many_duplicates_of_one_place(on: wl.Executor, dtype: str) -> None:
    true, place = float(np.float32(0.1)) * N, np.zeros(N, int)
    values = np.full(N, 0.1, dtype)
    for A in (
        wl.Csr((values, (place, place)), (2, 2), executor=on),
        wl.Csc((values, (place, place)), (2, 2), executor=on),
        wl.Coo((values, (place, place)), (2, 2), executor=on).tocsr(),
    ):
        assert A.dtype == dtype
        np.testing.assert_allclose(on.to_host(A.data), [true], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_duplicates_of_one_place_in_a_dense_array(on: wl.Executor, dtype: str) -> None:
    true, values = float(np.float32(0.1)) * N, np.full(N, 0.1, dtype)
    A = wl.Csr((values, np.zeros(N, int), [0, N]), (1, 1), executor=on)
    for B in (A, A.asformat("coo"), A.stored("float16") if dtype == "float32" else A):
        share = 1.0 if B.format != "stored" else float(np.float16(0.1)) / float(np.float32(0.1))
        np.testing.assert_allclose(B.to_dense()[0, 0], true * share, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_sparse_products_with_long_rows(on: wl.Executor, dtype: str) -> None:
    n = 200_000
    A = wl.Csr((np.full(n, 0.1, dtype), np.arange(n), [0, n]), (1, n), executor=on)
    ones = wl.Csr((np.ones(n, dtype), np.zeros(n, int), np.arange(n + 1)), (n, 1), executor=on)
    made, true = A @ ones, float(np.float32(0.1)) * n
    assert made.dtype == dtype
    np.testing.assert_allclose(made.to_dense(), [[true]], rtol=1e-6)
    identity = wl.sparse.eye(n, dtype=dtype, format="csr", executor=on)
    np.testing.assert_allclose(wl.galerkin(ones, identity).to_dense(), [[n]], rtol=1e-6)
