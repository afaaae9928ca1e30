"""Copies of values that kernels keep follow the values of every matrix that holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

import wollemi as wl


class Copy:
    """Stands for values in the order of some kernel."""

    def __init__(self, matrix: wl.Csr) -> None:
        self.update_values(matrix)

    def update_values(self, matrix: Any) -> None:
        self.values = matrix.data.copy()


def matrix() -> wl.Csr:
    return wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2), executor="reference")


def test_new_values_reach_the_copies_of_all_that_share_them() -> None:
    A = matrix()
    B = wl.Csr(A)
    for one in (A, B):
        one._copies["kernel"] = Copy(one)
    A.update_values([3.0, 4.0])
    for one in (A, B):
        np.testing.assert_array_equal(one._copies["kernel"].values, [3.0, 4.0])


def test_a_matrix_with_other_values_has_no_copies() -> None:
    A = matrix()
    A._copies["kernel"] = Copy(A)
    for other in (A * 2.0, A.copy(), A.astype("float32")):
        assert other._copies == {}
    assert other._pattern is A._pattern


def test_sampled_products_written_into_a_matrix_reach_its_copies() -> None:
    A = matrix()
    S = wl.sddmm(A, np.eye(2), np.eye(2))
    other = wl.Csr(S)
    other._copies["kernel"] = Copy(other)
    wl.sddmm(A, 5 * np.eye(2), np.eye(2), out=S)
    np.testing.assert_array_equal(other._copies["kernel"].values, [5.0, 5.0])
