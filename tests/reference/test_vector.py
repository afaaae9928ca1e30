import numpy as np
import pytest

from wollemi.core.operations import vector

from .helpers import columns, unset


def test_fill_writes_one_value_everywhere(run):
    y = unset(2, 2)
    run(vector.fill, y, 7.0)
    np.testing.assert_array_equal(y, [[7, 7], [7, 7]])


def test_axpby(run):
    x, y = columns([1, 2]), columns([10, 20])
    run(vector.axpby, x, y, 2.0, 0.5)
    np.testing.assert_array_equal(y, columns([7, 14]))


def test_axpby_with_beta_0_does_not_read_y(run):
    x, y = columns([1, 2]), unset(2, 1)
    run(vector.axpby, x, y, 3.0, 0.0)
    np.testing.assert_array_equal(y, columns([3, 6]))


def test_axpby_works_on_itself(run):
    y = columns([1, 2])
    run(vector.axpby, y, y, 2.0, 1.0)
    np.testing.assert_array_equal(y, columns([3, 6]))


def test_scale_rows(run):
    d, x, y = np.array([1.0, 10.0]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 2))
    run(vector.scale_rows, d, x, y, 2.0, -1.0)
    np.testing.assert_array_equal(y, [[1, 3], [59, 79]])


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_gather_takes_rows_in_any_number_and_order(run, index):
    x, y = columns([10, 20, 30]), columns([1, 1, 1, 1])
    run(vector.gather, np.array([2, 0, 0, 1], index), x, y, 1.0, 5.0)
    np.testing.assert_array_equal(y, columns([35, 15, 15, 25]))


def test_dot_conjugates_its_first_argument(run):
    x, y, value = columns([1 + 1j, 0], [0, 1j]), columns([2, 9], [9, 3]), unset(2, dtype=complex)
    y = y.astype(complex)
    run(vector.dot, x, y, value)
    np.testing.assert_array_equal(value, [2 - 2j, -3j])


def test_norm(run):
    value = unset(2)
    run(vector.norm, columns([3, 4], [0, -2]), value)
    np.testing.assert_array_equal(value, [5, 2])


def test_norm_of_complex_numbers_is_real(run):
    value = unset(1)
    run(vector.norm, columns([1 + 1j, 1 - 1j]), value)
    np.testing.assert_array_equal(value, [2])


def test_largest_is_a_distance_from_zero(run):
    value = unset(2)
    run(vector.largest, columns([1, -3], [3 + 4j, 4]), value)
    np.testing.assert_array_equal(value, [3, 5])


@pytest.mark.parametrize("bad", [np.nan, complex(np.nan, np.inf), complex(1, np.nan)])
def test_largest_of_what_holds_nan_is_nan(run, bad):
    value = unset(1)
    run(vector.largest, np.array([[1 + 0j], [bad], [9]]), value)
    assert np.isnan(value[0])


def test_sums_over_no_rows_are_zero(run):
    nothing, value = np.zeros((0, 2)), unset(2)
    for operation in (vector.norm, vector.largest):
        run(operation, nothing, value)
        np.testing.assert_array_equal(value, [0, 0])
    run(vector.dot, nothing, nothing, value)
    np.testing.assert_array_equal(value, [0, 0])


def test_single_precision_sums_are_pairwise(run):
    """One after the other, adding 0.1 a million times in single precision gives 100958."""
    x, value = np.full((1_000_000, 1), 0.1, np.float32), unset(1, dtype=np.float32)
    run(vector.dot, x, np.ones_like(x), value)
    assert abs(value[0] - 100_000) < 0.05


def test_factors_do_not_widen_single_precision(run):
    x, y = np.ones((1, 1), np.float32), np.ones((1, 1), np.float32)
    run(vector.axpby, x, y, np.float64(0.1), 0.0)
    assert y[0, 0] == np.float32(0.1)
