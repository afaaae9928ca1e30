"""Copies of values that kernels keep follow the values of every matrix that holds them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument, InvalidMatrix
from wollemi.core.store import Key


class Copy:
    """Stands for values in the order of some kernel."""

    def __init__(self, matrix: wl.Csr) -> None:
        self.update_values(matrix)

    def update_values(self, matrix: Any) -> None:
        self.values = matrix.data.copy()


KERNEL: Key[Copy] = Key("kernel")


def stored(A: wl.Csr) -> Any:
    assert KERNEL in A._copies
    return A._copies.get(KERNEL, lambda: Copy(A)).values


def matrix() -> wl.Csr:
    return wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2), executor="reference")


def test_new_values_reach_the_copies_of_all_that_share_them() -> None:
    A = matrix()
    B = wl.Csr(A)
    for one in (A, B):
        one._copies.get(KERNEL, partial(Copy, one))
    A.update_values([3.0, 4.0])
    for one in (A, B):
        np.testing.assert_array_equal(stored(one), [3.0, 4.0])


def test_a_matrix_with_other_values_has_no_copies() -> None:
    A = matrix()
    A._copies.get(KERNEL, lambda: Copy(A))
    for other in (A * 2.0, A.copy(), A.astype("float32")):
        assert len(other._copies) == 0
    assert other._pattern is A._pattern


def test_sampled_products_written_into_a_matrix_reach_its_copies() -> None:
    A = matrix()
    S = wl.sddmm(A, np.eye(2), np.eye(2))
    other = wl.Csr(S)
    other._copies.get(KERNEL, lambda: Copy(other))
    wl.sddmm(A, 5 * np.eye(2), np.eye(2), out=S)
    np.testing.assert_array_equal(stored(other), [5.0, 5.0])


def test_assigned_values_are_new_values() -> None:
    A = matrix()
    T = A.T
    A._copies.get(KERNEL, lambda: Copy(A))
    A.data = [3.0, 4.0]
    np.testing.assert_array_equal(stored(A), [3.0, 4.0])
    A.data *= 2.0
    np.testing.assert_array_equal(stored(A), [6.0, 8.0])
    np.testing.assert_array_equal(T.data, [6.0, 8.0])
    with pytest.raises(InvalidMatrix, match=r"expected data of shape \(2,\)"):
        A.data = np.ones(3)


def test_scaled_in_place_a_packed_matrix_multiplies_by_the_new_values() -> None:
    S = sp.random_array((4000, 4000), density=2e-3, rng=0)
    # rows of many lengths, which kernels pack
    A, x = (
        wl.Csr(sp.vstack([S, np.ones((1, 4000))])),
        np.random.default_rng(0).standard_normal(4000),
    )
    before = A @ x
    A.data *= 2.0
    np.testing.assert_array_equal(A @ x, 2.0 * before)


@pytest.mark.parametrize("format", ["csr", "coo", "ell", "sellp"])
def test_the_pattern_stays_as_it_is(format: str) -> None:
    A = matrix().asformat(format)
    name = A.arrays[-1]
    with pytest.raises(InvalidArgument, match=f"{name}: the pattern of a matrix stays"):
        setattr(A, name, getattr(A, name))
