"""Awkward matrices here and in SciPy, and comparisons of all kinds of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.formats.sparse_vector import SparseVector

FORMATS = ("csr", "csc", "coo", "bsr", "ell", "sellp", "hybrid", "dense")
FLOATS = ("float32", "float64", "complex64", "complex128")
EXACT = ("bool", "int32", "int64")
DTYPES = (*FLOATS, *EXACT)
KINDS = ("plain", "duplicates", "unsorted", "zeros", "empty rows", "full", "none")


def coordinates(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Any:
    """Return rows and columns of entries of one kind."""
    m, n = shape
    if kind == "none" or m * n == 0:
        return np.zeros(0, int), np.zeros(0, int)
    if kind == "full":
        return tuple(a.ravel() for a in np.indices(shape))
    count = max(m * n // 3, 1)
    row, col = np.divmod(rng.choice(m * n, count, replace=kind == "duplicates"), n)
    if kind == "empty rows":
        row = row // 2 * 2
        row, col = np.divmod(np.unique(row * n + col), n)
    if kind not in ("unsorted", "duplicates"):
        row, col = np.divmod(np.sort(row * n + col), n)
    return row, col


def values(dtype: Any, count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return few different numbers of either sign, so that equal ones occur."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(count) < 0.8
    made = rng.choice([-3, -2, -1, 1, 2, 3], count).astype(dtype)
    parts = 1j * rng.integers(-1, 2, count) if dtype.kind == "c" else 0
    return (made + parts).astype(dtype)


def sample(
    on: wl.Executor,
    kind: str = "plain",
    format: str = "csr",
    dtype: Any = "float64",
    shape: tuple[int, int] = (6, 8),
    seed: int = 0,
    index: str = "int32",
) -> tuple[wl.Matrix, sp.csr_array]:
    """Return a matrix of ours and SciPy's of the same entries."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    row, col = coordinates(kind, shape, rng)
    data = values(dtype, row.size, rng)
    if kind == "zeros":
        data[::2] = 0
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(shape[0] + 1)).astype(index)
    arrays = (data[order], col[order].astype(index), indptr)
    S = sp.csr_array(arrays, shape=shape)
    made = wl.Csr._from_arrays(on, shape, *(on.from_host(array.copy()) for array in arrays))
    return made.asformat(format), S


def dense(result: Any) -> Any:
    """Return any result as an array of NumPy."""
    if isinstance(result, (wl.Matrix, SparseVector)):
        return result.to_dense()
    if sp.issparse(result):
        return result.toarray()
    for name in ("get", "asnumpy"):
        if hasattr(result, name) and not isinstance(result, np.ndarray):
            return np.asarray(getattr(result, name)())
    return np.asarray(result)


def assert_same(on: wl.Executor, have: Any, want: Any, dtype: Any = True) -> None:
    """Compare two results; ``dtype`` is the expected one, or True for that of SciPy's."""
    if isinstance(have, (wl.Matrix, SparseVector)):
        assert have.executor == on
    have, want = dense(have), dense(want)
    assert have.shape == want.shape
    np.testing.assert_allclose(have, want, rtol=2e-5 if have.dtype.itemsize <= 8 else 1e-12)
    if dtype is True:
        dtype = want.dtype
    if dtype is not None:
        assert have.dtype == dtype
