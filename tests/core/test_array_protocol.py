"""Operators meet NumPy and SciPy: results, or errors that name the alternative."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import wollemi as wl
from wollemi.core.errors import InvalidArgument, UnsupportedOperand

from .made import D, X, Z, lazy


def test_an_operator_is_no_array(op):
    for call in (np.asarray, np.array, lambda A: np.array([A, A], object), np.ascontiguousarray):
        with pytest.raises(UnsupportedOperand, match=r"no array: .* A\.to_scipy\(\)"):
            call(op(D))


def test_a_dense_matrix_is_one():
    A = wl.Dense(D)
    np.testing.assert_array_equal(np.asarray(A), D)
    assert np.asarray(A, np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(A), A.data)
    np.testing.assert_array_equal(sp.csr_array(A).toarray(), D)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_scipy_still_leaves_products_with_a_dense_one_to_us(format):
    found = sp.csr_array(D).asformat(format) @ wl.Dense(D.T)
    assert isinstance(found, wl.Csr)
    np.testing.assert_array_equal(found.toarray(), D @ D.T)


@pytest.mark.parametrize(
    "call",
    [
        sp.csr_array,
        sp.csc_array,
        sp.coo_array,
        sp.lil_array,
        sp.dia_array,
        lambda A: sp.hstack([A, A]),
        lambda A: sp.vstack([A, A]),
        lambda A: sp.kron(A, A),
        lambda A: spl.spsolve(A, np.ones(2)),
        lambda A: spl.splu(A),
        lambda A: sp.csr_array(D) * A,
    ],
)
def test_functions_of_scipy_say_where_its_matrix_is(op, call):
    with pytest.raises((ValueError, TypeError)) as raised:
        call(op(D))
    cause = raised.value if isinstance(raised.value, UnsupportedOperand) else raised.value.__cause__
    assert "A.to_scipy()" in str(cause)


@pytest.mark.parametrize(
    "call",
    [np.exp, np.cos, np.isnan, np.linalg.norm, np.average, lambda A: np.hypot(A, X[:2])],
)
def test_functions_of_numpy_say_what_to_write(op, call):
    with pytest.raises(UnsupportedOperand, match=r"numpy\.\w+ does not take a .* A\.to_scipy\(\)"):
        call(op(D))


def test_functions_that_are_operators_of_python_are_those(op):
    np.testing.assert_array_equal(np.matmul(op(D), X), D @ X)
    np.testing.assert_array_equal(np.matmul(X[:2], op(D)), X[:2] @ D)
    for made, expected in (
        (np.multiply(2, op(D)), 2 * D),
        (np.multiply(op(D), 2), 2 * D),
        (np.add(op(D), op(D)), 2 * D),
        (np.subtract(op(D), op(3 * D)), -2 * D),
        (np.negative(op(D)), -D),
        (np.true_divide(op(D), 4.0), D / 4),
    ):
        np.testing.assert_array_equal(made @ np.eye(3), expected)
    np.testing.assert_array_equal(np.conjugate(wl.Csr(Z)).toarray(), Z.conj())
    np.testing.assert_array_equal(np.abs(wl.Csr(-D)).toarray(), D)


def test_arrays_are_not_overwritten_with_operators(op):
    y = np.ones((2, 3))
    with pytest.raises(UnsupportedOperand):
        y += lazy(D)
    with pytest.raises(UnsupportedOperand, match="cannot write into an operator"):
        np.add(y, y, out=op(D))
    assert y.tolist() == np.ones((2, 3)).tolist()


@pytest.mark.parametrize("divisor", [X, np.ones((2, 3)), [1.0, 2.0, 3.0], sp.csr_array(D)])
def test_dividing_by_an_array_says_what_to_write(divisor):
    with pytest.raises(UnsupportedOperand, match=r"wl\.Diagonal\(1 / d\) @ A"):
        lazy(D) / divisor
    if isinstance(divisor, np.ndarray):
        with pytest.raises(UnsupportedOperand, match=r"A\.to_scipy\(\)"):
            divisor / lazy(D)


def test_a_lazy_operator_equals_itself_alone():
    A = lazy(D)
    twin = lazy(D)
    assert A == A
    assert twin != A
    assert np.equal(X, A) is False and np.not_equal(A, X) is True
    assert A in [None, A]


def test_no_operator_is_true_or_false(op):
    with pytest.raises(InvalidArgument, match="neither true nor false: ask A is not None"):
        bool(op(D))
    with pytest.raises(ValueError):  # as of SciPy and NumPy
        not op(D)


class Foreign:
    """An object that can be multiplied by an operator."""

    def __rmatmul__(self, other):
        return "mine from the right"

    def __matmul__(self, other):
        return NotImplemented


def test_what_is_no_array_is_left_to_itself(op):
    assert op(D) @ Foreign() == "mine from the right"
    for other in (object(), None, "text", {1, 2}):
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for @"):
            op(D) @ other
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for @"):
            other @ op(D)


class Odd:
    """An object with methods where arrays have attributes."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def shape(self):
        return self.array.shape

    def ndim(self):
        return self.array.ndim


def test_arrays_whose_facts_are_methods_are_arrays(op):
    np.testing.assert_array_equal(op(D) @ Odd(X), D @ X)
    np.testing.assert_array_equal(Odd(X[:2]) @ op(D), X[:2] @ D)
    np.testing.assert_array_equal(Odd(np.eye(2)) @ op(D), D)
    with pytest.raises(InvalidArgument, match="out: expected an array to write to, got Odd"):
        op(D).apply(X, out=Odd(np.ones(2)))


def test_operators_whose_shape_is_a_method_are_refused():
    class Operator:
        def shape(self):
            return (3, 3)

        def matvec(self, x):
            return x

    with pytest.raises(wl.errors.InvalidMatrix, match="shape: expected two non-negative integers"):
        wl.Csr(D) @ Operator()


def test_what_scipy_s_matrices_have_besides_is_pointed_at():
    with pytest.raises(AttributeError, match=r"A\.to_scipy\(\)\.check_format"):
        wl.Csr(D).check_format()
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = wl.Csr(D).nonsense
