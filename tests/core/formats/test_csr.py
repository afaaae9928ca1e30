import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import wollemi as wl
from wollemi.core.errors import InvalidMatrix, UnsupportedDtype

from .strategies import entries


def csr(given):
    """Return the entries by compressed rows, duplicates and all."""
    data, (row, col) = given.coordinates()
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(given.shape[0] + 1))
    return wl.Csr((data[order], col[order], indptr), shape=given.shape)


# refused arguments, with the position


@pytest.mark.parametrize(
    ("data", "indices", "indptr", "message"),
    [
        ([1, 2], [0, 5], [0, 1, 2], r"indices\[1\] = 5 is outside of 0\.\.2"),
        ([1, 2], [0, -1], [0, 1, 2], r"indices\[1\] = -1 is outside"),
        ([1, 2], [0], [0, 1, 2], r"lengths disagree: data has 2, indices has 1"),
        ([1, 2], [0, 1], [0, 2], r"indptr: expected 3 numbers, got 2"),
        ([1, 2], [0, 1], [0, 2, 1], r"indptr is not increasing: indptr\[1\] = 2, indptr\[2\] = 1"),
        ([1, 2], [0, 1], [1, 1, 2], r"indptr\[0\] = 1, expected 0"),
        ([1, 2], [0, 1], [0, 1, 3], r"indptr\[-1\] = 3, expected the number of entries, 2"),
        ([1, 2], [0, 0.5], [0, 1, 2], r"indices: expected integers"),
        ([1, 2], [0, np.nan], [0, 1, 2], r"indices: expected integers"),
        ([1, 2], ["a", "b"], [0, 1, 2], r"indices: expected integers"),
        ([1, 2], [[0, 1]], [0, 1, 2], r"indices: expected 1 dimension"),
        (["a", "b"], [0, 1], [0, 1, 2], r"data: expected numbers"),
        ([1, 2], [0, 2**40], [0, 1, 2], r"indices\[1\] = 1099511627776 is outside"),
        ([1, 2], np.array([0, 2**64 - 1], np.uint64), [0, 1, 2], r"indices\[1\] = 1844674407"),
    ],
)
def test_arrays_that_are_no_matrix_are_refused_with_the_place(data, indices, indptr, message):
    with pytest.raises(InvalidMatrix, match=message):
        wl.Csr((data, indices, indptr), shape=(2, 3))


@pytest.mark.parametrize(
    "shape", [(np.nan, 2), (-1, 2), (2,), (2, 3, 4), "23", (2.5, 3), (None, 2), (np.inf, 2), 5]
)
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises(InvalidMatrix, match="shape"):
        wl.Csr(([1.0], [0], [0, 1, 1]), shape=shape)


def test_a_dtype_without_kernels_is_refused():
    with pytest.raises(UnsupportedDtype, match="not supported"):
        wl.Csr((np.ones(1, np.longdouble), [0], [0, 1]))


def test_sixteen_bits_are_held_for_the_kernels_that_take_them():
    A = wl.Csr((np.ones(1, np.float16), [0], [0, 1]))
    assert A.dtype == np.float16
    assert A.astype(np.float32).dtype == np.float32
    with pytest.raises(UnsupportedDtype, match="spmm"):
        A @ np.ones(1)


def test_a_shape_that_contradicts_the_matrix_is_refused():
    with pytest.raises(InvalidMatrix, match="shape"):
        wl.Csr(np.eye(2), shape=(3, 3))


def test_a_vector_is_no_matrix():
    with pytest.raises(InvalidMatrix, match="matrix"):
        wl.Csr(np.ones(3))


# accepted arguments


def test_the_largest_index_tells_the_columns():
    assert wl.Csr(([1.0, 2.0], [4, 0], [0, 1, 2])).shape == (2, 5)
    assert wl.Csr(([], [], [0])).shape == (0, 0)


def test_integers_stay_integers():
    assert wl.Csr(([1, 2], [0, 1], [0, 1, 2])).dtype == np.int64


@pytest.mark.parametrize("index", ["int8", "uint16", "int32", "uint32"])
def test_other_index_dtypes_become_int32(index):
    A = wl.Csr(([1.0], np.array([1], index), np.array([0, 1], index)))
    assert A.indices.dtype == A.indptr.dtype == np.int32


def test_mixed_index_dtypes_become_the_wider():
    A = wl.Csr(([1.0], np.array([1], np.int32), np.array([0, 1], np.int64)))
    assert A.indices.dtype == A.indptr.dtype == np.int64


def test_a_matrix_too_wide_for_int32_has_int64():
    A = wl.Csr(([1.0], np.array([0], np.int32), np.array([0, 1], np.int32)), shape=(1, 2**31))
    assert A.index_dtype == np.int64


def test_strided_and_byte_swapped_arrays_are_taken():
    A = wl.Csr(
        (
            np.array([1.0, 9.0, 2.0, 9.0])[::2],
            np.array([0, 1], ">i4"),
            np.array([0, 1, 2], ">i8"),
        )
    )
    np.testing.assert_array_equal(A @ np.array([1.0, 10.0]), [1, 20])


def test_a_dtype_may_be_asked_for():
    assert wl.Csr(np.eye(2), dtype=np.complex64).dtype == np.complex64


def test_repr_says_what_it_is():
    A = wl.Csr((np.ones(2), np.array([0, 1], np.int32), np.array([0, 1, 2], np.int32)))
    assert repr(A) == "<Csr 2x2 float64/int32 nnz=2 on reference>"


