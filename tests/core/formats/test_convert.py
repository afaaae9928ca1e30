import numpy as np
import pytest
from hypothesis import given, settings

import wollemi as wl
from wollemi.core.errors import InvalidArgument

from .strategies import FORMATS, KEEPING, entries

D = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 4.0, 5.0, 6.0], [0.0, 7.0, 0, 0]])


def coo(given, dtype="float64", index="int32"):
    return wl.Coo(given.coordinates(dtype, index), shape=given.shape)


@pytest.mark.parametrize("second", FORMATS)
@pytest.mark.parametrize("first", FORMATS)
@settings(max_examples=15)
@given(entries())
def test_every_format_becomes_every_other(first, second, given):
    A = coo(given).asformat(first).asformat(second)
    assert A.format == second
    assert A.shape == given.shape
    np.testing.assert_array_equal(A.to_dense(), given.dense())


@pytest.mark.parametrize("second", KEEPING)
@pytest.mark.parametrize("first", [f for f in KEEPING if f != "coo"])
@settings(max_examples=15)
@given(entries())
def test_duplicates_and_explicit_zeros_stay(first, second, given):
    data, (row, col) = given.coordinates()
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(given.shape[0] + 1))
    A = wl.Csr((data[order], col[order], indptr), shape=given.shape)
    A = A.asformat(first).asformat(second)
    assert A.nnz == given.nnz
    back = A.asformat("coo")
    stored = sorted(zip(back.row.tolist(), back.col.tolist(), back.data.tolist(), strict=True))
    assert stored == sorted(zip(given.row, given.col, given.data, strict=True))


@pytest.mark.parametrize("format", FORMATS)
@given(entries())
def test_every_format_multiplies(format, given):
    A, x = coo(given).asformat(format), np.arange(1.0, given.shape[1] + 1)
    np.testing.assert_array_equal(A @ x, given.dense() @ x)
    np.testing.assert_array_equal(A @ np.stack([x, -x], 1), given.dense() @ np.stack([x, -x], 1))


@pytest.mark.parametrize("format", FORMATS)
@given(entries())
def test_every_format_has_a_transpose(format, given):
    A = coo(given, "complex128").asformat(format)
    scaled = (1 + 2j) * A
    dense = (1 + 2j) * given.dense()
    assert scaled.T.shape == given.shape[::-1]
    np.testing.assert_array_equal(scaled.T.to_dense(), dense.T)
    np.testing.assert_array_equal(scaled.H.to_dense(), dense.conj().T)


@pytest.mark.parametrize("format", FORMATS)
@given(entries())
def test_every_format_knows_its_diagonals(format, given):
    A = coo(given).asformat(format)
    np.testing.assert_array_equal(A.diagonal(), given.dense().diagonal())
    for k in (-2, -1, 1, 2):
        np.testing.assert_array_equal(A.diagonal(k), given.dense().diagonal(k))


def test_diagonals_of_16_bits_and_of_diagonals():
    A = wl.Csr((np.array([1, 2], np.float16), [1, 1], [0, 2, 2]), shape=(2, 2))
    assert A.diagonal(1).dtype == np.float16
    assert A.diagonal(1).tolist() == [3]
    assert wl.Diagonal([2.0, 3.0]).diagonal(1).tolist() == [0]


@pytest.mark.parametrize("k", [None, 0.5, "1"])
def test_a_diagonal_is_named_by_an_integer(k):
    with pytest.raises(InvalidArgument, match="integer"):
        wl.Csr(np.eye(2)).diagonal(k)


@pytest.mark.parametrize("format", FORMATS)
def test_scipy_s_names_of_conversions(format):
    D = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    A = wl.Csr(D).asformat(format)
    for made, cls in (
        (A.tocsr(), wl.Csr),
        (A.tocsc(), wl.Csc),
        (A.tocoo(), wl.Coo),
        (A.tobsr((2, 1)), wl.Bsr),
    ):
        assert type(made) is cls
        np.testing.assert_array_equal(made.toarray(), D)
        np.testing.assert_array_equal(made.todense(), D)
    assert A.tobsr((2, 1)).blocksize == (2, 1)
    csr = A.tocsr()
    assert csr.tocsr() is csr


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("format", FORMATS)
def test_dtypes_are_kept(format, dtype, index):
    A = wl.Coo(
        (np.array([1, 2], dtype), (np.array([0, 1], index), np.array([1, 0], index))), shape=(2, 2)
    ).asformat(format)
    assert A.dtype == dtype
    assert A.data.dtype == dtype
    if format != "dense":
        assert A.index_dtype == index
    assert A.asformat("csr").index_dtype == (index if format != "dense" else np.int32)


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_in_its_own_format_is_itself(format):
    A = wl.Csr(D).asformat(format)
    assert A.asformat(format) is A


