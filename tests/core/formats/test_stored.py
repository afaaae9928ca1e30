"""Matrices with values stored in a lower precision than they compute in."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

DENSE = np.array([[4.0, 0.1, 0.0], [0.2, 3.0, 0.7], [0.0, 0.3, 5.0]])


def matrix(dtype: str = "float64", stored: str = "float32") -> Any:
    values = DENSE * (1 + 0.1j) if dtype.startswith("complex") else DENSE
    return wl.Csr(values.astype(dtype), executor="reference").stored(stored)


@pytest.fixture(params=[("float64", "float32"), ("float32", "bfloat16"), ("complex128", "float32")])
def A(request: pytest.FixtureRequest) -> Any:
    return matrix(*request.param)


def test_it_computes_in_one_dtype_and_stores_another() -> None:
    A = matrix("float64", "bfloat16")
    assert (A.dtype, A.storage_dtype) == (np.dtype("float64"), np.dtype("bfloat16"))
    assert A.data.dtype == A.storage_dtype
    assert (A @ np.ones(3)).dtype == np.float64
    assert A.nbytes == 2 * A.nnz + 4 * A.nnz + 4 * 4
    assert repr(A) == ("<StoredCsr 3x3 float64 stored in bfloat16/int32 nnz=7 on reference>")
    assert "StoredCsr" in A._repr_html_()


def test_products_are_those_of_the_rounded_values(A: Any) -> None:
    exact = A.tocsr()
    assert type(exact) is wl.Csr and exact.dtype == A.dtype
    np.testing.assert_array_equal(exact.data, A.data.astype(A.dtype))
    assert not np.array_equal(exact.to_dense(), DENSE.astype(A.dtype))
    x = np.linspace(1, 2, 6).reshape(3, 2).astype(A.dtype)
    for mine, its in ((A, exact), (A.T, exact.T), (A.H, exact.H), (A.conj(), exact.conj())):
        assert mine.storage_dtype == A.storage_dtype
        np.testing.assert_allclose(mine @ x, its @ x, rtol=1e-6)
        np.testing.assert_array_equal(mine @ x[:, 0], (its @ x)[:, 0])
    assert A.T.T is A


def test_all_else_is_that_of_the_matrix_in_full(A: Any) -> None:
    exact, dense = A.tocsr(), A.to_dense()
    B = wl.Csr(np.eye(3).astype(A.dtype), executor="reference")
    found = {
        "sum": (A + B, exact + B),
        "product": (A @ B, exact @ B),
        "scaled": (2.5 * A, 2.5 * exact),
        "negative": (-A, -exact),
        "absolute": (abs(A), abs(exact)),
        "rows": (A[:2], exact[:2]),
        "power": (A.power(2), exact.power(2)),
        "coo": (A.tocoo(), exact.tocoo()),
        "ell": (A.asformat("ell"), exact.asformat("ell")),
        "permuted": (A.permute([2, 0, 1]), exact.permute([2, 0, 1])),
    }
    for name, (have, want) in found.items():
        assert have.dtype == want.dtype, name
        np.testing.assert_array_equal(have.to_dense(), want.to_dense(), err_msg=name)
    np.testing.assert_array_equal(A.diagonal(), np.diag(dense))
    np.testing.assert_array_equal(A.sum(axis=1), exact.sum(axis=1))
    assert A.trace() == exact.trace() and A[1, 2] == exact[1, 2]
    assert isinstance(A.to_scipy(), sp.csr_array) and A.to_scipy().dtype == A.dtype
    np.testing.assert_array_equal(
        wl.spmm(A, np.eye(3, dtype=A.dtype)) if A.dtype.kind == "f" else dense, dense
    )


def test_it_is_copied_pickled_and_moved_as_it_is(A: Any) -> None:
    for other in (pickle.loads(pickle.dumps(A)), A.copy(), A.to("omp"), A.with_kernel("entries")):
        assert (other.dtype, other.storage_dtype) == (A.dtype, A.storage_dtype)
        np.testing.assert_array_equal(np.asarray(other.data), np.asarray(A.data))
    assert not np.shares_memory(A.copy().data, A.data)


def test_another_dtype_keeps_the_storage_if_it_is_lower() -> None:
    A = matrix("float64", "bfloat16")
    assert A.astype("float64") is A
    lower = A.astype("float32")
    assert (lower.dtype, lower.storage_dtype) == (np.dtype("float32"), A.storage_dtype)
    assert matrix("float64", "float32").astype("float32").format == "csr"
    assert A.astype("complex128").format == "csr"
    x = np.ones(3) * 1j
    np.testing.assert_allclose(A @ x, A.tocsr() @ x)
    assert matrix().stored("float64").format == "csr"
    assert matrix().stored("float16").storage_dtype == np.float16


def test_new_values_are_rounded_and_reach_what_was_made(A: Any) -> None:
    transpose, same = A.T, A.astype(A.dtype)
    values = np.arange(1, 8).astype(A.dtype) / 3
    A.update_values(values)
    np.testing.assert_array_equal(A.data, values.astype(A.storage_dtype))
    np.testing.assert_array_equal(transpose.to_dense(), A.to_dense().T)
    assert same is A
    A.data *= 2
    np.testing.assert_array_equal(transpose.to_dense(), A.to_dense().T)
    with pytest.raises(wl.errors.InvalidArgument, match=r"update the values of A.T"):
        transpose.update_values(values)


def test_what_it_was_made_of_keeps_its_values() -> None:
    full = wl.Csr(DENSE, executor="reference")
    A = full.stored("float32")
    full.update_values(np.zeros(7))
    assert A.to_dense().any()
    assert A.indices is full.indices  # the pattern is shared


def test_values_that_are_too_large_are_refused() -> None:
    full = wl.Csr(np.array([[7e4, 0.0], [1.0, np.inf]]), executor="reference")
    with pytest.raises(wl.errors.InvalidArgument, match=r"1 of 3 values .* float16.*7e\+04"):
        full.stored("float16")
    assert np.isinf(full.stored("bfloat16").to_dense()[1, 1])  # it was infinite before
    A = matrix("float64", "float16")
    before = A.data.copy()
    with pytest.raises(wl.errors.InvalidArgument, match="too large for float16"):
        A.update_values(np.full(7, 1e5))
    np.testing.assert_array_equal(A.data, before)


@pytest.mark.parametrize(
    ("dtype", "stored", "message"),
    [
        ("float32", "float64", r"one of float16, bfloat16; A.astype\('float64'\)"),
        ("float64", "int32", "one of float32, float16, bfloat16"),
        ("complex128", "float16", "one of complex64"),
        ("complex64", "float16", "no other dtype"),
        ("float64", "nonsense", "not a dtype"),
    ],
)
def test_a_storage_without_products_is_refused(dtype: str, stored: str, message: str) -> None:
    with pytest.raises(wl.errors.UnsupportedDtype, match=message):
        wl.Csr(np.eye(2).astype(dtype), executor="reference").stored(stored)


def test_what_there_is_not_says_what_to_do() -> None:
    with pytest.raises(wl.errors.UnsupportedOperation, match=r"A.tocsr\(\).stored\('float32'\)"):
        wl.Ell(DENSE, executor="reference").stored("float32")
    with pytest.raises(wl.errors.UnsupportedOperation, match=r"A\.tocsr"):
        matrix().plan_for("spmm", 3)
    with pytest.raises(wl.errors.InvalidArgument, match="no conversion to 'stored'"):
        wl.Csr(DENSE, executor="reference").asformat("stored")


@pytest.mark.parametrize(
    ("computed", "stored", "scale"),
    [
        ("float64", "float32", 1e-50),
        ("float64", "float32", 1e-42),
        ("float64", "bfloat16", 1e-50),
        ("float64", "float16", 1e-6),
        ("float32", "float16", 1e-6),
        ("complex128", "complex64", 1e-50),
    ],
)
def test_values_below_the_storage_are_refused(
    on: wl.Executor, computed: str, stored: str, scale: float
) -> None:
    A = wl.Csr((DENSE * scale).astype(computed), executor=on)
    with pytest.raises(wl.errors.InvalidArgument, match="scale the matrix"):
        A.stored(stored)
    made = wl.Csr(DENSE.astype(computed), executor=on).stored(stored)
    before = np.asarray(on.to_host(made.data)).copy()
    with pytest.raises(wl.errors.InvalidArgument, match="scale the matrix"):
        made.update_values(A.data)
    assert np.array_equal(np.asarray(on.to_host(made.data)), before)


def test_a_row_that_would_vanish_is_refused_and_single_values_are_not(on: wl.Executor) -> None:
    D = DENSE.copy()
    D[1] *= 1e-60
    with pytest.raises(wl.errors.InvalidArgument, match="row 1 becomes 0 in float32"):
        wl.Csr(D, executor=on).stored("float32")
    D = DENSE.copy()
    D[1, 0] = 1e-60
    assert wl.Csr(D, executor=on).stored("float32").to_dense()[1, 0] == 0
