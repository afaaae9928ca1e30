"""Products with a transpose: by columns at first, then by its rows.

The rows are made once, when they pay, are stored with the matrix and follow its values.
"""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.formats.transposed import VECTORS_BY_COLUMNS

S = sp.random_array((30, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
X, Y = np.arange(1.0, 31.0), np.arange(1.0, 21.0)


def transpositions(call):
    with wl.profile() as seen:
        call()
    return sum(entry.calls for entry in seen if entry.operation == "csr.transpose")


@pytest.fixture(params=["reference", "omp"])
def A(request):
    return wl.Csr(S, executor=request.param)


def many(product):
    return [product() for _ in range(VECTORS_BY_COLUMNS + 1)]


@pytest.mark.parametrize("product", [lambda A: A.T @ X, lambda A: X @ A, lambda A: A.H @ X])
def test_a_matrix_is_transposed_once_and_only_for_many_products(A, product):
    few = VECTORS_BY_COLUMNS
    assert transpositions(lambda: [product(A) for _ in range(few)]) == 0
    np.testing.assert_allclose(product(A), S.T @ X)
    A = A.copy()
    assert transpositions(lambda: [product(A) for _ in range(few + 1)]) == (
        A.executor.backend == "omp"
    )
    assert transpositions(lambda: [product(A) for _ in range(3)]) == 0
    np.testing.assert_allclose(product(A), S.T @ X)


def test_a_block_counts_as_its_columns():
    A = wl.Csr(S, executor="omp")
    block = np.ones((30, VECTORS_BY_COLUMNS - 1))
    assert transpositions(lambda: A.T @ block) == 0
    assert transpositions(lambda: A.T @ X) == 0
    assert transpositions(lambda: A.T @ X) == 1
    wide = np.ones((30, VECTORS_BY_COLUMNS + 1))
    assert transpositions(lambda: wl.Csr(S, executor="omp").T @ wide) == 1


def test_a_matrix_by_columns_is_multiplied_by_them_at_first():
    C = wl.Csc(S.T.tocsc(), executor="omp")
    assert transpositions(lambda: [C @ X for _ in range(VECTORS_BY_COLUMNS)]) == 0
    assert transpositions(lambda: [C @ X for _ in range(3)]) == 1
    np.testing.assert_allclose(C @ X, S.T @ X)


def test_the_loops_of_solvers_go_by_rows_from_the_beginning():
    A = wl.Csr(np.eye(20) + 0.1 * S.toarray()[:20, :20], executor="omp")
    assert transpositions(lambda: wl.solvers.Bicg(A).solve(Y)) == 1
    assert transpositions(lambda: A.T @ Y) == 0
    assert transpositions(lambda: wl.solvers.Lsqr(wl.Csr(S, executor="omp")).solve(X)) == 1


def test_who_makes_the_rows_before_has_the_same_bits_in_all_products():
    A = wl.Csr(S, executor="omp")
    rows = A.T.by_rows
    assert transpositions(lambda: A.T @ X) == 0
    for made in many(lambda: A.T @ X):
        np.testing.assert_array_equal(made, rows @ X)


def test_products_by_columns_do_not_read_what_they_overwrite(A):
    out = np.full(20, np.nan)
    A.T.apply(X, out, alpha=-2.0)
    np.testing.assert_allclose(out, -2 * (S.T @ X))
    A.T.apply(X, out, alpha=3.0, beta=0.5)
    np.testing.assert_allclose(out, 2 * (S.T @ X))


def test_matrices_of_one_pattern_share_the_pattern_of_the_transpose(A):
    many(lambda: A.T @ X)
    B = A * 2.0
    assert transpositions(lambda: many(lambda: B.T @ X)) == 0
    np.testing.assert_allclose(B.T @ X, 2 * (S.T @ X))


def test_a_complex_transpose_is_conjugated_without_another_transposition():
    Z = wl.Csr(S + 1j * S, executor="omp")
    many(lambda: Z.T @ X)
    H = Z.H
    assert transpositions(lambda: many(lambda: H @ X)) == 0
    for product in (lambda: H @ X, lambda: Z.H @ X):
        np.testing.assert_allclose(product(), (S + 1j * S).conj().T @ X)


CHANGES = {
    "update_values": lambda A, T: A.update_values(3 * S.data),
    "in place": lambda A, T: setattr(A, "data", 3 * S.data),
    "of the transpose": lambda A, T: T.update_values(3 * S.data),
    "of another transpose": lambda A, T: A.T.update_values(3 * S.data),
    "of the transpose of the transpose": lambda A, T: T.T.update_values(3 * S.data),
}


@pytest.mark.parametrize("times", [1, VECTORS_BY_COLUMNS + 1])
@pytest.mark.parametrize("change", CHANGES)
def test_new_values_reach_the_stored_rows(A, change, times):
    T = A.T
    for _ in range(times):
        T @ X
    CHANGES[change](A, T)
    for transpose in (T, A.T, A.T.T.T):
        np.testing.assert_allclose(transpose @ X, 3 * (S.T @ X))
    np.testing.assert_allclose(A @ Y, 3 * (S @ Y))
    np.testing.assert_allclose(T.T @ Y, 3 * (S @ Y))


def test_conjugates_have_values_of_their_own():
    Z = wl.Csr(S + 1j * S)
    H = Z.H
    _ = H @ X
    Z.update_values(2 * Z.data)
    np.testing.assert_allclose(H @ X, (S + 1j * S).conj().T @ X)
    H.update_values(3 * H.data)
    np.testing.assert_allclose(H @ X, 3 * ((S + 1j * S).conj().T @ X))


def test_a_pattern_that_is_replaced_leaves_the_transpose_as_it_was(A):
    D = wl.Csr(([1.0, 2.0, 4.0], [1, 0, 1], [0, 3]), shape=(1, 2), executor=A.executor)
    T, one = D.T, np.ones(1)
    assert (T @ one).tolist() == [2, 5]
    D.sum_duplicates()
    D.update_values(np.array([10.0, 20.0]))
    assert (T @ one).tolist() == [2, 5]
    assert (D.T @ one).tolist() == [10, 20]


def test_the_transpose_of_columns_keeps_its_plan(A):
    C = wl.Csc(S.tocsc(), executor=A.executor)
    np.testing.assert_allclose(Y @ C.T, S @ Y)
    plan = C.T.plan
    assert C.T.plan is plan
    np.testing.assert_allclose(X @ C, X @ S)
    B = C.T
    B.sort_indices()
    B.eliminate_zeros()
    np.testing.assert_allclose(X @ C, X @ S)


def test_a_transpose_that_was_changed_in_place_is_not_returned_again():
    C = wl.Csc(([1.0, 2.0, 4.0], [1, 0, 1], [0, 3]), shape=(2, 1))
    B = C.T
    B.sum_duplicates()
    assert B.nnz == 2 and C.T.nnz == 3
    np.testing.assert_array_equal(C.T.to_dense(), [[2, 5]])


def by_columns_and_rows(A):
    return many(lambda: A.T @ X)


def test_nothing_waits_for_the_garbage_collector():
    gc.disable()
    try:
        A = wl.Csr(S, executor="omp")
        _ = by_columns_and_rows(A), X @ A, A.T.T @ Y
        gone = weakref.ref(A)
        del A
        assert gone() is None
    finally:
        gc.enable()


def test_matrices_with_stored_rows_are_copied_and_pickled(A):
    import copy
    import pickle

    T = A.T
    many(lambda: T @ X)
    for made in (pickle.loads(pickle.dumps(T)), copy.copy(T), T.copy()):
        np.testing.assert_allclose(made @ X, S.T @ X)
        made.update_values(2 * made.data)
        np.testing.assert_allclose(made @ X, 2 * (S.T @ X))
    np.testing.assert_allclose(T @ X, S.T @ X)
