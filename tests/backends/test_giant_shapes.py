"""Sums and products of matrices with far more columns than memory could hold."""

import numpy as np
import pytest

import wollemi as wl

WIDE = 1 << 62  # rows times columns is above 2^63


def giant(on):
    row, column = [4, 0, 4, 0, 0, 2], [5, WIDE - 1, 5, 5, 5, 7]
    return wl.Csr((np.arange(1.0, 7.0), (row, column)), shape=(5, WIDE), executor=on)


@pytest.fixture
def both(executor):
    """Return the executor and the reference; the expected results are worked out by hand here."""
    return "reference", executor


def entries(A):
    made = A.asformat("csr").to_scipy().tocoo()
    return {(int(i), int(j)): v for i, j, v in zip(*made.coords, made.data, strict=True)}


def test_duplicates_are_added_up(both):
    for on in both:
        expected = {(0, 5): 9.0, (0, WIDE - 1): 2.0, (2, 7): 6.0, (4, 5): 4.0}
        assert entries(giant(on)) == expected


def test_sums(both):
    for on in both:
        A = giant(on)
        assert entries(A + 2 * A) == {place: 3 * v for place, v in entries(A).items()}


def test_products(both):
    for on in both:
        B = wl.Csr(np.array([[1.0, 0, 2, 0, 0], [0, 0, 0, 0, 3]]), executor=on)
        expected = {(0, 5): 9.0, (0, WIDE - 1): 2.0, (0, 7): 12.0, (1, 5): 12.0}
        assert entries(B @ giant(on)) == expected
