"""Requirements of a user's callable and its results; operators of SciPy on every executor."""

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from scipy.sparse.linalg import LinearOperator as SciPyOperator
from scipy.sparse.linalg import aslinearoperator

import wollemi as wl
from wollemi.core.errors import (
    InvalidArgument,
    InvalidMatrix,
    ShapeMismatch,
    UnsupportedOperation,
)

from .made import X2, D, X, Z, lazy

HERE = [line.name for line in wl.available_executors() if line.available]


@pytest.mark.parametrize("shape", [3, (2, 2, 2), (2.5, 2), (-1, 2)])
def test_a_shape_is_two_integers(shape):
    with pytest.raises(InvalidMatrix, match="two non-negative integers"):
        wl.LinearOperator(shape, matvec=np.negative)


def test_matvec_must_be_callable():
    with pytest.raises(InvalidArgument, match="matvec: expected a callable, got NoneType"):
        wl.LinearOperator((2, 2), matvec=None)


@pytest.mark.parametrize("executor", HERE)
def test_a_block_of_another_shape_is_refused(executor):
    operator = wl.LinearOperator(
        (3, 3), matvec=lambda x: x, matmat=lambda X: X[:, :1], executor=executor
    )
    with pytest.raises(ShapeMismatch, match=r"matmat returned shape \(3, 1\), expected \(3, 2\)"):
        operator @ np.ones((3, 2))


class Doubling(SciPyOperator):
    """Written for NumPy, like subclasses of SciPy's class."""

    def __init__(self):
        super().__init__(np.float64, (3, 3))

    def _matvec(self, x):
        return 2 * np.asarray(x)

    def _rmatvec(self, x):
        return 2 * np.asarray(x)


@pytest.mark.parametrize("executor", HERE)
@pytest.mark.parametrize("make", [Doubling, lambda: aslinearoperator(2 * np.eye(3))])
def test_operators_of_scipy_work_on_every_executor(executor, make):
    operator = wl.as_linop(make(), executor)
    np.testing.assert_array_equal(operator @ np.ones(3), np.full(3, 2.0))
    np.testing.assert_array_equal(operator.H @ np.ones((3, 2)), np.full((3, 2), 2.0))


def test_a_callable_may_map_blocks_at_once():
    calls = []

    def matmat(x):
        calls.append(x.shape)
        return D @ x

    operator = wl.LinearOperator((2, 3), matvec=lambda x: D @ x, matmat=matmat)
    np.testing.assert_array_equal(operator @ X2, D @ X2)
    assert calls == [(3, 2)]


@pytest.mark.parametrize("change", [np.atleast_2d, lambda y: y[:, None]])
def test_a_callable_may_return_a_row_or_a_column(change):
    operator = wl.LinearOperator((2, 3), matvec=lambda x: change(D @ x))
    assert (operator @ X).tolist() == [21, 430]


def test_a_callable_that_returns_another_length_is_refused():
    operator = wl.LinearOperator((2, 3), matvec=lambda x: x)
    with pytest.raises(ShapeMismatch, match=r"matvec returned shape \(3,\), expected \(2,\)"):
        operator @ X


def test_a_callable_without_rmatvec_has_no_transpose():
    operator = wl.LinearOperator((2, 3), matvec=lambda x: D @ x)
    with pytest.raises(UnsupportedOperation, match="pass rmatvec="):
        _ = operator.T


def test_a_callable_that_returns_complex_numbers_says_so_in_its_dtype():
    """Dropping the imaginary part would be a wrong answer."""
    operator = wl.LinearOperator((2, 3), matvec=lambda x: Z @ x)
    with pytest.raises(InvalidArgument, match="pass dtype=complex128"):
        operator @ X


def test_a_callable_stays_where_it_is():
    operator = lazy(D)
    assert operator.to("reference") is operator


def test_a_complex_callable_is_not_computed_in_a_real_dtype():
    with pytest.raises(InvalidArgument, match="complex"):
        lazy(Z).astype(np.float64)


def test_scipy_takes_operators(op):
    S = np.array([[4.0, 1.0], [1.0, 3.0]])
    x, info = spla.cg(op(S), np.array([1.0, 2.0]), rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(x, [1 / 11, 7 / 11])


def test_scipy_operators_are_taken():
    operator = wl.as_linop(spla.aslinearoperator(D))
    assert (operator @ X).tolist() == [21, 430]
    np.testing.assert_array_equal(operator.T @ np.ones(2), D.T @ np.ones(2))


def test_to_scipy_operator_applies_and_transposes(op):
    operator = op(Z).to_scipy_operator()
    np.testing.assert_array_equal(operator @ X, Z @ X)
    np.testing.assert_array_equal(operator @ X2, Z @ X2)
    np.testing.assert_array_equal(operator.H @ np.ones(2), Z.conj().T @ np.ones(2))
    np.testing.assert_array_equal(operator.H @ np.eye(2), Z.conj().T)


def test_as_linop_leaves_an_operator_alone():
    operator = lazy(D)
    assert wl.as_linop(operator) is operator


def test_as_linop_takes_arrays():
    np.testing.assert_array_equal(wl.as_linop(D) @ X, D @ X)
