"""Masks of intervals: their positions, and their behavior as operators."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import (
    InvalidArgument,
    InvalidMatrix,
    ShapeMismatch,
    UnsupportedOperation,
)
from wollemi.masks import Mask, causal, documents, intervals, sliding_window

counts = st.integers(0, 12)


@st.composite
def masks(draw: Any, rows: int | None = None, columns: int | None = None) -> Mask:
    """Return a mask of ends that never fall; rows may be empty."""
    m = draw(counts) if rows is None else rows
    n = draw(counts) if columns is None else columns
    ends = st.lists(st.integers(0, n), min_size=m, max_size=m).map(sorted)
    index = draw(st.sampled_from(["int32", "int64"]))
    return Mask(*(np.array(draw(ends), index) for _ in range(2)), n)


def places(m: int, n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the rows and columns of all positions."""
    return np.mgrid[:m, :n][0], np.mgrid[:m, :n][1]


@given(n=counts, m=st.none() | counts, offset=st.integers(-15, 15))
def test_causal(n: int, m: int | None, offset: int) -> None:
    i, j = places(n, n if m is None else m)
    np.testing.assert_array_equal(causal(n, m, offset=offset).to_dense(), j <= i + offset)


@given(n=counts, window=st.integers(0, 15))
def test_windows(n: int, window: int) -> None:
    i, j = places(n, n)
    near = np.abs(i - j) < window
    np.testing.assert_array_equal(sliding_window(n, window).to_dense(), near & (j <= i))
    np.testing.assert_array_equal(sliding_window(n, window, causal=False).to_dense(), near)
    both = sliding_window(n, window, causal=False) & causal(n)
    np.testing.assert_array_equal(both.to_dense(), sliding_window(n, window).to_dense())


@given(lengths=st.lists(st.integers(0, 5), max_size=5), is_causal=st.booleans())
def test_documents(lengths: list[int], is_causal: bool) -> None:
    which = np.repeat(np.arange(len(lengths)), lengths)
    expected = which[:, None] == which
    i, j = places(*expected.shape)
    if is_causal:
        expected = expected & (j <= i)
    np.testing.assert_array_equal(documents(lengths, causal=is_causal).to_dense(), expected)


@given(mask=masks())
def test_it_is_the_matrix_of_its_entries(mask: Mask) -> None:
    dense = mask.to_dense()
    entries = mask.tocsr()
    assert dense.shape == mask.shape == entries.shape
    assert mask.nnz == entries.nnz == np.count_nonzero(dense)
    np.testing.assert_array_equal(entries.to_dense(), dense)
    np.testing.assert_array_equal(mask.to_scipy().toarray(), dense)
    np.testing.assert_array_equal(mask.asformat("csc").to_dense(), dense)
    np.testing.assert_array_equal(mask.indptr, entries.indptr)
    assert sp.csr_array(entries.to_scipy()).has_canonical_format
    assert mask.index_dtype == entries.index_dtype


@given(mask=masks(), data=st.data())
def test_transposes_and_intersections_are_masks(mask: Mask, data: Any) -> None:
    turned = mask.T
    assert isinstance(turned, Mask)
    np.testing.assert_array_equal(turned.to_dense(), mask.to_dense().T)
    np.testing.assert_array_equal(turned.T.to_dense(), mask.to_dense())
    assert mask.T is turned
    other = data.draw(masks(*mask.shape))
    both = mask & other
    assert isinstance(both, Mask)
    np.testing.assert_array_equal(both.to_dense(), mask.to_dense() * other.to_dense())


@given(mask=masks(), k=st.none() | st.integers(0, 3), dtype=st.sampled_from("fdFD"))
def test_products(mask: Mask, k: int | None, dtype: str) -> None:
    rng = np.random.default_rng(0)
    shape = mask.shape[1:] if k is None else (mask.shape[1], k)
    x = rng.standard_normal(shape).astype(dtype)
    y = mask @ x
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y, mask.to_dense() @ x, rtol=1e-5, atol=1e-5)
    out = rng.standard_normal(y.shape).astype(dtype)
    expected = 2 * (mask.to_dense() @ x) + 3 * out
    mask.apply(x, out, alpha=2, beta=3)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_infinities_stay_in_rows_that_have_them() -> None:
    x = np.array([np.inf, 1.0, 2.0, np.nan])
    np.testing.assert_array_equal(sliding_window(4, 2) @ x, [np.inf, np.inf, 3.0, np.nan])


