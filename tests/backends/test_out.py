"""Results go where the user wants them, in a wider dtype too, and operators without a home follow.

``tests/reference/test_out.py`` runs the same tests on the reference executor.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wollemi as wl
from wollemi.core.errors import ExecutorMismatch, InvalidArgument, ShapeMismatch

D = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
THIRDS = D / 3
X = np.array([1.0, 10.0, 100.0])
EYE = np.eye(3)

OPERATORS = {
    "Csr": lambda d, e: wl.Csr(d, executor=e),
    "Ell": lambda d, e: wl.Ell(d, executor=e),
    "Dense": lambda d, e: wl.Dense(d, executor=e),
    "Sum": lambda d, e: wl.Csr(d, executor=e) + wl.LinearOperator(
        d.shape, lambda x: 0 * x[:2], dtype=d.dtype, executor=e
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OPERATORS)
@pytest.mark.parametrize("matrix", "fd")
@pytest.mark.parametrize("vector", "fdF")
@pytest.mark.parametrize("out", "fdFD")
@pytest.mark.parametrize("columns", [None, 2])
def test_an_out_that_holds_the_result_is_taken(executor, kind, matrix, vector, out, columns):
    """Everything is computed in its dtype; one that loses something is refused untouched."""
    A, x = THIRDS.astype(matrix), (X / 7).astype(vector)
    x = x if columns is None else np.column_stack([x] * columns)
    operator, right = OPERATORS[kind](A, executor), executor.from_host(x.copy())
    start = np.full((A @ x).shape, 0.1).astype(out)
    target = executor.from_host(start.copy())
    if np.result_type(A, x, start) != start.dtype:
        with pytest.raises(InvalidArgument, match=r"out: expected dtype .* that holds its values"):
            operator.apply(right, out=target)
        np.testing.assert_array_equal(executor.to_host(target), start)
        return
    eps = np.finfo(out).eps
    assert operator.apply(right, out=target, alpha=2.0, beta=-1.0) is target
    expected = 2 * A.astype(out) @ x.astype(out) - start
    np.testing.assert_allclose(executor.to_host(target), expected, rtol=8 * eps)
    operator.apply(right, out=target)
    np.testing.assert_allclose(executor.to_host(target), (expected + start) / 2, rtol=8 * eps)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.bool_, object, "V8"])
def test_an_out_of_a_dtype_without_kernels_is_refused(executor, dtype):
    out = np.zeros(2, dtype)
    with pytest.raises(InvalidArgument, match="out: expected dtype float64"):
        wl.Csr(D, executor=executor).apply(X, out=out)


def test_a_complex_factor_needs_a_complex_out(executor):
    A, out = wl.Csr(D, executor=executor), np.zeros(2)
    with pytest.raises(InvalidArgument, match="out: expected dtype complex128"):
        A.apply(X, out=out, alpha=1j)
    wide = np.zeros(2, complex)
    np.testing.assert_array_equal(A.apply(X, out=wide, alpha=1j), 1j * (D @ X))


@pytest.mark.parametrize(
    "out",
    [
        np.ones(2, ">f8"),
        np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float64),
        np.ones(4)[::2],
        np.ones(2)[::-1],
        np.ma.masked_array(np.ones(2)),
    ],
    ids=["big-endian", "not aligned", "strided", "reversed", "masked array without a mask"],
)
def test_every_layout_of_numpys_arrays_is_written_to(executor, out):
    A = wl.Csr(D, executor=executor)
    assert A.apply(X, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), D @ X)
    A.apply(X, out=out, beta=2.0)
    np.testing.assert_array_equal(np.asarray(out), 3 * D @ X)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_a_tensor_of_pytorch_is_written_to(executor, dtype):
    out = torch.full((2,), np.nan, dtype=dtype)
    assert wl.Csr(D, executor=executor).apply(X, out=out) is out
    np.testing.assert_array_equal(out.numpy(), D @ X)
    block = torch.ones((2, 2), dtype=torch.float32).T
    wl.spmm(wl.Csr(D.astype("f"), executor=executor), np.ones((3, 2), "f"), out=block)
    np.testing.assert_array_equal(block.numpy(), np.column_stack([D.sum(1)] * 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_tensor_of_another_dtype_is_refused(executor, dtype):
    out = torch.ones(2, dtype=dtype)
    with pytest.raises(InvalidArgument, match="out: expected dtype float64"):
        wl.Csr(D, executor=executor).apply(X, out=out)
    assert out.tolist() == [1, 1]


class Column:
    """As columns of tables are: a shape and values, but no memory that others may write to."""

    shape, dtype = (2,), np.dtype(float)

    def __array__(self, dtype=None, copy=None):
        return np.zeros(2)


@pytest.mark.parametrize("out", [Column(), wl.Csr(np.eye(2)), [0.0, 0.0], type("S", (), {})()])
def test_what_a_result_would_be_lost_in_is_refused(executor, out):
    with pytest.raises(InvalidArgument, match="out: expected an array to write to"):
        wl.Csr(D, executor=executor).apply(X, out=out)


def test_masked_elements_are_not_written_to(executor):
    out = np.ma.masked_array(np.ones(2), mask=[True, False])
    with pytest.raises(InvalidArgument, match="masked"):
        wl.Csr(D, executor=executor).apply(X, out=out)


def test_products_with_blocks_check_their_out_as_well(executor):
    A, B = wl.Csr(D, executor=executor), np.ones((3, 2))
    with pytest.raises(InvalidArgument, match="out: expected dtype float64"):
        wl.spmm(A, B, out=torch.ones((2, 2), dtype=torch.float32))
    with pytest.raises(InvalidArgument, match="out: expected an array"):
        wl.spmm(A, B, out=wl.Dense(np.ones((2, 2))))
    with pytest.raises(ShapeMismatch):
        wl.spmm(A, B, out=np.ones((2, 3)))


# ---- operators without a home

LIGHT = {
    "identity": (lambda: wl.Identity(3, dtype=float), EYE),
    "multiple": (lambda: 2 * wl.Identity(3), 2 * EYE),
    "permutation": (lambda: wl.Permutation([2, 0, 1]), EYE[[2, 0, 1]]),
    "diagonal": (lambda: wl.Diagonal(np.array([1.0, 2.0, 3.0])), np.diag([1.0, 2.0, 3.0])),
    "function": (lambda: wl.LinearOperator((3, 3), matvec=lambda x: x), EYE),
    "expression": (
        lambda: wl.Identity(3) + wl.Permutation([2, 0, 1]) @ (2 * wl.Identity(3)),
        EYE + 2 * EYE[[2, 0, 1]],
    ),
}


@pytest.mark.parametrize("name", LIGHT)
def test_what_has_neither_home_nor_entries_follows_the_vector(executor, name):
    make, expected = LIGHT[name]
    with wl.default_executor("reference"):
        operator = make()
    x = executor.from_host(X.copy())
    for made in (operator @ x, operator.apply(x, alpha=1.0), operator.dot(x)):
        assert executor.owns(made)
        np.testing.assert_array_equal(executor.to_host(made), expected @ X)
    out = executor.from_host(np.zeros(3))
    assert operator.apply(X, out=out) is out
    np.testing.assert_array_equal(executor.to_host(out), expected @ X)
    np.testing.assert_array_equal(operator @ X, expected @ X)


def test_what_has_a_home_or_entries_does_not_follow_a_vector(executor):
    """Each product would copy the entries; nothing is copied between devices silently."""
    x = executor.from_host(X.copy())
    if isinstance(x, np.ndarray):
        return  # arrays of the host have no home
    with wl.default_executor("reference"):
        made = wl.Csr(D), wl.Identity(3, executor="reference"), wl.Csr(EYE) @ wl.Identity(3)
    for operator in made:
        with pytest.raises(ExecutorMismatch, match="move one of them"):
            operator @ x
