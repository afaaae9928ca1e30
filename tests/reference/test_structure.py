import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.operations import structure

# Row 0 holds (0, 2) = 1, (0, 0) = 2 and (0, 2) = 3; row 2 holds (2, 1) = 4.
TRIPLE = ([1.0, 2.0, 3.0, 4.0], [2, 0, 2, 1], [0, 3, 3, 4])


@pytest.fixture
def A(executor):
    return wl.Csr(TRIPLE, shape=(3, 3), executor=executor)


def lists(*arrays):
    return tuple(a.tolist() for a in arrays)


def test_coo_to_csr_keeps_the_order_within_rows(executor):
    i = np.int32
    coo = wl.Coo._from_arrays(
        executor,
        (3, 3),
        np.array([4.0, 1.0, 2.0, 3.0]),
        np.array([2, 0, 0, 0], i),
        np.array([1, 2, 0, 2], i),
    )
    indptr, indices, data = executor.run(structure.coo_to_csr, coo)
    assert lists(indptr, indices, data) == ([0, 3, 3, 4], [2, 0, 2, 1], [1, 2, 3, 4])
    assert indptr.dtype == indices.dtype == i


def test_sort_is_stable(executor, A):
    indices, data, order = executor.run(structure.csr_sort, A)
    assert lists(indices, data, order) == ([0, 2, 2, 1], [2, 1, 3, 4], [1, 0, 2, 3])


def test_sum_duplicates(executor, A):
    indptr, indices, data = executor.run(structure.csr_sum_duplicates, A.sort())
    assert lists(indptr, indices, data) == ([0, 2, 2, 3], [0, 2, 1], [2, 4, 4])


def test_sum_duplicates_keeps_sums_that_are_zero(executor):
    A = wl.Csr(([1.0, -1.0], [0, 0], [0, 2]), shape=(1, 1), executor=executor)
    indptr, indices, data = executor.run(structure.csr_sum_duplicates, A)
    assert lists(indptr, indices, data) == ([0, 1], [0], [0])


def test_transpose_is_sorted_and_stable(executor, A):
    indptr, indices, data, order = executor.run(structure.csr_transpose, A)
    assert lists(indptr, indices) == ([0, 1, 2, 4], [0, 2, 0, 0])
    assert lists(data, order) == ([2, 4, 1, 3], [1, 3, 0, 2])


def test_matmul(executor):
    """(1 2; 0 3) (0 4; 5 0) = (10 4; 15 0)."""
    A = wl.Csr(([1.0, 2.0, 3.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2), executor=executor)
    B = wl.Csr(([4.0, 5.0], [1, 0], [0, 1, 2]), shape=(2, 2), executor=executor)
    indptr, indices, data = executor.run(structure.csr_matmul, A, B)
    assert lists(indptr, indices, data) == ([0, 2, 3], [0, 1, 0], [10, 4, 15])


def test_matmul_keeps_what_cancels(executor):
    """(1 1) (1; -1) = 0."""
    A = wl.Csr(([1.0, 1.0], [0, 1], [0, 2]), shape=(1, 2), executor=executor)
    B = wl.Csr(([1.0, -1.0], [0, 0], [0, 1, 2]), shape=(2, 1), executor=executor)
    indptr, indices, data = executor.run(structure.csr_matmul, A, B)
    assert lists(indptr, indices, data) == ([0, 1], [0], [0])


def test_add(executor, A):
    """Entry (0, 2) of A is 1 + 3; B has it too, and (1, 1)."""
    B = wl.Csr(([10.0, 20.0], [2, 1], [0, 1, 2, 2]), shape=(3, 3), executor=executor)
    indptr, indices, data = executor.run(structure.csr_add, A, B, 2.0, 0.5)
    assert lists(indptr, indices, data) == ([0, 2, 3, 4], [0, 2, 1, 1], [4, 13, 10, 8])


def test_add_keeps_the_pattern_of_what_counts_nothing(executor, A):
    B = wl.Csr(([10.0], [1], [0, 0, 1, 1]), shape=(3, 3), executor=executor)
    indptr, indices, data = executor.run(structure.csr_add, A, B, 1.0, 0.0)
    assert lists(indptr, indices, data) == ([0, 2, 3, 4], [0, 2, 1, 1], [2, 4, 0, 4])


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_results_have_the_index_dtype_of_the_input(executor, index):
    data, indices, indptr = (np.array(a) for a in TRIPLE)
    A = wl.Csr._from_arrays(executor, (3, 3), data, indices.astype(index), indptr.astype(index))
    for operation, others in [
        (structure.csr_sort, ()),
        (structure.csr_transpose, ()),
        (structure.csr_matmul, (A,)),
        (structure.csr_add, (A, 1.0, 1.0)),
    ]:
        for array in executor.run(operation, A, *others):
            assert array.dtype in (index, data.dtype)


def test_products_and_sums_are_those_of_scipy(executor, rng):
    S, T, U = (
        sp.random_array(shape, density=0.1, format="csr", rng=rng)
        for shape in ((30, 20), (20, 25), (30, 20))
    )
    A, B, C = (wl.Csr(M, executor=executor) for M in (S, T, U))
    np.testing.assert_allclose((A @ B).to_dense(), (S @ T).toarray(), atol=1e-14)
    np.testing.assert_allclose((A + C).to_dense(), (S + U).toarray(), atol=1e-15)
    np.testing.assert_array_equal(A.transpose().to_dense(), S.T.toarray())
