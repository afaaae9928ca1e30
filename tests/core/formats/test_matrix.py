"""The methods of every format: move, copy, pickle, take new values, and go to SciPy and back."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import wollemi as wl
from wollemi.core.errors import InvalidMatrix, UnsupportedDtype

from .strategies import FORMATS, entries

D = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 4.0, 5.0, 6.0], [0.0, 7.0, 0, 0]])


@pytest.fixture(params=FORMATS)
def A(request):
    return wl.Csr(D).asformat(request.param)


# ---- copies


def test_a_copy_shares_nothing(A):
    twin = A.copy()
    assert type(twin) is type(A)
    twin.update_values(2 * twin.data)
    np.testing.assert_array_equal(A.to_dense(), D)
    np.testing.assert_array_equal(twin.to_dense(), 2 * D)


@pytest.mark.parametrize(
    "again", [lambda A: pickle.loads(pickle.dumps(A)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_matrices_pickle(A, again):
    A @ np.ones(4)
    twin = again(A)
    assert type(twin) is type(A)
    assert twin.executor == A.executor
    assert (twin.dtype, twin.nnz) == (A.dtype, A.nnz)
    np.testing.assert_array_equal(twin.to_dense(), D)
    np.testing.assert_array_equal(twin @ np.ones(4), D @ np.ones(4))


@pytest.mark.parametrize(
    "operator", [wl.Identity, lambda n: wl.Permutation([1, 2, 0]), lambda n: wl.Diagonal([1, 2, 3])]
)
def test_operators_pickle(operator):
    with wl.default_executor("reference"):
        A = operator(3)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(A)) @ np.eye(3), A @ np.eye(3))


def test_moving_to_where_it_is_gives_the_matrix_itself(A):
    assert A.to("reference") is A


# ---- dtypes


def test_the_same_dtype_gives_the_matrix_itself(A):
    assert A.astype(np.float64) is A


def test_another_dtype_keeps_the_pattern(A):
    narrow = A.astype(np.float32)
    assert narrow.dtype == np.float32
    assert narrow.nnz == A.nnz
    np.testing.assert_array_equal(narrow.to_dense(), D)


def test_a_complex_matrix_becomes_real_with_numpys_warning(A):
    with pytest.warns(np.exceptions.ComplexWarning):
        made = A.astype(np.complex128).astype(np.float64)
    np.testing.assert_array_equal(made.to_dense(), A.to_dense())


def test_conjugating_a_real_matrix_gives_itself(A):
    assert A.conj() is A


# ---- new values


def test_new_values_are_used_by_products(A):
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    A @ x
    A.update_values(2 * A.data)
    np.testing.assert_array_equal(A @ x, 2 * D @ x)


def test_new_values_keep_the_plan():
    A = wl.Csr(D)
    plan = A.plan
    A.update_values(2 * A.data)
    assert A.plan is plan


def test_new_values_of_another_shape_change_nothing(A):
    with pytest.raises(InvalidMatrix, match=r"update_values: expected data of shape"):
        A.update_values(np.ones(3))
    np.testing.assert_array_equal(A.to_dense(), D)


def test_complex_values_do_not_fit_a_real_matrix(A):
    with pytest.raises(InvalidMatrix, match="complex values do not fit"):
        A.update_values(1j * A.data)
    np.testing.assert_array_equal(A.to_dense(), D)


@pytest.mark.parametrize("dtype", ["U1", "S1", "O", "M8[D]", "m8[s]", [("a", "f8")]])
def test_arrays_that_hold_no_numbers_are_refused(A, dtype):
    no_numbers = np.zeros(A.data.shape, dtype)
    with pytest.raises(UnsupportedDtype, match="expected numbers"):
        A.update_values(no_numbers)
    vector = np.zeros(A.shape[1], dtype)
    for operation in (A.setdiag, A.__matmul__, A.__mul__, A.apply):
        with pytest.raises(UnsupportedDtype, match="expected numbers"):
            operation(vector)
    np.testing.assert_array_equal(A.to_dense(), D)


def test_new_values_may_be_of_another_dtype(A):
    A.update_values(np.round(A.data).astype(np.int64) * 3)
    assert A.dtype == np.float64
    np.testing.assert_array_equal(A.to_dense(), 3 * D)


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_a_new_diagonal_is_in_the_transpose_if_its_entries_are_stored(executor):
    matrix = wl.Csr(np.array([[4.0, 1.0], [0.0, 3.0]]), executor=executor)
    transpose = matrix.T
    matrix.setdiag([5.0, 6.0])
    np.testing.assert_array_equal(transpose.to_dense(), [[5.0, 0.0], [1.0, 6.0]])
    matrix.setdiag([7.0], k=-1)  # a new entry: the earlier transpose keeps the old ones
    np.testing.assert_array_equal(transpose.to_dense(), [[5.0, 0.0], [1.0, 6.0]])
    np.testing.assert_array_equal(matrix.T.to_dense(), [[5.0, 7.0], [1.0, 6.0]])


FULL_DIAGONAL = np.array([[4.0, 1, 0, 0], [1, 5, 0, 2], [0, 0, 6, 1], [0, 3, 1, 7]])
NEW_DIAGONAL = np.array([1.0, 2.0, 3.0, 0.5])


@pytest.mark.parametrize("F", [wl.Csr, wl.Csc, wl.Coo, wl.Bsr, wl.Ell, wl.Sellp, wl.Dense])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64])
def test_a_stored_diagonal_is_set_in_place_in_every_format(F, dtype):
    A = F(FULL_DIAGONAL.astype(dtype), executor="omp")
    data, same = A.data, A.to("reference")  # on the same memory
    A.setdiag(NEW_DIAGONAL.astype(dtype))
    expected = FULL_DIAGONAL.astype(dtype)
    np.fill_diagonal(expected, NEW_DIAGONAL.astype(dtype))
    assert A.data is data
    np.testing.assert_array_equal(A.to_dense(), expected)
    np.testing.assert_array_equal(same.to_dense(), expected)


def test_a_diagonal_of_a_hybrid_is_set_in_place_in_both_parts():
    A = wl.Hybrid(FULL_DIAGONAL, width=2)
    ell, coo = A.ell, A.coo
    A.setdiag(NEW_DIAGONAL)
    assert A.ell is ell and A.coo is coo and coo.nnz
    np.testing.assert_array_equal(A.diagonal(), NEW_DIAGONAL)


@pytest.mark.parametrize("rows_first", [True, False])
def test_a_diagonal_of_unsorted_entries_is_in_the_transpose_too(rows_first):
    triple = ([2.0, 1.0, 3.0], [1, 0, 1], [0, 2, 3])
    A = (wl.Csr if rows_first else wl.Csc)(triple, shape=(2, 2))
    transpose = A.T
    A.setdiag([5.0, 6.0])
    np.testing.assert_array_equal(A.diagonal(), [5.0, 6.0])
    np.testing.assert_array_equal(transpose.to_dense(), A.to_dense().T)
    np.testing.assert_array_equal(A.indices, [1, 0, 1])


def test_a_resize_to_the_same_shape_keeps_the_arrays():
    A = wl.Csc(FULL_DIAGONAL)
    transpose, data = A.T, A.data
    A.resize(4, 4)
    A *= 2
    assert A.data is data
    np.testing.assert_array_equal(transpose.to_dense(), 2 * FULL_DIAGONAL.T)


@pytest.mark.parametrize("F", [wl.Coo, wl.Bsr, wl.Ell, wl.Sellp, wl.Hybrid, wl.Dense])
def test_the_transpose_of_other_formats_is_a_copy_as_the_page_says(F):
    A = F(FULL_DIAGONAL)
    transpose = A.T
    A *= 2
    np.testing.assert_array_equal(transpose.to_dense(), FULL_DIAGONAL.T)


# ---- SciPy


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_scipy_s_index_dtypes_stay_on_the_way_in_and_out(format, index):
    S = sp.random_array((8, 6), density=0.4, format=format, rng=np.random.default_rng(0))
    if format == "coo":
        S = S.tocsr().tocoo()
    for name in ("indices", "indptr"):
        if hasattr(S, name):
            setattr(S, name, getattr(S, name).astype(index))
    A = getattr(wl, format.capitalize())(S)
    back = A.to_scipy()
    assert back.format == format
    if format != "coo":
        assert A.index_dtype == back.indptr.dtype == index
    np.testing.assert_array_equal(back.toarray(), S.toarray())


@pytest.mark.parametrize(
    "cls", [sp.csr_matrix, sp.csr_array, sp.lil_array, sp.dok_array, sp.dia_array]
)
def test_every_matrix_of_scipy_is_taken(cls):
    np.testing.assert_array_equal(wl.Csr(cls(D)).to_dense(), D)


@pytest.mark.parametrize("format", FORMATS)
def test_every_class_takes_every_kind_of_matrix(format):
    cls = type(wl.Csr(D).asformat(format))
    for matrix in (D, sp.csr_array(D), sp.coo_array(D), wl.Csc(D), sp.bsr_array(D)):
        A = cls(matrix)
        assert A.format == format
        np.testing.assert_array_equal(A.to_dense(), D)


@given(entries())
def test_scipy_gets_what_is_stored(given):
    A = wl.Coo(given.coordinates(), shape=given.shape)
    for format in ("coo", "csr", "csc", "ell", "sellp", "hybrid"):
        S = A.asformat(format).to_scipy()
        places = set(zip(given.row, given.col, strict=True))
        assert S.nnz == (given.nnz if format == "coo" else len(places))
        np.testing.assert_array_equal(S.toarray(), given.dense())


def test_what_scipy_makes_out_of_order_is_put_in_order():
    S = sp.coo_array(([1.0, 2.0, 3.0], ([2, 0, 1], [0, 1, 2])), shape=(3, 3))
    A = wl.Coo(S)
    assert A.row.tolist() == [0, 1, 2]
    assert S.row.tolist() == [2, 0, 1]


# Coo, Csc, Bsr: refused with the position


@pytest.mark.parametrize(
    ("data", "row", "col", "message"),
    [
        ([1, 2], [0, 3], [0, 0], r"row\[1\] = 3 is outside of 0\.\.2"),
        ([1, 2], [0, 0], [0, -2], r"col\[1\] = -2 is outside of 0\.\.1"),
        ([1], [0, 0], [0, 1], "lengths disagree: data has 1, row has 2, col has 2"),
        ([1, 2], [0, 0.5], [0, 1], "row: expected integers"),
    ],
)
def test_coordinates_that_are_no_matrix_are_refused(data, row, col, message):
    with pytest.raises(InvalidMatrix, match=message):
        wl.Coo((data, (row, col)), shape=(3, 2))


def test_csc_counts_rows_where_csr_counts_columns():
    with pytest.raises(InvalidMatrix, match=r"indices\[0\] = 2 is outside of 0\.\.1"):
        wl.Csc(([1.0], [2], [0, 1, 1, 1]), shape=(2, 3))
    assert wl.Csc(([1.0], [2], [0, 1, 1])).shape == (3, 2)


@pytest.mark.parametrize(
    ("data", "shape", "message"),
    [
        (np.ones((1, 2, 2)), (3, 2), "3x2 is not a multiple of the block's 2x2"),
        (np.ones((1, 0, 2)), (2, 2), "at least one row and column"),
        (np.ones(1), (2, 2), r"data: expected 3 dimension\(s\)"),
        (np.ones((2, 2, 2)), (2, 2), "lengths disagree: data has 2, indices has 1"),
    ],
)
def test_blocks_that_are_no_matrix_are_refused(data, shape, message):
    with pytest.raises(InvalidMatrix, match=message):
        wl.Bsr((data, [0], [0, 1]), shape=shape)


def test_coordinates_are_sorted_by_row_in_the_order_given():
    A = wl.Coo(([1.0, 2.0, 3.0, 4.0], ([1, 0, 1, 0], [0, 1, 0, 0])), shape=(2, 2))
    assert A.row.tolist() == [0, 0, 1, 1]
    assert A.data.tolist() == [2, 4, 1, 3]


# ---- Diagonal, Identity, Permutation


def test_a_diagonal_scales_rows():
    A = wl.Diagonal([2.0, 3.0])
    assert A.shape == (2, 2)
    assert (A @ np.array([1.0, 10.0])).tolist() == [2, 30]
    assert A.diagonal().tolist() == [2, 3]
    assert A.T is A
    np.testing.assert_array_equal(wl.Diagonal([1j]).H.diagonal(), [-1j])


def test_a_diagonal_copies_what_it_is_given():
    given = np.array([1.0, 2.0])
    A = wl.Diagonal(given)
    given[:] = 0
    assert A.diagonal().tolist() == [1, 2]


def test_the_identity_does_not_widen():
    assert (wl.Identity(2) @ np.ones(2, np.float32)).dtype == np.float32
    assert (wl.Identity(2) @ np.ones(2)).dtype == np.float64


def test_the_identity_scales_and_adds():
    out = np.array([1.0, 2.0])
    wl.Identity(2).apply(np.array([10.0, 20.0]), out=out, alpha=2.0, beta=-1.0)
    assert out.tolist() == [19, 38]


def test_a_permutation_takes_rows_as_indexing_does():
    P, x = wl.Permutation([2, 0, 1]), np.array([10.0, 20.0, 30.0])
    assert (P @ x).tolist() == x[[2, 0, 1]].tolist()
    assert (P.T @ (P @ x)).tolist() == x.tolist()
    assert (x @ P).tolist() == (P.T @ x).tolist()


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 0, 2], "not a permutation, 1 does not occur"),
        ([0, 1, 3], r"indices\[2\] = 3 is outside of 0\.\.2"),
        ([0, -1], r"indices\[1\] = -1 is outside"),
        ([0.5, 1], "expected integers"),
    ],
)
def test_what_is_no_permutation_is_refused(indices, message):
    with pytest.raises(InvalidMatrix, match=message):
        wl.Permutation(indices)
