"""The set-up of multigrid on small matrices, with numbers worked out by hand."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.formats.rowwise import filled, row_bounds
from wollemi.core.operations import coarsen

# A row couples to its neighbours by -1, and to the one after next by -0.2 and 0.5 in turn.
A = np.array(
    [
        [2.0, -1.0, -0.2, 0.0],
        [-1.0, 2.0, -1.0, 0.5],
        [-0.2, -1.0, 2.0, -1.0],
        [0.0, 0.5, -1.0, 2.0],
    ]
)


@pytest.fixture
def matrix(executor):
    return wl.Csr(A, executor=executor)


def test_the_size_of_a_complex_number_is_the_sum_of_its_parts(executor, run):
    C = wl.Csr(np.array([[3.0 + 4.0j, 0.0], [-1.0, -2.0j]]), executor=executor)
    y = np.zeros(2)
    run(coarsen.absolute_sums, *row_bounds(C), C.data, y)
    np.testing.assert_array_equal(y, [7.0, 3.0])


def test_balanced_rows_are_those_that_nearly_add_up_to_zero(executor, run):
    rows = [
        [2.0, -1.0, -1.0, 0.0],  # balanced
        [-1.0, 3.0, -1.0, 0.0],  # 2/3 of the diagonal
        [-2.0, 0.5, 2.0, -0.5],  # balanced, with a positive one
        [-1.5, 1.25, -0.75, 1.0],  # so large a positive one that it is not
    ]
    A, balanced = wl.Csr(np.array(rows), executor=executor), np.zeros(1, np.int64)
    run(coarsen.balanced, *row_bounds(A), A.indices, A.data, 0.9, 1.1, balanced)
    assert balanced[0] == 2


def test_row_sums_are_inverted_with_the_sign_of_the_diagonal(executor, run):
    C = wl.Csr(np.array([[-3.0, 1.0], [0.0, 0.0]]), executor=executor)
    inverse, bad = np.full(2, np.nan), np.zeros(1, np.int64)
    run(coarsen.invert_sums, *row_bounds(C), C.indices, C.data, inverse, bad)
    np.testing.assert_array_equal(inverse, [-0.25, 0.0])
    assert bad[0] == 1


def test_row_sums_beside_the_diagonal_bound_the_spectrum(run, matrix):
    y = np.zeros(4)
    run(coarsen.radius, *row_bounds(matrix), matrix.indices, matrix.data, y)
    np.testing.assert_allclose(y, [1.6, 2.25, 2.1, 1.75])
    assert y.max() >= np.abs(np.linalg.eigvals(A / 2)).max()


def test_strong_couplings_are_large_and_negative(matrix):
    S = filled(
        matrix, (4, 4), coarsen.count_strong, coarsen.strong,
        *row_bounds(matrix), matrix.indices, matrix.data, 0.25,
    )  # fmt: skip
    expected = np.where((A < 0) & (A > -1.5) & (A != -0.2), A, 0)
    np.testing.assert_array_equal(S.to_dense(), expected)


def test_couplings_beside_both_diagonals(matrix):
    d = np.array([2.0, 2.0, 2.0, 32.0])
    S = filled(
        matrix, (4, 4), coarsen.count_coupled, coarsen.coupled,
        *row_bounds(matrix), matrix.indices, matrix.data, d, 0.25,
    )  # fmt: skip
    # |a|^2 >= 0.0625 * 4 = 0.25, or 0.0625 * 64 = 4 in the last row
    np.testing.assert_array_equal(S.indptr, [0, 1, 3, 4, 4])


def test_blocks_become_their_norms(run, executor):
    B = wl.Csr(
        np.array([[3.0, 4.0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [2.0, 0, 0, 0]]), executor=executor
    )
    lengths, total = np.zeros(2, np.int32), np.zeros(1, np.int64)
    run(coarsen.count_nodes, B.indptr, B.indices, B.data, 2, lengths, total)
    assert lengths.tolist() == [1, 2]
    indices, data = np.zeros(3, np.int32), np.zeros(3)
    target = np.array([0, 1, 3], np.int32)
    run(coarsen.nodes, B.indptr, B.indices, B.data, 2, lengths, target, indices, data)
    assert (indices.tolist(), data.tolist()) == ([0, 0, 1], [5.0, 2.0, 1.0])


def test_rows_are_ranked_by_who_depends_on_them_then_by_a_hash(run):
    begin, end = np.array([0, 2, 2, 4]), np.array([2, 2, 4, 5])
    key, state, undecided = np.zeros(4, np.int64), np.zeros(4, np.int32), np.zeros(1, np.int64)
    run(coarsen.rank, begin, end, 0, key, state, undecided)
    assert (key >> 32).tolist() == [2, 0, 2, 1]
    assert state.tolist() == [0, -1, 0, 0]
    assert undecided[0] == 3
    many = np.zeros(100_000, np.int64)
    run(coarsen.rank, many, many, 0, many.copy(), np.zeros(many.size, np.int32), undecided)
    assert len({*many.tolist()}) == 1
    keys = np.zeros(many.size, np.int64)
    run(coarsen.rank, many, many, 7, keys, np.zeros(many.size, np.int32), undecided)
    assert np.unique(keys).size == keys.size  # no ties


def test_a_round_selects_the_largest_and_rejects_their_neighbours(run):
    # a path of four rows, each of which depends on both neighbours
    begin, end = np.array([0, 1, 3, 5]), np.array([1, 3, 5, 6])
    indices = np.array([1, 0, 2, 1, 3, 2])
    key = np.array([5, 3, 4, 9])
    state, chosen, after = (np.zeros(4, np.int32) for _ in range(3))
    undecided = np.zeros(1, np.int64)
    run(coarsen.select, begin, end, indices, begin, end, indices, key, state, chosen)
    assert chosen.tolist() == [1, 0, 0, 1]
    run(coarsen.reject, begin, end, indices, chosen, after, undecided)
    assert after.tolist() == [1, -1, -1, 1]
    assert undecided[0] == 0


def test_interpolation_through_fine_rows(executor):
    """Rows 0 and 3 of a path are coarse: the others take half of each."""
    from wollemi.solvers.preconditioners.multigrid import classical

    path = 2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    matrix = wl.Csr(path, executor=executor)
    S = classical.strong_part(matrix, 0.25)
    state, number = np.array([1, -1, -1, 1], np.int32), np.array([0, 1, 1, 1, 2], np.int32)
    factors = classical.rows_of_factors(matrix, S, state, number)
    rows = (one.read(int(one.total[0])) for one in factors)
    P = classical.interpolation(matrix, S, classical.CoarseRows(number, 2, *rows), 4).to_dense()
    # -D^-1 (A_FF + D_beta) D_beta^-1 A_FC with D = 2, beta = -1
    np.testing.assert_allclose(P, [[1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1]])


def test_the_largest_entries_keep_the_sum_of_the_row(executor):
    from wollemi.solvers.preconditioners.multigrid.classical import truncated

    P = wl.Csr(np.array([[0.1, 0.4, 0.2, 0.3], [0.5, 0.5, 0.0, 0.0]]), executor=executor)
    np.testing.assert_allclose(truncated(P, 2).to_dense(), [[0, 4 / 7, 0, 3 / 7], [0.5, 0.5, 0, 0]])


def test_roots_are_far_apart_and_rule_out_what_is_near(run):
    hashes = np.array([1, 2, 3])
    key = hashes + (1 << 40)
    following, undecided = np.zeros(3, np.int64), np.zeros(1, np.int64)
    run(coarsen.decide, key, np.array([key[0], key[2], key[2]]), following, undecided)
    assert (following >> 40).tolist() == [2, 1, 2]
    assert undecided[0] == 1


def test_nodes_join_the_neighbour_that_couples_most(run):
    begin, end = np.array([0, 0, 0, 3]), np.array([0, 0, 0, 3])
    begin[3], end[3] = 0, 3
    label, following, left = np.array([0, 1, -1, -1]), np.zeros(4, np.int64), np.zeros(1, np.int64)
    values, indices = np.array([1.0, -3.0, 9.0]), np.array([0, 1, 2])
    run(coarsen.join, begin, end, indices, values, label, following, left)
    assert following.tolist() == [0, 1, -1, 1]
    assert left[0] == 1


def test_bases_are_orthonormal_and_dependent_columns_are_zero(run):
    given = np.array([[1.0, 1.0, 2.0], [1.0, -1.0, 0.0]])
    basis, coarse = np.zeros(6), np.zeros(9)
    members = np.array([0, 1])
    run(
        coarsen.orthonormalize,
        np.array([0]),
        np.array([2]),
        members,
        1,
        3,
        given.ravel(),
        basis,
        coarse,
    )
    Q, R = basis.reshape(2, 3), coarse.reshape(3, 3)
    s = np.sqrt(0.5)
    np.testing.assert_allclose(Q, [[s, s, 0], [s, -s, 0]], atol=1e-15)
    np.testing.assert_allclose(Q @ R, given, atol=1e-15)


def test_the_galerkin_product(executor):
    P = wl.Csr(np.array([[1.0, 0], [0.5, 0.5], [0, 1.0], [0, 0]]), executor=executor)
    matrix = wl.Csr(A, executor=executor)
    np.testing.assert_allclose(wl.galerkin(P, matrix).to_dense(), P.to_dense().T @ A @ P.to_dense())
    R = wl.Csr(np.eye(2, 4), executor=executor)
    np.testing.assert_allclose(wl.galerkin(P, matrix, R).to_dense(), A[:2] @ P.to_dense())
    with pytest.raises(wl.errors.ShapeMismatch, match="so A is 4x4; got 2x2"):
        wl.galerkin(P, np.eye(2))
    with pytest.raises(wl.errors.ShapeMismatch, match="R has as many columns"):
        wl.galerkin(P, matrix, np.eye(2))
