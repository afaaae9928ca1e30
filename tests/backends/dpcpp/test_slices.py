"""Matrices of very unequal rows are multiplied on CPU devices from a copy in slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp

#: Of a matrix that is large enough to be shared, and no multiple of a slice.
ROWS, COLUMNS = 3001, 2000


@pytest.fixture(scope="module")
def device() -> wl.Executor:
    return wl.executor("dpcpp:cpu")


def unequal_rows(dtype: str) -> sp.csr_array:
    """Return a matrix with a few long rows, many short ones and some without entries."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 6, ROWS)
    lengths[rng.choice(ROWS, 100, replace=False)] = rng.integers(200, 500, 100)
    lengths[-20:] = 0
    indices = np.concatenate([rng.choice(COLUMNS, n, replace=False) for n in lengths])
    data = rng.uniform(0.5, 1.5, lengths.sum()).astype(dtype)
    return sp.csr_array((data, indices, np.append(0, np.cumsum(lengths))), (ROWS, COLUMNS))


def some(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(6).uniform(0.5, 1.5, shape).astype(dtype)


def check(S: Any, x: Any, y: Any, got: Any, alpha: float, beta: float) -> None:
    wide = np.result_type(S.dtype, np.float64)
    expected = alpha * (S.astype(wide) @ x.astype(wide)) + beta * y
    np.testing.assert_allclose(got, expected, rtol=600 * np.finfo(S.dtype).eps)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("shape", [(COLUMNS,), (COLUMNS, 1), (COLUMNS, 3)])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_are_right(device: Any, dtype: str, index: str, shape: Any, beta: float) -> None:
    S = unequal_rows(dtype)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    A = wl.Csr(S, executor=device)
    assert A.plan.kernel == "sell"
    x, y = some(shape, dtype), some((ROWS, *shape[1:]), dtype)
    out = device.from_host(y)
    A.apply(device.from_host(x), out=out, alpha=2.0, beta=beta)
    check(S, x, y, device.to_host(out), 2.0, beta)


def test_vectors_may_have_gaps(device: Any) -> None:
    S = unequal_rows("float64")
    A = wl.Csr(S, executor=device)
    x, y = some((COLUMNS, 1), "float64"), some((ROWS, 1), "float64")
    wide_x, wide_y = device.zeros((COLUMNS, 3), "float64"), device.zeros((ROWS, 2), "float64")
    wide_x[:, 1:2], wide_y[:, :1] = x, y
    A.apply(wide_x[:, 1:2], out=wide_y[:, :1], beta=1.0)
    check(S, x, y, device.to_host(wide_y)[:, :1], 1.0, 1.0)
    assert not device.to_host(wide_y)[:, 1].any()


def test_new_values_reach_the_copy(device: Any) -> None:
    S = unequal_rows("float32")
    A = wl.Csr(S, executor=device)
    x = some((COLUMNS,), "float32")
    A @ x
    A.update_values(device.from_host(3 * S.data))
    np.testing.assert_allclose(A @ x, 3 * (S @ x), rtol=1e-5)


def test_padding_is_never_read(device: Any) -> None:
    S = unequal_rows("float64")
    x = some((COLUMNS,), "float64")
    x[0], x[7] = np.inf, np.nan
    A = wl.Csr(S, executor=device)
    np.testing.assert_array_equal(np.isfinite(A @ x), np.isfinite(S @ x))


def test_a_row_that_others_would_wait_for_is_cut_instead(device: Any) -> None:
    S = unequal_rows("float64").tolil()
    S[5] = 1.0
    assert wl.Csr(sp.csr_array(S), executor=device).plan.kernel == "row-blocks"
