"""Values of 16 bits keep their bits wherever a matrix only moves them."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl

from .needs import package

ml_dtypes = package("ml_dtypes")

#: A row out of order, an empty row, and a value that float16 rounds.
ENTRIES = np.array([[0.0, -0.1, 3.0], [0.0, 0.0, 0.0], [7.5, 0.0, 2.0], [0.0, 1.0, 0.0]])
TRIPLE = ([3.0, -0.1, 2.0, 7.5, 1.0], [2, 1, 2, 0, 1], [0, 2, 2, 4, 5])


@pytest.fixture(params=["float16", "bfloat16"])
def dtype(request):
    return np.dtype(getattr(ml_dtypes, request.param, request.param))


@pytest.fixture
def A(executor, dtype):
    return wl.Csr(TRIPLE, shape=(4, 3), executor=executor).astype(dtype)


def bits(matrix):
    """Return the values as they lie in memory."""
    return np.asarray(matrix.executor.to_host(matrix.data)).view(np.uint16)


def expected(dtype, order):
    return np.array(TRIPLE[0]).astype(dtype)[order].view(np.uint16)


def test_sorting_moves_them(A, dtype):
    made = A.sort()
    assert made.dtype == dtype
    np.testing.assert_array_equal(bits(made), expected(dtype, [1, 0, 3, 2, 4]))
    assert made.has_sorted_indices


def test_transposing_moves_them(A, dtype):
    made = A.transpose()
    assert (made.dtype, made.shape) == (dtype, (3, 4))
    np.testing.assert_array_equal(bits(made), expected(dtype, [3, 1, 4, 0, 2]))
    np.testing.assert_array_equal(made.to_dense(), ENTRIES.T.astype(dtype))


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dense"])
def test_formats_hold_what_the_matrix_held(A, dtype, format):
    made = A.asformat(format)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made.asformat("csr").to_dense(), ENTRIES.astype(dtype))


def test_the_lazy_transpose_becomes_rows(A, dtype):
    made = A.T.asformat("csr")
    assert made.dtype == dtype
    np.testing.assert_array_equal(made.to_dense(), ENTRIES.T.astype(dtype))


def test_new_values_reach_the_rows_of_a_transpose(A, dtype):
    transposed = A.T
    rows = transposed.by_rows
    A.update_values(A.executor.from_host(np.arange(5.0).astype(dtype)))
    np.testing.assert_array_equal(
        np.asarray(A.executor.to_host(rows.data)).astype(float), [3.0, 1.0, 4.0, 0.0, 2.0]
    )


def test_the_diagonal_has_their_dtype(A, dtype):
    diagonal = np.asarray(A.executor.to_host(A.diagonal()))
    assert diagonal.dtype == dtype
    np.testing.assert_array_equal(diagonal.astype(float), [0.0, 0.0, 2.0])


def test_duplicates_are_added_in_float32_and_rounded_once(executor, dtype):
    # one after the other in 16 bits, the small ones would vanish next to 2048
    many = wl.Csr(([2048.0] + 8 * [1.0], 9 * [0], [0, 9]), executor=executor).astype(dtype)
    many.sum_duplicates()
    assert many.nnz == 1
    assert np.asarray(executor.to_host(many.data))[0] == np.array(2056.0).astype(dtype)
