"""Softmax of the entries of rows, the largest of named rows, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operations import products as operations

from .dense_products import dtype_called, eps, numbers, wide
from .with_emulated import executor_of, named_and_emulated

REFERENCE = wl.executor("reference")
KINDS = (("float32", "int32"), ("float64", "int64"), ("float16", "int32"), ("bfloat16", "int64"))
M, N, BATCH = 21, 17, 5
# Rows of no entry, of one, of fewer and more than a wave has lanes, and one for a whole block.
LENGTHS = {0: 40, 3: 1, 4: 200, 9: 1500, 20: 3}
COLUMNS = (0, 1, 5, 33, 130)


executors = pytest.fixture(
    params=named_and_emulated(operations.csr_softmax),
    ids=str,
)


@executors
def on(request: Any) -> Any:
    return executor_of(request.param)


def pattern(index: str) -> wl.Csr:
    """Return a pattern with rows of many lengths, unsorted, with duplicates."""
    rng = np.random.default_rng(3)
    lengths = np.zeros(M, np.int64)
    lengths[list(LENGTHS)] = list(LENGTHS.values())
    indptr = np.concatenate([[0], lengths.cumsum()]).astype(index)
    indices = rng.integers(0, N, indptr[-1]).astype(index)
    return wl.Csr((np.ones(indices.size), indices, indptr), shape=(M, N), executor=REFERENCE)


def run(on: Any, operation: Any, A: wl.Csr, *arrays: np.ndarray[Any, Any]) -> Any:
    """Return the last array after the operation."""
    there = [on.from_host(x.copy()) for x in arrays]
    on.run(operation, A if on is REFERENCE else A.to(on), *there)
    return np.asarray(on.to_host(there[-1]))


def equals(rng: np.random.Generator, shape: tuple[int, ...], T: Any) -> np.ndarray[Any, Any]:
    """Return numbers of which many are equal, some infinite."""
    drawn = rng.integers(-2, 3, shape).astype(np.float32)
    drawn[rng.random(shape) < 0.05] = -np.inf
    return drawn.astype(T)


@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_softmax(on: Any, dtype: str, index: str) -> None:
    T, A, rng = dtype_called(dtype), pattern(index), np.random.default_rng(0)
    s = numbers(rng, (BATCH, A.nnz), T)
    s[1, :3] = -np.inf
    have, want = (wide(run(e, operations.csr_softmax, A, s)) for e in (on, REFERENCE))
    np.testing.assert_allclose(have, want, rtol=50 * eps(T), atol=eps(T) ** 2)
    sums = np.add.reduceat(have, A.indptr[:-1][np.diff(A.indptr) > 0], axis=1)
    assert (np.abs(sums - 1) <= 800 * eps(T)).all()


@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_gradient_of_softmax(on: Any, dtype: str, index: str) -> None:
    T, A, rng = dtype_called(dtype), pattern(index), np.random.default_rng(1)
    p = run(REFERENCE, operations.csr_softmax, A, numbers(rng, (BATCH, A.nnz), T))
    g = numbers(rng, (BATCH, A.nnz), T)
    have, want = (wide(run(e, operations.csr_softmax_backward, A, p, g)) for e in (on, REFERENCE))
    np.testing.assert_allclose(have, want, rtol=20 * eps(T), atol=50 * eps(T) * wide(p).max())


@pytest.mark.parametrize("k", COLUMNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_largest_rows(on: Any, dtype: str, index: str, k: int) -> None:
    T, A, rng = dtype_called(dtype), pattern(index), np.random.default_rng(k)
    B = numbers(rng, (2, N, k), T)
    if k:
        B[0, 2, 0], B[1, 5, k - 1] = -np.inf, np.nan
    C = np.full((2, M, k), 7.0).astype(T)
    have, want = (run(e, operations.csr_spmm_max, A, B, C) for e in (on, REFERENCE))
    np.testing.assert_array_equal(wide(have), wide(want))
    assert (wide(have)[:, np.diff(A.indptr) == 0] == 0).all()


@pytest.mark.parametrize("k", COLUMNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_sums_where_equal(on: Any, dtype: str, index: str, k: int) -> None:
    T, A, rng = dtype_called(dtype), pattern(index), np.random.default_rng(k)
    X, Y = equals(rng, (2, M, k), T), equals(rng, (2, N, k), T)
    G, Z = numbers(rng, (2, N, k), T), np.full((2, M, k), 7.0).astype(T)
    have, want = (
        wide(run(e, operations.csr_spmm_where_equal, A, X, Y, G, Z)) for e in (on, REFERENCE)
    )
    size = wide(run(REFERENCE, operations.csr_spmm_where_equal, A, X, Y, np.abs(G), Z))
    width = np.dtype(np.float32) if T.itemsize < 4 else T
    assert (np.abs(have - want) <= (1500 * eps(width) + eps(T)) * size).all()


def test_samples_of_blocks_may_be_any_distance_apart(on: Any) -> None:
    A, rng = pattern("int32"), np.random.default_rng(4)
    P, G = (rng.standard_normal((BATCH, A.nnz + gap)) for gap in (3, 1))
    p, g = on.from_host(P.copy()), on.from_host(G.copy())
    on.run(operations.csr_softmax, A.to(on), p[:, : A.nnz])
    on.run(operations.csr_softmax_backward, A.to(on), p[:, : A.nnz], g[:, : A.nnz])
    want = run(REFERENCE, operations.csr_softmax, A, P[:, : A.nnz])
    of_G = run(REFERENCE, operations.csr_softmax_backward, A, want, G[:, : A.nnz])
    for have, inside, before in ((p, want, P), (g, of_G, G)):
        found = np.asarray(on.to_host(have))
        np.testing.assert_allclose(found[:, : A.nnz], inside, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(found[:, A.nnz :], before[:, A.nnz :])


def test_operands_may_be_strided(on: Any) -> None:
    A, rng = pattern("int32"), np.random.default_rng(2)
    B = rng.standard_normal((N, 2, 6)).astype(np.float32)
    there = on.from_host(B).transpose(1, 0, 2)
    out = on.from_host(np.zeros((2, M, 6), np.float32))
    on.run(operations.csr_spmm_max, A.to(on), there, out)
    want = run(REFERENCE, operations.csr_spmm_max, A, B.transpose(1, 0, 2), np.zeros((2, M, 6)))
    np.testing.assert_array_equal(on.to_host(out), want.astype(np.float32))
