"""Matrices for products with dense ones, and the expected results."""

from __future__ import annotations

from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.dtypes import ML_DTYPES

from .needs import package

UNITS = 10
EDGES = (None, "scaled", "sigmoid", "softmax")


def dtype_called(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        return np.dtype(package("ml_dtypes").bfloat16)
    return np.dtype(name)


def eps(dtype: np.dtype[Any]) -> float:
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype.name) or np.finfo(dtype).eps


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    real = rng.uniform(-1, 1, shape)
    return (real + 1j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else real).astype(dtype)


def wide(array: Any) -> Any:
    return np.asarray(array).astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def pattern(rng: np.random.Generator, m: int, n: int, mean: float, skew: bool) -> Any:
    """Return indices and indptr, unsorted and with entries that come twice."""
    lengths = rng.poisson(mean, m) if n else np.zeros(m, int)
    if skew and m and n:
        lengths[rng.integers(m)] += 40 * int(mean + 1)
    return rng.integers(0, max(n, 1), lengths.sum()), np.concatenate([[0], lengths.cumsum()])


def matrix(rng, m, n, mean, skew, dtype, index, executor, ordered=False) -> wl.Csr:
    indices, indptr = pattern(rng, m, n, mean, skew)
    if ordered:
        for i in range(m):
            indices[indptr[i] : indptr[i + 1]].sort()
    data = numbers(rng, indices.shape, dtype)
    arrays = (data, indices.astype(index), indptr.astype(index))
    return wl.Csr(arrays, shape=(m, n), executor=executor)


def rows_of(A: wl.Csr) -> Any:
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def added_up(A: wl.Csr, entries: Any) -> Any:
    total = np.zeros((A.shape[0], *entries.shape[1:]), entries.dtype)
    np.add.at(total, rows_of(A), entries)
    return total


def host(executor: wl.Executor, array: Any) -> Any:
    return executor.to_host(array) if executor.owns(array) else np.asarray(array)


def assert_near(got: Any, want: Any, size: Any, dtype: np.dtype[Any], terms: int = 0) -> None:
    """Fail unless errors are at most ten ulps of the summed terms.

    Equal terms round alike: a sum of n of them, one after the other, loses n / 4 units.
    """
    assert got.shape == want.shape
    assert got.dtype == dtype
    # a 16-bit result is rounded once; its sums are in float32
    added = terms / 4 * eps(np.dtype(np.float32) if dtype.name in ML_DTYPES else dtype)
    allowed = (UNITS * eps(dtype) + added) * (np.abs(size) + eps(dtype))
    assert (np.abs(wide(got) - want) <= allowed).all()


def longest(A: wl.Csr) -> int:
    return int(np.diff(A.indptr).max(initial=0))


def softmax(A: wl.Csr, s: Any) -> Any:
    largest = np.full(A.shape[0], -np.inf)
    np.maximum.at(largest, rows_of(A), s)
    powers = np.exp(s - largest[rows_of(A)])
    return powers / added_up(A, powers)[rows_of(A)]


def weigh(A: wl.Csr, edge: str | None, s: Any) -> Any:
    if edge == "sigmoid":
        return 1 / (1 + np.exp(-s))
    return softmax(A, s) if edge == "softmax" else s