def test_the_order_within_rows_is_kept():
    A = wl.Csr(([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3]), shape=(2, 3))
    for format in ("ell", "sellp", "hybrid"):
        assert A.asformat(format).asformat("csr").indices.tolist() == [2, 0, 1]


# ---- layouts by hand


def test_ell_pads_with_minus_one():
    A = wl.Ell(D)
    assert A.width == 4
    assert A.indices.tolist() == [[0, -1, 0, 1], [2, -1, 1, -1], [-1, -1, 2, -1], [-1, -1, 3, -1]]
    assert A.data.tolist() == [[1, 0, 3, 7], [2, 0, 4, 0], [0, 0, 5, 0], [0, 0, 6, 0]]
    assert A.nnz == 7


def test_sellp_sorts_rows_by_length_within_its_window():
    A = wl.Sellp(D, slice_size=2, window=2)
    assert A.permutation.tolist() == [2, 0, 3, 1]
    assert A.slice_ptr.tolist() == [0, 8, 10]
    assert A.indices.tolist() == [0, 0, 1, 2, 2, -1, 3, -1, 1, -1]
    assert A.data.tolist() == [3, 1, 4, 2, 5, 0, 6, 0, 7, 0]


def test_sellp_with_a_window_of_one_slice_keeps_slices_apart():
    A = wl.Sellp(D, slice_size=2, window=1)
    assert A.permutation.tolist() == [0, 1, 2, 3]
    assert A.slice_ptr.tolist() == [0, 4, 12]


def test_hybrid_puts_what_rows_have_in_common_into_its_ell_part():
    A = wl.Hybrid(D, width=2)
    assert A.ell.width == 2
    assert (A.ell.nnz, A.coo.nnz) == (5, 2)
    assert A.coo.row.tolist() == [2, 2]
    assert A.coo.col.tolist() == [2, 3]


def test_bsr_fills_its_blocks():
    A = wl.Bsr(D, blocksize=(2, 2))
    assert A.indptr.tolist() == [0, 2, 4]
    assert A.indices.tolist() == [0, 1, 0, 1]
    assert A.data[0].tolist() == [[1, 0], [0, 0]]
    assert A.data[3].tolist() == [[5, 6], [0, 0]]
    assert A.nnz == 16


@pytest.mark.parametrize("size", [2, 3, 4])
def test_bsr_finds_the_blocks_that_a_pattern_is_made_of(size):
    blocks = np.kron([[1, 0], [1, 1]], np.ones((size, size)))
    assert wl.Bsr(blocks).blocksize == (size, size)


def test_bsr_without_a_fitting_block_has_single_entries():
    assert wl.Bsr(D).blocksize == (1, 1)


# ---- options


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("bsr", {"blocksize": (3, 1)}, "4x4 is not a multiple of the block size 3x1"),
        ("bsr", {"blocksize": (0, 1)}, "block size 0x1"),
        ("ell", {"width": 3}, "a row of 4 entries does not fit a width of 3"),
        ("hybrid", {"width": -1}, "at least 0"),
        ("sellp", {"slice_size": 0}, "at least 1"),
        ("sellp", {"window": 0}, "at least 1"),
        ("ell", {"depth": 3}, "depth"),
        ("csr", {"depth": 3}, "depth"),
        ("diag", {}, "no conversion to 'diag'; formats: bsr, coo"),
    ],
)
def test_options_that_a_format_does_not_have_are_refused(format, options, message):
    with pytest.raises(InvalidArgument, match=message):
        wl.Csr(D).asformat(format, **options)


def test_an_option_changes_a_matrix_of_the_same_format():
    A = wl.Bsr(D, blocksize=(2, 2))
    assert A.asformat("bsr", blocksize=(4, 1)).blocksize == (4, 1)
    assert A.asformat("bsr", blocksize=(2, 2)) is A


def test_a_hybrid_takes_another_width():
    assert wl.Hybrid(wl.Hybrid(D, width=2), width=1).ell.width == 1


def test_a_wider_ell_is_the_same_matrix():
    A = wl.Csr(D).asformat("ell", width=6)
    assert A.width == 6
    np.testing.assert_array_equal(A.to_dense(), D)


def test_a_diagonal_is_a_matrix_in_any_format():
    A = wl.Diagonal([1.0, 2.0])
    for format in FORMATS:
        np.testing.assert_array_equal(A.asformat(format).to_dense(), np.diag([1.0, 2.0]))
    assert A.asformat("diagonal") is A
