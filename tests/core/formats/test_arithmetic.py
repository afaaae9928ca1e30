import numpy as np
import pytest
from hypothesis import given

import wollemi as wl
from wollemi.core.errors import ShapeMismatch

from .strategies import FORMATS, pairs, twins


def csr(given, dtype="float64", index="int32"):
    return wl.Coo(given.coordinates(dtype, index), shape=given.shape).asformat("csr")


def canonical(A):
    """Whether rows are sorted and free of duplicates."""
    return A.has_sorted_indices and not A.has_duplicates


@given(pairs())
def test_a_product_is_that_of_the_dense_matrices(pair):
    left, right = pair
    product = csr(left) @ csr(right)
    assert canonical(product)
    np.testing.assert_array_equal(product.to_dense(), left.dense() @ right.dense())


@given(pairs())
def test_a_product_has_an_entry_wherever_entries_meet(pair):
    left, right = pair
    A, B = csr(left), csr(right)
    places = [M._with_data(np.ones(M.nnz)).to_dense().astype(int) for M in (A, B)]
    meets = places[0] @ places[1]
    assert (A @ B).nnz == np.count_nonzero(meets)


@given(twins())
def test_sums_and_differences_are_those_of_the_dense_matrices(twins):
    one, other = twins
    A, B = csr(one), csr(other)
    assert canonical(A + B)
    np.testing.assert_array_equal((A + B).to_dense(), one.dense() + other.dense())
    np.testing.assert_array_equal((A - B).to_dense(), one.dense() - other.dense())


@given(twins())
def test_a_sum_has_the_entries_of_both(twins):
    one, other = twins
    places = set(zip(one.row, one.col, strict=True)) | set(zip(other.row, other.col, strict=True))
    assert (csr(one) + csr(other)).nnz == len(places)
    assert (csr(one) - csr(one)).nnz == len(set(zip(one.row, one.col, strict=True)))


@pytest.mark.parametrize("second", FORMATS)
@pytest.mark.parametrize("first", FORMATS)
def test_formats_mix(first, second):
    D, E = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[4.0, 0.0], [5.0, 6.0]])
    A, B = wl.Csr(D).asformat(first), wl.Csr(E).asformat(second)
    np.testing.assert_array_equal((A @ B).to_dense(), D @ E)
    np.testing.assert_array_equal((A + B).to_dense(), D + E)


@pytest.mark.parametrize("format", FORMATS)
def test_scaling_keeps_the_format(format):
    D = np.array([[1.0, 2.0], [0.0, 3.0]])
    A = wl.Csr(D).asformat(format)
    for scaled, expected in [(2 * A, 2 * D), (A / 4, D / 4), (-A, -D), (1j * A, 1j * D)]:
        assert scaled.format == format
        assert scaled.dtype == expected.dtype
        np.testing.assert_array_equal(scaled.to_dense(), expected)
    np.testing.assert_array_equal(A.to_dense(), D)


def test_dtypes_widen():
    A, B = csr_of("float32", "int32"), csr_of("complex64", "int64")
    for result in (A @ B, A + B):
        assert result.dtype == np.complex64
        assert result.index_dtype == np.int64
    assert (2 * A).dtype == np.float32
    assert (2j * A).dtype == np.complex64


def csr_of(dtype, index):
    return wl.Csr(
        (np.ones(2, dtype), np.array([0, 1], index), np.array([0, 1, 2], index)), shape=(2, 2)
    )


def test_shapes_that_do_not_fit_are_named():
    A = wl.Csr(np.ones((2, 3)))
    with pytest.raises(ShapeMismatch, match="3 columns meet 2 rows"):
        A @ A
    with pytest.raises(ShapeMismatch, match="2x3 and 3x2"):
        A + A.T


@pytest.mark.parametrize("format", FORMATS)
def test_absolute_values_and_counts_see_duplicates_added_up(format):
    twice = wl.Coo(([2.0, -2.0, -3.0, 1.0], ([0, 0, 1, 1], [0, 0, 0, 0])), shape=(2, 3))
    A = twice if format == "coo" else twice.asformat(format)
    np.testing.assert_array_equal(abs(A).toarray(), [[0, 0, 0], [2, 0, 0]])
    assert A.count_nonzero() == 1


def test_absolute_values_of_complex_numbers_are_real():
    A = abs(wl.Csr(np.array([[3 + 4j, 0], [0, -1j]], np.complex64)))
    assert A.dtype == np.float32
    np.testing.assert_array_equal(A.toarray(), [[5, 0], [0, 1]])
