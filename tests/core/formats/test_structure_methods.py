"""Triangles, shapes, positions and diagonals are SciPy's, on every executor."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import (
    CaptureRefused,
    InvalidArgument,
    InvalidMatrix,
    ShapeMismatch,
    UnsupportedDtype,
)

from .scipy_arrays import DTYPES, FORMATS, KINDS, assert_same, sample

#: Every dtype and every format, in pairs.
BOTH = list(zip((*DTYPES, "int32"), FORMATS, strict=True))
EDGES = (-9, -6, -1, 0, 1, 7, 8, 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "format"), BOTH)
def test_triangles(on, kind, dtype, format):
    A, S = sample(on, kind, format, dtype)
    for k in EDGES:
        assert_same(on, A.tril(k), np.tril(S.toarray(), k))
        assert_same(on, A.triu(k), np.triu(S.toarray(), k))


@pytest.mark.parametrize("shape", [(4, 12), (12, -1), (-1, 1), (1, 48), (48,), (-1,), (6, 8)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_shapes(on, shape, order):
    for dtype, format in BOTH:
        A, S = sample(on, "duplicates", format, dtype)
        want = S.toarray().reshape(shape, order=order)
        assert_same(on, A.reshape(shape, order=order), want)
        assert_same(on, A.reshape(*shape, order=order), want)


@pytest.mark.parametrize("shape", [(5, 9), (-1, 7), (-1, -1), (2, 3, 8), (0, -1), (-2, 8)])
def test_shapes_that_do_not_fit(on, shape):
    A, _ = sample(on)
    with pytest.raises((ShapeMismatch, InvalidArgument), match="reshape"):
        A.reshape(shape)


@pytest.mark.parametrize("shape", [(3, 4), (9, 12), (6, 2), (2, 20), (0, 0), (7, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_another_size_in_place(on, shape, kind):
    format = FORMATS[KINDS.index(kind)]
    A, S = sample(on, kind, format)
    D = np.zeros(shape)
    m, n = np.minimum(shape, S.shape)
    D[:m, :n] = S.toarray()[:m, :n]
    A @ np.ones(8)
    A.resize(*shape)
    assert_same(on, A, D)
    assert A.format == format
    np.testing.assert_allclose(A @ np.ones(shape[1]), D.sum(axis=1))


@pytest.mark.parametrize("k", [-5, -1, 0, 2, 7])
@pytest.mark.parametrize("values", [3, [1, 2], np.arange(1.0, 12.0), [], 0], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_diagonal_is_set(on, k, values, dtype, kind):
    A, S = sample(on, kind, dtype=dtype)
    D = S.toarray()
    length = min(6 + min(k, 0), 8 - max(k, 0))
    new = np.full(length, values) if np.ndim(values) == 0 else np.asarray(values)[:length]
    rows = np.arange(new.size) + max(-k, 0)
    D[rows, rows + k] = new
    A.setdiag(values, k)
    assert_same(on, A, D)


def test_a_diagonal_that_is_set_changes_products_and_transposes(on):
    A, S = sample(on, shape=(6, 6))
    A @ np.ones(6), A.T @ np.ones(6)
    A.setdiag(5.0)
    S = sp.lil_array(S)
    S.setdiag(5.0)
    np.testing.assert_allclose(A @ np.ones(6), S @ np.ones(6))
    np.testing.assert_allclose(A.T @ np.ones(6), S.T @ np.ones(6))


def test_diagonals_that_do_not_fit(on):
    A, _ = sample(on)
    for k in (8, -6, 0.5):
        with pytest.raises(InvalidArgument, match="setdiag"):
            A.setdiag(1.0, k)
    with pytest.raises(InvalidMatrix, match="complex"):
        A.setdiag(1j)
    with pytest.raises(ShapeMismatch, match="setdiag"):
        A.setdiag(np.ones((2, 2)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "format"), BOTH)
def test_positions_of_nonzeros(on, dtype, kind, format):
    A, S = sample(on, kind, format, dtype)
    found = A.nonzero()
    assert all(on.owns(part) for part in found)
    for have, want in zip(found, np.nonzero(S.toarray()), strict=True):
        assert_same(on, have, want, None)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("kind", KINDS)
def test_positions_of_extremes(on, name, axis, dtype, kind):
    for seed in range(4):
        A, S = sample(on, kind, dtype=dtype, seed=seed)
        want = getattr(np, name)(S.toarray(), axis=axis)
        assert_same(on, getattr(A, name)(axis=axis), want, None)
        if dtype != "bool":
            want = getattr(np, name)(-S.toarray(), axis=axis)
            assert_same(on, getattr(-A, name)(axis=axis), want, None)


def test_positions_of_extremes_go_where_they_are_asked(on):
    A, S = sample(on, dtype="float64")
    out = np.zeros(6, np.int64)
    assert A.argmax(1, out) is out
    np.testing.assert_array_equal(out, np.argmax(S.toarray(), 1))
    with pytest.raises(ShapeMismatch, match="shape"):
        A.argmin(1, np.zeros(7, np.int64))
    assert A[0].argmax(0, None) == int(np.argmax(S.toarray()[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_statements_about_the_order_of_entries(on, kind, format):
    A, _ = sample(on, kind, format)
    want = on.to_host(A.to_dense())
    if not A.has_canonical_format:
        with pytest.raises(InvalidArgument, match="sum_duplicates"):
            A.has_canonical_format = True
    if format != "coo":
        A.sort_indices()
        assert A.has_sorted_indices
        A.has_sorted_indices = True
    A.sum_duplicates()
    assert A.has_canonical_format
    A.has_canonical_format = True
    np.testing.assert_array_equal(on.to_host(A.to_dense()), want)


def test_blocks_are_sorted_in_place(on):
    S = sp.bsr_array((np.arange(12.0).reshape(3, 2, 2), [1, 0, 0], [0, 3]), shape=(2, 4))
    A = wl.Bsr(S, executor=on)
    assert not A.has_sorted_indices
    A.sort_indices()
    assert A.has_sorted_indices and not A.has_canonical_format
    np.testing.assert_array_equal(on.to_host(A.indices), [0, 0, 1])
    np.testing.assert_array_equal(on.to_host(A.to_dense()), S.toarray())


def test_copies_where_they_are_asked_for(on):
    A, _ = sample(on)
    for same, other in (
        (A.asformat("csr"), A.asformat("csr", copy=True)),
        (A.conj(), A.conj(copy=True)),
        (A.astype(float), A.astype(float, copy=True, casting="safe")),
    ):
        assert same is A and other is not A and other.data is not A.data
    with pytest.raises(UnsupportedDtype, match="same_kind"):
        A.astype(int, casting="same_kind")


def test_nan_is_an_extreme(on):
    D = np.array([[1.0, np.nan, 2.0], [0.0, 3.0, np.nan], [0.0, -1.0, 0.0]])
    A = wl.Csr(D, executor=on)
    for name in ("argmax", "argmin"):
        for axis in (None, 0, 1):
            assert_same(on, getattr(A, name)(axis=axis), getattr(np, name)(D, axis=axis), None)


def test_extremes_of_stored_entries_alone(on):
    A, S = sample(on, "full")
    negative = -abs(A)
    assert negative.argmax(explicit=True) == int(np.argmax(-abs(S.toarray())))
    A, _ = sample(on, "empty rows")
    with pytest.raises(InvalidArgument, match="explicit"):
        A.argmax(axis=1, explicit=True)


def test_extremes_of_nothing(on):
    A, _ = sample(on, "none", shape=(0, 4))
    for axis in (None, 0):
        with pytest.raises(InvalidArgument, match="nothing to compare"):
            A.argmax(axis=axis)


def test_names_of_the_array_interface(on):
    A, S = sample(on)
    assert_same(on, A.mT, S.T)
    assert A.size == A.nnz == S.nnz
    assert A.device == getattr(A.data, "device", on.name)
    assert A.asformat("hybrid").device == A.device


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_refused_in_a_capture_before_any_work(monkeypatch, on, name, axis):
    def refuse(self, reason):
        raise CaptureRefused(reason)

    for format in FORMATS:
        A, _ = sample(on, format=format)
        with monkeypatch.context() as patch:
            patch.setattr(type(on), "refuse_host", refuse)
            patch.setattr(type(on), "run", lambda *a, **k: pytest.fail("work before the refusal"))
            with pytest.raises(CaptureRefused, match="reads numbers back"):
                getattr(A, name)(axis=axis)