# ---- sorting and duplicates


@given(entries())
def test_sorting_keeps_the_matrix(given):
    A = csr(given).sort()
    assert A.has_sorted_indices
    assert A.nnz == given.nnz
    np.testing.assert_array_equal(A.to_dense(), given.dense())


@given(entries())
def test_summing_duplicates_leaves_one_entry_for_each_place(given):
    for A in (csr(given), csr(given).T.T, wl.Csr(given.coordinates(), shape=given.shape)):
        assert A.sum_duplicates() is None
        assert A.has_sorted_indices
        assert not A.has_duplicates
        assert A.nnz == len(set(zip(given.row, given.col, strict=True)))
        np.testing.assert_array_equal(A.to_dense(), given.dense())


def test_a_sorted_matrix_sorts_to_itself():
    A = wl.Csr(([1.0, 2.0], [0, 2], [0, 2]))
    assert A.sort() is A
    assert A.without_duplicates() is A
    data, plan = A.data, A.plan
    A.sum_duplicates()
    assert A.data is data and A.plan is plan


def test_sorting_leaves_the_original_alone():
    A = wl.Csr(([1.0, 2.0], [2, 0], [0, 2]))
    A.sort()
    assert A.indices.tolist() == [2, 0]


def test_falling_columns_between_rows_are_no_disorder():
    A = wl.Csr(([1.0, 2.0, 3.0], [2, 0, 0], [0, 1, 1, 2, 3]), shape=(4, 3))
    assert A.has_sorted_indices
    assert not A.has_duplicates


def test_empty_rows_at_the_ends_are_no_disorder():
    A = wl.Csr(([1.0, 2.0], [0, 0], [0, 0, 1, 2, 2]), shape=(4, 1))
    assert A.has_sorted_indices
    assert not A.has_duplicates


# ---- transposes share


def test_a_transpose_shares_its_arrays():
    A = wl.Csr(np.array([[1.0, 2.0], [0.0, 3.0]]))
    assert np.shares_memory(A.T.data, A.data)
    assert np.shares_memory(A.T.T.data, A.data)
    assert A.T.format == "csc"


def test_a_transpose_made_before_new_values_has_them():
    A = wl.Csr(np.array([[1.0, 2.0], [0.0, 3.0]]))
    transposed, x = A.T, np.array([1.0, 10.0])
    transposed @ x
    A.update_values([4.0, 5.0, 6.0])
    np.testing.assert_array_equal(transposed @ x, [4, 65])


@pytest.mark.parametrize(
    "relative",
    [lambda A: wl.Csr(A), lambda A: A.asformat("coo"), lambda A: A.T.T, lambda A: A.T.H],
    ids=["constructor", "coo", "T.T", "T.H"],
)
def test_new_values_are_those_of_all_that_share_them(relative):
    A = wl.Csr(np.array([[1.0, 2.0], [0.0, 3.0]]))
    B, x = relative(A), np.array([1.0, 10.0])
    (A @ x, B @ x)
    B.update_values([4.0, 5.0, 6.0])
    np.testing.assert_array_equal(A @ x, [54, 60])
    A.update_values([1.0, 1.0, 1.0])
    np.testing.assert_array_equal(B @ x, [11, 10])


def test_sharing_keeps_no_matrix_alive():
    A = wl.Csr(np.eye(2))
    transposed = weakref.ref(A.T)
    assert transposed() is None


def test_the_plan_is_made_once():
    A = wl.Csr(np.eye(3))
    assert A.plan is A.plan
    assert A.plan.statistics.nnz == 3


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_several_vectors_are_a_dense_matrix_to_users_and_vectors_to_loops(executor: str) -> None:
    A = wl.Csr(np.array([[2.0, 1.0], [1.0, 3.0]]), executor=executor)
    B = np.array([[1.0, 0.5, 2.0], [0.0, 1.0, -1.0]])
    with wl.profile() as seen:
        product = A @ B
        vector = A @ B[:, 0].copy()
    products = {"csr.spmm", "csr.spmv"}
    assert products <= {entry.operation for entry in seen}
    assert [entry.calls for entry in seen if entry.operation in products] == [1, 1]
    np.testing.assert_allclose(product[:, 0], vector)
    with wl.profile() as seen:
        solved = wl.solvers.Cg(A).solve(B)
    assert "csr.spmm" not in {entry.operation for entry in seen}
    np.testing.assert_allclose(A @ solved.x, B, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bool"])
def test_the_order_of_unsorted_rows_is_found_once_and_values_follow(on, dtype):
    data = np.array([1, 2, 0, 4, 5]).astype(dtype)
    arrays = (data, np.array([2, 0, 1, 1, 0], np.int32), np.array([0, 2, 5, 5], np.int32))
    A = wl.Csr._from_arrays(on, (3, 3), *(on.from_host(a.copy()) for a in arrays))
    first, again = A.sort(), A.sort()
    assert first._pattern is again._pattern
    assert again.has_sorted_indices and again.has_duplicates
    A.update_values(data[::-1].copy())
    S = sp.csr_array((data[::-1], *arrays[1:]), shape=(3, 3))
    np.testing.assert_array_equal(on.to_host(A.sort().data), data[::-1][[1, 0, 4, 2, 3]])
    np.testing.assert_array_equal(A.sort().toarray(), S.toarray())
    assert A.lean().sort()._pattern is not A.lean().sort()._pattern
