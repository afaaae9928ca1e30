"""Reductions with SciPy's arguments, and NumPy's functions of matrices, on every executor."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch, UnsupportedOperation

from .scipy_arrays import DTYPES, FORMATS, KINDS, assert_same, sample

#: Every dtype and every format, in pairs.
BOTH = list(zip((*DTYPES, "int32"), FORMATS, strict=True))

FUNCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "trace": np.trace,
    "diagonal": np.diagonal,
    "count_nonzero": np.count_nonzero,
    "transpose": np.transpose,
    "tril": np.tril,
    "triu": np.triu,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "format"), BOTH)
def test_functions_of_numpy_are_methods(on, name, dtype, format):
    A, S = sample(on, "unsorted", format, dtype)
    assert_same(on, FUNCTIONS[name](A), FUNCTIONS[name](S.toarray()))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2, (0, 1), (1,), (-1, 0)], ids=str)
def test_axes_are_those_of_numpy(on, name, axis):
    A, S = sample(on, "duplicates")
    assert_same(on, getattr(A, name)(axis=axis), getattr(S.toarray(), name)(axis=axis))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "argmax", "nanmin"])
def test_axes_that_there_are_not(on, name):
    A, _ = sample(on)
    with pytest.raises(ValueError, match="axis out of range"):
        getattr(A, name)(axis=2)
    with pytest.raises(TypeError, match="axis must be an integer"):
        getattr(A, name)(axis=1.5)
    with pytest.raises(InvalidArgument, match="twice"):
        getattr(A, name)(axis=(0, -2))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "nanmax", "nanmin"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_results_go_into_an_array_of_the_caller(on, name, axis):
    A, S = sample(on)
    want = getattr(np, name)(S.toarray(), axis=axis)
    out = np.zeros(want.shape)
    assert getattr(A, name)(axis=axis, out=out) is out
    np.testing.assert_allclose(out, want)
    with pytest.raises(ShapeMismatch, match="output parameter"):
        getattr(A, name)(axis=axis, out=np.zeros((1, 3)))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_stored_entries_alone_are_compared(on, name, dtype):
    D = np.array([[0, 3, -2], [0, 0, 5], [-7, 0, 0]], dtype)
    A = wl.Csr(sp.csr_array(D), executor=on)
    stored = np.ma.masked_equal(D, 0)
    for axis in (None, 0, 1):
        got = getattr(A, name)(axis=axis, explicit=True)
        assert_same(on, got, np.asarray(getattr(stored, name)(axis=axis)))


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_nan_is_left_out(on, name, kind, dtype):
    A, S = sample(on, kind, "csr", dtype)
    if dtype != "int32":
        S = S.tocsr()
        S.sum_duplicates()
        S.data[::3] = np.nan
        A = wl.Csr(S, executor=on)
    D = S.toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows of NaN alone
        for axis in (None, 0, 1):
            assert_same(on, getattr(A, name)(axis=axis), getattr(np, name)(D, axis=axis))
    full = wl.Csr(np.array([[np.nan, np.nan], [np.nan, 0.0]]), executor=on)
    np.testing.assert_array_equal(on.to_host(getattr(full, name)(axis=1)), [np.nan, 0.0])
    assert getattr(full, name)() == 0.0


@pytest.mark.parametrize(("dtype", "format"), BOTH)
def test_dense_arrays_and_copies(on, dtype, format):
    A, S = sample(on, "unsorted", format, dtype)
    D = S.toarray()
    for order in ("C", "F"):
        dense = A.toarray(order=order)
        np.testing.assert_array_equal(dense, D)
        assert dense.flags[f"{order}_CONTIGUOUS"]
    out = np.full_like(D, 1)
    assert A.todense(out=out) is out
    np.testing.assert_array_equal(out, D)
    with pytest.raises(ShapeMismatch, match="out"):
        A.toarray(out=np.zeros((1, 1)))
    for name in ("csr", "csc", "coo", "bsr"):
        B = getattr(A, f"to{name}")(copy=True)
        np.testing.assert_array_equal(B.toarray(), D)
        assert B is not A
    assert A.astype(A.dtype, copy=True) is not A
    assert A.astype(A.dtype) is A
    assert_same(on, A.transpose(axes=(1, 0), copy=True), D.T)
    with pytest.raises(ValueError, match="axes"):
        A.transpose(axes=0)


def test_one_entry_is_true_or_false(on):
    assert wl.Csr(np.array([[2.0]]), executor=on)
    assert not wl.Csr(np.array([[0.0]]), executor=on)
    with pytest.raises(ValueError, match="neither true nor false"):
        bool(wl.Csr(np.eye(2), executor=on))


def test_integers_stay_integers_and_booleans_have_no_negative(on):
    D = np.array([[3, 0], [-1, 2]], np.int32)
    A = wl.Csr(D, executor=on)
    assert (-A).dtype == np.int32
    np.testing.assert_array_equal((-A).toarray(), -D)
    with pytest.raises(UnsupportedOperation, match="booleans"):
        -A.astype(bool)
    with pytest.raises(InvalidArgument, match="negative powers"):
        A**-1
    with pytest.raises(UnsupportedOperation, match="number as the exponent"):
        A.power(D)


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64"])
def test_integers_and_booleans_have_no_fractions(on, name, dtype):
    A, S = sample(on, "unsorted", "csr", dtype)
    made = getattr(A, name)()
    assert made.dtype == dtype
    assert_same(on, made, S)
    made *= dtype == "bool" or 2
    assert_same(on, A, S)  # a copy


def test_a_dtype_that_no_matrix_has_is_scipys_error_and_numpys():
    A = wl.Csr(sp.eye_array(3))
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="U5"):
            A.astype("U5")


def test_statements_about_the_order_of_rows(on):
    A = wl.Csr(([1.0, 2.0], [1, 0], [0, 2]), shape=(1, 2), executor=on)
    A.has_sorted_indices = False
    with pytest.raises(InvalidArgument, match="sort_indices"):
        A.has_sorted_indices = True
    with pytest.raises(InvalidArgument, match="sum_duplicates"):
        A.has_canonical_format = True
    A.sort_indices()
    A.has_sorted_indices = A.has_canonical_format = True
    np.testing.assert_array_equal(A.toarray(), [[2.0, 1.0]])


@pytest.mark.parametrize("format", ["coo", "bsr"])
def test_zeros_are_taken_out_of_coordinates_and_blocks(on, format):
    D = np.array([[1.0, 0, 0, 0], [0, 2.0, 0, 0]])
    S = sp.csr_array(D)
    if format == "coo":
        A = wl.Coo(([1.0, 0.0, 2.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 4), executor=on)
    else:
        blocks = np.array([[[1.0, 0], [0, 2.0]], [[0.0, 0], [0, 0]]])
        A = wl.Bsr((blocks, [0, 1], [0, 2]), shape=(2, 4), executor=on)
    A.eliminate_zeros()
    assert A.nnz == {"coo": 2, "bsr": 4}[format]
    np.testing.assert_array_equal(A.toarray(), S.toarray())
    np.testing.assert_array_equal(A @ np.ones(4), D @ np.ones(4))


@pytest.mark.parametrize("format", ["csr", "lil", "dok", "dia", "coo"])
def test_a_matrix_of_scipy_on_the_left_of_a_comparison(on, format):
    A, S = sample(on)
    left = sp.csr_array(S.toarray()).asformat(format)
    for name in ("__eq__", "__ne__", "__lt__", "__ge__"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import operator

            compare = getattr(operator, name)
            assert_same(on, compare(left, 2 * A), compare(S.toarray(), 2 * S.toarray()))


@pytest.mark.parametrize("make", ["csr_array", "csc_array", "csr_matrix"])
def test_scipys_constructors_name_the_remedy(make):
    A = wl.Csr(np.eye(2))
    with pytest.raises(ValueError, match=r"unrecognized .*SciPy's functions take A.to_scipy\(\)"):
        getattr(sp, make)(A)
    assert f"{A}" == str(A)


def test_an_array_is_added_to_in_place():
    A, y = wl.Csr(np.array([[1.0, 0.0], [2.0, 3.0]])), np.ones((2, 2))
    same = y
    y += A
    y -= 2 * A
    assert same is y and y.tolist() == [[0.0, 1.0], [-1.0, -2.0]]
    with pytest.raises(TypeError, match="same_kind"):
        whole = np.ones((2, 2), int)
        whole += A


@pytest.mark.parametrize("format", ["lil", "dok", "dia"])
def test_formats_of_scipy_are_on_the_host(format):
    S = sp.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    made = wl.Csr(S).asformat(format)
    assert sp.issparse(made) and made.format == format
    assert type(getattr(wl.Csr(S), f"to{format}")()) is type(made)
    assert (made.toarray() == S.toarray()).all() and (wl.Csr(made) != S).nnz == 0


def test_complex_values_become_real_with_a_warning():
    A = wl.Csr(np.array([[1 + 2j, 0], [0, 3]]))
    with pytest.warns(np.exceptions.ComplexWarning):
        made = A.astype(float)
    assert made.dtype == float and made.to_dense().tolist() == [[1, 0], [0, 3]]


def test_arrays_may_be_longer_than_the_last_pointer():
    A = wl.Csr((np.arange(1.0, 5), [0, 5, 1, 2], [0, 1, 3, 3]))
    assert A.shape == (3, 6) and A.data.tolist() == [1, 2, 3] and A.indices.tolist() == [0, 5, 1]


def test_a_registered_format_comes_before_one_of_scipy(monkeypatch):
    module = import_module("wollemi.core.formats.convert")
    monkeypatch.setitem(module._FROM_CSR, "dia", lambda csr: csr.copy())
    assert isinstance(wl.Csr(np.eye(2)).asformat("dia"), wl.Csr)
