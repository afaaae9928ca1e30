"""The pieces of incomplete factorizations on small matrices, by hand."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.formats.rowwise import row_bounds
from wollemi.core.operations import ilu

#: Sorted rows: one without a diagonal entry, one that is empty.
DENSE = np.array([[4.0, 0, 2, 0], [1, 8, 0, 0], [3, 0, 0, 5], [0, 0, 0, 0]])


def test_the_diagonal_and_both_triangles_are_located(executor, run):
    A = wl.Csr(DENSE, executor=executor)
    diagonal, below, above = (np.full(4, -77, A.index_dtype) for _ in range(3))
    missing, lower, upper = (np.full(1, -77) for _ in range(3))
    run(ilu.locate, *row_bounds(A), A.indices, diagonal, below, above, missing, lower, upper)
    assert diagonal.tolist() == [0, 3, 5, 6]
    assert below.tolist() == [0, 1, 1, 0] and above.tolist() == [1, 0, 1, 0]
    assert (missing[0], lower[0], upper[0]) == (2, 2, 2)


def test_a_part_of_a_pattern_has_the_columns_of_its_rows(executor, run):
    A = wl.Csr(DENSE, executor=executor)
    first, length = (np.array(a, A.index_dtype) for a in ([1, 3, 5, 6], [1, 0, 1, 0]))
    target, columns = np.array([0, 1, 1, 2, 2], A.index_dtype), np.full(2, -77, A.index_dtype)
    run(ilu.part, first, length, A.indices, target, columns)
    assert columns.tolist() == [2, 3]


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_scaled_values_are_zero_where_the_matrix_has_none(executor, run, shift):
    A = wl.Csr(DENSE, executor=executor)
    P = wl.Csr(DENSE + 9 * np.eye(4), executor=executor)  # its pattern alone counts
    scale, phase = np.array([0.5, 2.0, 1.0, 1.0]), np.array([1.0, -1.0, 1.0, 1.0])
    v, outside = np.full(P.nnz, np.nan), np.full(1, -77)
    matrix, pattern = ((*row_bounds(M), M.indices) for M in (A, P))
    run(ilu.scale, *matrix, A.data, *pattern, scale, phase, shift, v, outside)
    expected = scale[:, None] * DENSE * scale + shift * np.diag(phase)
    np.testing.assert_array_equal(P._with_data(v).to_dense(), expected)
    assert outside[0] == 0


def test_entries_outside_of_the_pattern_are_counted(executor, run):
    A, P = wl.Csr(np.ones((3, 3)), executor=executor), wl.Csr(np.eye(3), executor=executor)
    v, outside, ones = np.full(3, np.nan), np.full(1, -77), np.ones(3)
    matrix, pattern = ((*row_bounds(M), M.indices) for M in (A, P))
    run(ilu.scale, *matrix, A.data, *pattern, ones, ones, 0.0, v, outside)
    assert v.tolist() == [1.0, 1.0, 1.0] and outside[0] == 6


def test_pivots_and_factors_out_of_bounds_are_counted(executor, run):
    A = wl.Csr(np.array([[2.0, 50.0], [np.nan, -3.0]]), executor=executor)
    count, diagonal = np.full(1, -77), np.array([0, 3], A.index_dtype)
    for of_real, bad in ((0, 2), (1, 3)):  # NaN and 50; and a pivot that is not positive
        run(ilu.unfit, *row_bounds(A), diagonal, A.data, 1.0, 40.0, of_real, count)
        assert count[0] == bad


@pytest.mark.parametrize("of_real", [0, 1])
def test_factors_in_one_array_are_split(executor, run, of_real):
    v = np.array([[2.0, 6.0, 0], [3.0, 4.0 + 4j, 8.0], [0, 5.0, 1.0]], complex)
    P = wl.Csr(v, executor=executor)
    begin, end = row_bounds(P)
    diagonal = np.array([0, 3, 6], P.index_dtype)
    to_upper, to_lower = (np.array(a, P.index_dtype) for a in ([0, 1, 2, 2], [0, 0, 1, 2]))
    upper, lower, adjoint = (np.full(2, np.nan, complex) for _ in range(3))
    inverse = np.full(3, np.nan, complex)
    run(ilu.upper, diagonal, end, P.data, to_upper, of_real, upper, inverse)
    run(ilu.lower, begin, diagonal, P.data, to_lower, lower)
    run(ilu.adjoint, np.array([1, 0], P.index_dtype), upper, adjoint)
    np.testing.assert_allclose(upper, [-3.0, -1 + 1j])
    np.testing.assert_allclose(inverse, [0.5, 0.125 if of_real else 0.125 - 0.125j, 1.0])
    np.testing.assert_array_equal(lower, [-3.0, -5.0])
    np.testing.assert_allclose(adjoint, [-1 - 1j, -3.0])


def test_triangles_take_in_pivots_and_scaling(executor, run):
    L = wl.Csr(np.array([[0.0, 0], [6, 0]]), executor=executor)
    U = wl.Csr(np.array([[0.0, 4], [0, 0]]), executor=executor)
    inverse, left, right = np.array([2.0, 5.0]), np.array([7.0, 0.5]), np.array([1.0, 8.0])
    given = (*row_bounds(L), L.indices, L.data, *row_bounds(U), U.indices, U.data)
    below, above, first, lost = np.zeros(1), np.zeros(1), np.zeros(2), np.full(1, -77)
    run(ilu.join, *given, inverse, left, right, below, above, first, lost)
    assert (below[0], above[0], first.tolist(), lost[0]) == (6.0, 0.5, [14.0, 2.5], 0)
    inverse[0], right[1] = 1e-300, 0.0
    left[1] = 1e-300
    run(ilu.join, *given, inverse, left, right, below, above, first, lost)
    assert lost[0] == 2  # 6 / 0 and 4 / 0
