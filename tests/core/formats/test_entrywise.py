"""Operators between matrices, arrays and numbers have SciPy's results on every executor."""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import (
    InvalidArgument,
    ShapeMismatch,
    UnsupportedOperand,
    UnsupportedOperation,
)
from wollemi.core.formats.entry_functions import ZERO_PRESERVING

from .scipy_arrays import DTYPES, FLOATS, FORMATS, KINDS, assert_same, sample

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
NUMBERS = (0, 2, -1.5)
PAIRS = [("plain", "unsorted"), ("duplicates", "zeros"), ("none", "full"), ("full", "empty rows")]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def two(on, kinds, formats=("csr", "csr"), dtypes=("float64", "float64")):
    A, S = sample(on, kinds[0], formats[0], dtypes[0], seed=1)
    B, T = sample(on, kinds[1], formats[1], dtypes[1], seed=2)
    return A, B, S, T


# ---- products and quotients of entries


@pytest.mark.parametrize("format", FORMATS)
def test_a_star_is_the_product_of_the_entries(on, format):
    A, B, S, T = two(on, ("plain", "full"), (format, "csc"))
    assert_same(on, A * B, S * T)
    assert_same(on, A * T, S * T)
    assert_same(on, A * 3, S * 3)
    assert_same(on, 2.5 * A, 2.5 * S)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_products_of_all_dtypes_have_the_dtype_of_numpy(on, dtype, other):
    A, B, S, T = two(on, ("duplicates", "unsorted"), dtypes=(dtype, other))
    want = S.toarray() * T.toarray()
    assert_same(on, A * B, want)
    assert_same(on, A * T.toarray(), want)