def test_an_operator_among_others() -> None:
    mask = causal(3)
    A = wl.Csr(np.diag([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal((mask @ A).to_dense(), mask.to_dense() @ A.to_dense())
    np.testing.assert_array_equal((A + mask).to_dense(), A.to_dense() + mask.to_dense())
    np.testing.assert_array_equal((2.0 * mask) @ np.ones(3), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(mask.diagonal(), [1.0, 1.0, 1.0])
    assert repr(mask.to("reference")) == "<Mask 3x3 float32/int32 nnz=6 on reference>"


@given(mask=masks())
def test_pickles_and_copies_of_another_dtype(mask: Mask) -> None:
    copied = pickle.loads(pickle.dumps(mask))
    np.testing.assert_array_equal(copied.to_dense(), mask.to_dense())
    assert copied.executor == mask.executor
    assert copied.index_dtype == mask.index_dtype
    wide = mask.astype("float64")
    assert wide.dtype == wide.T.dtype == wide.tocsr().dtype == np.float64
    assert wide.first is mask.first
    assert mask.astype("float32") is mask
    assert mask.astype("float16").tocsr().dtype == np.float16


def test_it_goes_where_others_are() -> None:
    mask = causal(3)
    there = mask.to("reference")
    assert there.executor.name == "reference"
    assert there.to("reference") is there
    assert (mask & there).executor.name == "reference"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mask([0, 2, 1], [3, 3, 3], 3), InvalidMatrix, "first: falls from 2 to 1 at row 2"),
        (lambda: Mask([0, 0], [2, 1], 3), InvalidMatrix, "last: falls"),
        (lambda: Mask([0], [4], 3), InvalidMatrix, "last: expected columns from 0 to 3"),
        (lambda: Mask([-1], [2], 3), InvalidMatrix, "first: expected columns"),
        (lambda: Mask([0, 0], [1], 3), InvalidMatrix, "lengths disagree"),
        (lambda: Mask([0.5], [1], 3), InvalidMatrix, "expected integers"),
        (lambda: Mask([[0]], [[1]], 3), InvalidMatrix, "expected 1 dimension"),
        (lambda: causal(-1), InvalidArgument, "n: expected an integer of at least 0"),
        (lambda: causal(2.5), InvalidArgument, "n: expected an integer"),
        (lambda: causal(3, offset=0.5), InvalidArgument, "offset: expected an integer"),
        (lambda: sliding_window(3, -1), InvalidArgument, "window: expected an integer"),
        (lambda: documents([2, -1]), InvalidArgument, "lengths: expected integers"),
        (lambda: documents([0.5]), InvalidArgument, "lengths"),
        (lambda: intervals(0, 3, 3), InvalidMatrix, "one of them is an array"),
        (lambda: causal(3) & causal(4), ShapeMismatch, "&"),
        (lambda: causal(3) | causal(4), ShapeMismatch, "shapes"),
        (lambda: causal(3).plan_for("fusedmm", 8), UnsupportedOperation, "tocsr"),
        (lambda: wl.spmm(causal(3), np.ones((3, 2))), UnsupportedOperation, "tocsr"),
        (lambda: wl.sddmm(causal(3), np.ones((3, 2)), np.ones((3, 2))), UnsupportedOperation, "6"),
        (lambda: setattr(causal(3), "first", [0]), InvalidArgument, "make a new"),
    ],
)
def test_what_is_wrong_is_said(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("name", ["indices", "sum", "permute"])
def test_what_works_on_entries_is_with_the_matrix(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"A\.tocsr\(\)\.{name}"):
        getattr(causal(3), name)
    assert not hasattr(causal(3), "nothing")


def test_others_may_not_be_intersected() -> None:
    with pytest.raises(TypeError):
        causal(3) & np.ones((3, 3))
    with pytest.raises(TypeError):
        causal(3) | 1


def test_one_number_serves_for_all_rows() -> None:
    np.testing.assert_array_equal(
        intervals(0, np.array([1, 3, 3]), 4).to_dense(), [[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    )
    assert intervals([1, 2], 4, 4).nnz == 5


def test_a_mask_takes_the_memory_of_its_ends() -> None:
    n = 1 << 20
    mask = causal(n) & sliding_window(n, n // 2) & documents([n - 5, 0, 5])
    assert mask.nbytes == mask.T.nbytes == 8 * n
    assert mask.nnz > 1 << 38
    assert mask.indptr[-1] == mask.T.indptr[-1] == mask.nnz
