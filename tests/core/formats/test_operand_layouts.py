"""Vectors and blocks of any layout, and masked arrays, meet matrices on every executor."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument

D = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 6.0], [0.0, 0.0, 1.0]])
X, B = np.arange(1.0, 4.0), np.arange(12.0).reshape(3, 4)
LAYOUTS = {
    "reversed": X[::-1],
    "reversed column": B[::-1, :1],
    "broadcast": np.broadcast_to(2.0, (3,)),
    "broadcast column": np.broadcast_to([[2.0]], (3, 1)),
    "reversed rows": B[::-1],
    "broadcast rows": np.broadcast_to(B[:1], (3, 4)),
    "strided rows": np.repeat(B, 2, axis=0)[::2],
    "columns first": np.asfortranarray(B),
    "float32": X[::-1].astype("float32"),
}


@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_operands_come_in_any_layout(on, x):
    A = wl.Csr(D, executor=on)
    np.testing.assert_array_equal(wl.spmm(A, x), D @ x)
    np.testing.assert_array_equal(A @ x, D @ x)
    for out in (np.ones((4, *x.shape[1:]))[::-1], np.ones((8, *x.shape[1:]))[::2]):
        wl.spmm(A, x.astype(float), out=out, alpha=2.0, beta=3.0)
        np.testing.assert_array_equal(out, 2 * D @ x + 3)


@pytest.mark.parametrize(
    "values",
    [np.arange(7.0)[::-1], np.broadcast_to(2.0, (7,)), np.repeat(np.arange(7.0), 2)[::2]],
    ids=["reversed", "broadcast", "strided"],
)
def test_values_come_in_any_layout(on, values):
    A = wl.Csr(D, executor=on)
    E = np.zeros_like(D)
    E[D != 0] = values
    np.testing.assert_array_equal(wl.spmm(A, B, values=values), E @ B)
    np.testing.assert_array_equal(wl.spmm(A, X, values=values), E @ X)
    batch = np.stack([values, 2 * values])[::-1]
    np.testing.assert_array_equal(wl.spmm(A, B, values=batch), [2 * E @ B, E @ B])


def test_sampled_products_take_one_column_of_any_layout(on):
    A = wl.Csr(D, executor=on)
    C, E = np.arange(4.0)[::-1, None], np.broadcast_to([[3.0]], (3, 1))
    out = np.zeros(7)[::-1]
    wl.sddmm(A, C, E, out=out)
    np.testing.assert_array_equal(out, (C @ E.T)[D != 0])
    np.testing.assert_array_equal(wl.fusedmm(A, C, E, E), np.where(D != 0, C @ E.T, 0) @ E)


MASKED = np.ma.masked_array(X, mask=[False, True, False])


@pytest.mark.parametrize(
    "call",
    [
        lambda A: A @ MASKED,
        lambda A: A.apply(MASKED),
        lambda A: A.apply(X, out=np.ma.masked_array(np.ones(4), mask=[1, 0, 0, 0])),
        lambda A: np.ma.masked_array(np.ones(4), mask=[1, 0, 0, 0]) @ A,
        lambda A: wl.spmm(A, MASKED),
        lambda A: A.update_values(np.ma.masked_array(np.ones(7), mask=7 * [True])),
        lambda A: wl.Diagonal(MASKED, executor=A.executor),
        lambda A: wl.Dense(np.ma.masked_array(D, mask=D == 0), executor=A.executor),
        lambda A: wl.Csr(np.ma.masked_array(D, mask=D == 0), executor=A.executor),
        lambda A: wl.Csr((MASKED, [0, 1, 2], [0, 1, 2, 3]), executor=A.executor),
        lambda A: wl.linalg.cg(wl.Csr(np.eye(3), executor=A.executor), MASKED),
    ],
)
def test_masked_elements_are_refused(on, call):
    A = wl.Csr(D, executor=on)
    with pytest.raises(InvalidArgument, match=r"masked; replace them with \.filled"):
        call(A)


def test_masked_arrays_without_masked_elements_are_arrays(on):
    A = wl.Csr(D, executor=on)
    x = np.ma.masked_array(X, mask=False)
    found = A @ x
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, D @ X)
    np.testing.assert_array_equal(wl.spmm(A, x), D @ X)