@pytest.mark.parametrize("kinds", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_products_of_all_patterns(on, kinds, dtype):
    A, B, S, T = two(on, kinds, dtypes=(dtype, dtype))
    assert_same(on, A * B, S * T)


@pytest.mark.parametrize("shape", [(6, 8), (1, 8), (6, 1), (1, 1), (8,)])
def test_arrays_broadcast(on, shape):
    A, S = sample(on, "unsorted")
    x = np.random.default_rng(0).random(shape)
    assert_same(on, A * x, S * x)
    assert_same(on, A / x, S / x)
    native = on.from_host(x)
    assert_same(on, A * native, S * x)


@pytest.mark.parametrize("shapes", [((1, 8), (6, 8)), ((6, 1), (6, 8)), ((1, 8), (6, 1))])
def test_matrices_of_one_row_or_column_broadcast(on, shapes):
    (A, S), (B, T) = (sample(on, "plain", shape=shape, seed=i) for i, shape in enumerate(shapes))
    assert_same(on, A * B, S.toarray() * T.toarray())
    assert_same(on, B * A, S.toarray() * T.toarray())


def test_shapes_that_do_not_fit(on):
    A, _ = sample(on)
    for other in (np.ones((5, 8)), np.ones(7), wl.Csr(np.ones((6, 7)), executor=on)):
        with pytest.raises(ShapeMismatch, match=r"\(6, 8\)|6, 8"):
            A * other


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients(on, dtype):
    A, B, S, T = two(on, ("plain", "full"), dtypes=(dtype, "float64"))
    assert_same(on, A / 4, S.toarray() / 4)
    assert_same(on, A / T.toarray(), S / T.toarray(), None)
    want = S.toarray() / T.toarray()
    assert_same(on, A / B, want, None)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", *FLOATS])
def test_numbers_with_a_dtype_widen_as_arrays_do(on, dtype):
    A, S = sample(on, dtype=dtype)
    for other in ("bool", "int8", "uint8", "int32", *FLOATS):
        number = np.ones(1, other)[0]
        for factor in (number, np.asarray(number)):
            want = S.toarray() * factor
            for made in (A * factor, factor * A, A.multiply(factor)):
                assert_same(on, made, want, None)
    assert (A * 2.0).dtype == (S * 2.0).dtype


def test_quotients_have_the_digits_of_the_wider_dtype(on):
    A, S = sample(on)
    divisors = np.full(S.shape, 3, np.float32)
    made = on.to_host((A / divisors).to_dense())
    np.testing.assert_allclose(made, S.toarray() / 3, rtol=1e-15)


def test_a_quotient_of_matrices_is_dense(on):
    A, S = sample(on)
    made = A / A
    assert on.owns(made)
    assert_same(on, made, S / S)


def test_a_number_is_not_divided_by_a_matrix(on):
    A, _ = sample(on)
    for divided in (lambda: 1 / A, lambda: np.ones((6, 8)) / A):
        with pytest.raises(UnsupportedOperand, match=r"A\.to_dense\(\)"):
            divided()


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_are_those_of_the_entries(on, dtype):
    A, S = sample(on, "unsorted", dtype=dtype)
    assert_same(on, A**2, S**2)
    with pytest.raises(UnsupportedOperation):
        A**0


def test_zero_to_a_complex_power_with_a_positive_real_part_is_zero(on):
    S = sp.csr_array(([0.0, 2.0], [0, 1], [0, 2]), shape=(1, 2))
    A = wl.Csr((S.data, S.indices, S.indptr), shape=S.shape, executor=on)
    assert_same(on, A.power(1 + 2j), S.power(1 + 2j))


def test_an_array_of_zero_without_dimensions_is_the_number(on):
    A, S = sample(on)
    for made in (A + np.array(0.0), np.array(0.0) + A, A - np.array(0)):
        assert_same(on, made, S)
    with pytest.raises(UnsupportedOperand):
        A + np.array(2.0)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_sum_in_integers_has_their_dtype(on, axis):
    A, S = sample(on)
    want = S.toarray().sum(axis=axis, dtype=np.int64)
    assert_same(on, A.sum(axis=axis, dtype=np.int64), want)


# ---- comparisons


@pytest.mark.parametrize("kinds", PAIRS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_matrices(on, name, kinds, dtype):
    compare = getattr(operator, name)
    A, B, S, T = two(on, kinds, ("csr", "csc"), (dtype, dtype))
    made = compare(A, B)
    assert isinstance(made, wl.Csr)
    assert_same(on, made, compare(S.toarray(), T.toarray()))
    assert_same(on, compare(A, T), compare(S.toarray(), T.toarray()))


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_with_numbers(on, name, number, dtype):
    compare = getattr(operator, name)
    for kind in KINDS:
        A, S = sample(on, kind, dtype=dtype)
        assert_same(on, compare(A, number), compare(S.toarray(), number))
        assert_same(on, compare(number, A), compare(number, S.toarray()))


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("format", FORMATS)
def test_comparisons_with_arrays_are_dense(on, name, format):
    compare = getattr(operator, name)
    A, S = sample(on, "duplicates", format)
    x = np.random.default_rng(0).integers(-3, 4, (6, 8))
    for other in (x, x[0], x[:, :1]):
        made = compare(A, other)
        assert isinstance(made, np.ndarray)
        assert_same(on, made, compare(S.toarray(), other))
        assert_same(on, compare(other, A), compare(other, S.toarray()))
    assert on.owns(compare(A, on.from_host(x)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_matrices_with_the_same_columns(on, name, dtype):
    A, S = sample(on, "plain", "csr", dtype, seed=1)
    compare = getattr(operator, name)
    for B, T in ((A * 2, S * 2), (A, S), (A.copy(), S), (A * 0, S * 0)):
        assert_same(on, compare(A, B), compare(S, T))
        assert_same(on, compare(B, A), compare(T, S))


def test_nan_is_equal_to_nothing(on):
    D = np.array([[np.nan, 0.0], [1.0, np.nan]])
    A = wl.Csr(D, executor=on)
    for name in COMPARISONS:
        compare = getattr(operator, name)
        assert_same(on, compare(A, A), compare(D, D))
        for number in (np.nan, 0, 1.0):
            assert_same(on, compare(A, number), compare(D, number))


def test_matrices_of_other_shapes_are_not_equal(on):
    A, _ = sample(on)
    assert (A == A.T) is False
    assert (A != A.T) is True
    with pytest.raises(ShapeMismatch, match="not compared"):
        A < A.T  # noqa: B015


def test_what_is_no_operand_is_not_equal(on):
    A, _ = sample(on)
    assert (A == None) is False  # noqa: E711
    assert A != "matrix"
    assert {A: 1}[A] == 1


def test_a_comparison_that_is_true_nearly_everywhere_is_refused(on):
    A = wl.Csr(([1.0], ([0], [0])), shape=(1 << 20, 1 << 20), executor=on)
    assert (A > 0).nnz == (A != A * 2).nnz == 1
    with pytest.raises(UnsupportedOperation, match="opposite question"):
        A >= 0  # noqa: B015


# ---- the larger and the smaller of two


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("kinds", PAIRS)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.startswith("complex")])
def test_extremes_of_pairs(on, name, kinds, dtype):
    A, B, S, T = two(on, kinds, ("coo", "csr"), (dtype, dtype))
    function = getattr(np, name)
    assert_same(on, getattr(A, name)(B), function(S.toarray(), T.toarray()))
    assert_same(on, function(A, B), function(S.toarray(), T.toarray()))
    for number in (0, 1, -1):
        want = function(S.toarray(), number)
        assert_same(on, getattr(A, name)(number), want, None)
    x = T.toarray()
    assert_same(on, getattr(A, name)(x), function(S.toarray(), x))


# ---- functions of NumPy's


@pytest.mark.parametrize("name", ZERO_PRESERVING)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32", "int64"])
def test_functions_that_keep_zeros(on, name, dtype):
    D = np.array([[0, 1, 0], [-1, 0, 1]], dtype)
    if name in ("arcsin", "arctanh", "sqrt", "log1p") and dtype != "complex128":
        D = np.abs(D)
    function, A = getattr(np, name), wl.Csr(sp.csr_array(D), executor=on).astype(dtype)
    try:
        want = function(D)
    except TypeError:
        with pytest.raises(TypeError):
            getattr(A, name)()
        return
    assert_same(on, getattr(A, name)(), want)
    assert_same(on, function(A), want)


def test_functions_that_do_not_keep_zeros_say_so(on):
    A, _ = sample(on)
    with pytest.raises(UnsupportedOperand, match=r"numpy\.exp"):
        np.exp(A)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_numpy_are_operators(on, dtype):
    A, S = sample(on, dtype=dtype)
    x = np.random.default_rng(0).random((6, 8))
    assert_same(on, np.multiply(x, A), S * x)
    assert_same(on, np.less(x, A), x < S.toarray())
    assert_same(on, np.divide(A, x), S / x)


def test_an_operator_without_entries_is_no_operand(on):
    A, _ = sample(on, shape=(6, 6))
    f = wl.LinearOperator((6, 6), lambda x: x, executor=on)
    for compute in (lambda: A * f, lambda: f > A, lambda: A.maximum(f)):
        with pytest.raises(InvalidArgument, match="no entries"):
            compute()


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_with_arrays_are_dense(on, dtype):
    A, S = sample(on, "duplicates", dtype=dtype)
    x = np.random.default_rng(0).integers(-3, 4, (6, 8)) / 2
    D = S.toarray()
    for have, want in ((A + x, D + x), (x + A, D + x), (A + x[0], D + x[0])):
        assert isinstance(have, np.ndarray)
        assert_same(on, have, want)
    if dtype != "bool":
        assert_same(on, A - x, D - x)
        assert_same(on, x - A, x - D)
    assert on.owns(A + on.from_host(x))


def test_rounded_entries(on):
    A, S = sample(on)
    assert_same(on, round(A / 3, 1), np.round(S.toarray() / 3, 1))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_counts_of_nonzeros(on, axis):
    A, S = sample(on, "zeros")
    assert_same(on, A.count_nonzero(axis), np.count_nonzero(S.toarray(), axis=axis), None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_change_the_values_in_place_where_scipys_do(on, dtype):
    for factor in (2, 2.5, 1j, True, np.float32(2)):
        for change in (operator.imul, operator.itruediv):
            A, S = sample(on, dtype=dtype)
            same, transpose, data = A, A.T, A.data
            try:
                want = change(S, factor)
            except TypeError:
                with pytest.raises(TypeError, match="is another one"):
                    change(A, factor)
                continue
            A = change(A, factor)
            assert A is same and A.data is data
            assert_same(on, A, want)
            assert_same(on, transpose, want.T)


@pytest.mark.parametrize("format", FORMATS)
def test_products_and_solves_follow_values_that_change_in_place(on, format):
    A = wl.Csr(np.diag([4.0, 5.0]), executor=on).asformat(format)
    x = np.array([1.0, 1.0])
    assert (A @ x == [4, 5]).all()
    A *= 2
    assert (A @ x == [8, 10]).all() and (A.T @ x == [8, 10]).all()
    before = A
    A *= A
    assert A is not before
    assert_same(on, A, np.diag([64.0, 100.0]))
