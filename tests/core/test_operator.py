"""What a user's own callable must be and return, and operators of SciPy on every executor."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator as SciPyOperator
from scipy.sparse.linalg import aslinearoperator

import wollemi as wl
from wollemi.core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch

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
    """Written for NumPy, as what derives from SciPy's class is."""

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
