"""Subclasses of SciPy's LinearOperator work as in SciPy, on every executor.

``tests/reference/test_scipy_operators.py`` runs the same tests on the reference executor.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator as SciPyOperator
from scipy.sparse.linalg import aslinearoperator

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch, UnsupportedOperation

D = np.array([[4.0, 1.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]])
Z = D + 1j * np.diag([1.0, 2.0, 3.0])
X, BLOCK = np.array([1.0, -2.0, 3.0]), np.arange(6.0).reshape(3, 2)
WIDE = np.arange(6.0).reshape(2, 3)


class OnlyMatvec(SciPyOperator):
    """As most subclasses are: a product with a vector, and no dtype."""

    def __init__(self, entries):
        super().__init__(None, entries.shape)
        self.entries = entries

    def _matvec(self, x):
        assert isinstance(x, np.ndarray)
        return self.entries @ x


class OnlyMatmat(OnlyMatvec):
    _matvec = SciPyOperator._matvec

    def _matmat(self, x):
        assert x.ndim == 2
        return self.entries @ x


class Returning(OnlyMatvec):
    """Returns the product in another shape or type."""

    def __init__(self, entries, change):
        super().__init__(entries)
        self.change = change

    def _matvec(self, x):
        return self.change(self.entries @ x.ravel())


class WithoutInit(SciPyOperator):
    """Sets the attributes that SciPy's constructor would set, except the dtype."""

    def __init__(self, entries):
        self.shape, self.entries = entries.shape, entries

    def _matvec(self, x):
        return self.entries @ x


ADJOINT = {
    "_rmatvec": lambda self, x: self.entries.conj().T @ x,
    "_rmatmat": lambda self, x: self.entries.conj().T @ x,
    "_adjoint": lambda self: OnlyMatvec(self.entries.conj().T),
}


def with_adjoint(name, entries):
    return type("WithAdjoint", (OnlyMatvec,), {name: ADJOINT[name]})(entries)


@pytest.mark.parametrize("entries", [D, Z, WIDE, D.astype("f"), Z.astype("F"), D.astype(int)])
@pytest.mark.parametrize("cls", [OnlyMatvec, OnlyMatmat, WithoutInit])
def test_one_product_is_enough(executor, cls, entries):
    if cls is WithoutInit and hasattr(aslinearoperator(np.eye(1)), "_xp"):
        pytest.skip("this SciPy needs its constructor to be called; runs with versions before 1.18")
    operator = wl.as_linop(cls(entries), executor)
    assert operator.executor == executor and operator.shape == entries.shape
    expected = np.dtype(float) if entries.dtype.kind == "i" else entries.dtype
    assert operator.dtype == expected  # as of aslinearoperator(entries)
    for x in (X, BLOCK, BLOCK.astype("f"), X + 1j, BLOCK[::-1]):
        np.testing.assert_allclose(operator @ x, cls(entries) @ x, rtol=1e-6)


def test_a_dtype_that_is_given_stays(executor):
    given = OnlyMatvec(D)
    given.dtype = np.dtype(np.complex64)
    assert wl.as_linop(given, executor).dtype == np.complex64


@pytest.mark.parametrize(
    "change",
    [lambda y: y[:, None], list, np.matrix, lambda y: np.asmatrix(y).T, lambda y: y[None, :]],
)
def test_what_has_as_many_numbers_is_taken(executor, change):
    """SciPy reshapes it."""
    operator = wl.as_linop(Returning(D, change), executor)
    np.testing.assert_array_equal(operator @ X, D @ X)
    np.testing.assert_array_equal(operator @ BLOCK, D @ BLOCK)


@pytest.mark.parametrize("change", [lambda y: y[:2], lambda y: np.outer(y, y), lambda y: 1.0])
def test_what_has_another_number_of_elements_is_refused(executor, change):
    given = Returning(D, change)
    given.dtype = np.dtype(float)
    operator = wl.as_linop(given, executor)
    for x in (X, BLOCK):
        # SciPy 1.18 reshapes results, and reports it if it cannot.
        with pytest.raises(
            ValueError, match=r"Returning: _matvec returned .*\(3,\) or \(3, 1\)|cannot reshape"
        ):
            operator @ x


def test_a_block_of_another_shape_is_refused(executor):
    cls = type("Short", (OnlyMatmat,), {"_matmat": lambda self, x: x[:2]})
    given = cls(D)
    given.dtype = np.dtype(float)
    with pytest.raises(ShapeMismatch, match="expected"):
        wl.as_linop(given, executor) @ BLOCK


def test_errors_of_the_users_own_pass_through(executor):
    class Broken(OnlyMatvec):
        def _matvec(self, x):
            raise ValueError("singular today")

    given = Broken(D)
    given.dtype = np.dtype(float)
    with pytest.raises(ValueError, match="singular today") as raised:
        wl.as_linop(given, executor) @ X
    assert raised.type is ValueError


@pytest.mark.parametrize("name", ADJOINT)
@pytest.mark.parametrize("entries", [D, Z, WIDE])
def test_the_adjoint_is_found_under_every_name_that_scipy_has(executor, name, entries):
    given = with_adjoint(name, entries)
    operator = wl.as_linop(given, executor)
    x = np.arange(1.0, 1 + entries.shape[0])
    both = np.column_stack([x, -2 * x])
    for right in (x, both):
        np.testing.assert_allclose(operator.H @ right, entries.conj().T @ right)
        np.testing.assert_allclose(operator.T @ right, entries.T @ right)
    np.testing.assert_allclose(x @ operator, x @ entries)


@pytest.mark.parametrize("make", [OnlyMatvec, OnlyMatmat, lambda a: 2 * OnlyMatvec(a)])
def test_without_an_adjoint_the_transpose_says_what_to_define(executor, make):
    operator = wl.as_linop(make(D), executor)
    for transposed in (operator.H, operator.T):
        for x in (X, BLOCK):
            with pytest.raises(UnsupportedOperation, match="define _rmatvec"):
                transposed @ x


def test_an_operator_that_maps_nothing_is_refused(executor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's, of the same
        given = type("Nothing", (SciPyOperator,), {})(None, (3, 3))
    with pytest.raises(InvalidArgument, match="Nothing has neither _matvec nor _matmat"):
        wl.as_linop(given, executor)


def test_an_operator_without_a_shape_is_refused(executor):
    given = type("Shapeless", (), {"matvec": lambda self, x: x})()
    with pytest.raises(InvalidArgument, match="Shapeless has matvec but no shape"):
        wl.as_linop(given, executor)


def test_a_dtype_without_kernels_is_refused(executor):
    given = Returning(D, lambda y: y.astype(np.longdouble))
    with pytest.raises(wl.errors.UnsupportedDtype):
        wl.as_linop(given, executor)


@pytest.mark.parametrize("entries", [D, Z])
@pytest.mark.parametrize("make", [OnlyMatvec, lambda a: aslinearoperator(a) + OnlyMatvec(0 * a)])
def test_solvers_take_them_as_matrix_and_as_preconditioner(executor, make, entries):
    b, inverse = entries @ X, make(np.linalg.inv(entries))
    alone = wl.solvers.Gmres(make(entries), executor=executor, rtol=1e-12).solve(b)
    assert alone.converged
    np.testing.assert_allclose(alone.x, X, rtol=1e-10)
    with_M = wl.solvers.Gmres(wl.Csr(entries, executor=executor), M=inverse, rtol=1e-10).solve(b)
    assert with_M.converged and with_M.iterations <= 2
    np.testing.assert_allclose(with_M.x, X, rtol=1e-8)


def test_expressions_take_them(executor):
    A = wl.Csr(D, executor=executor)
    np.testing.assert_allclose((A + OnlyMatvec(Z)) @ X, D @ X + Z @ X)
    np.testing.assert_allclose((A @ OnlyMatvec(WIDE.T)) @ np.ones(2), D @ WIDE.T @ np.ones(2))


def test_other_objects_with_scipys_names_get_arrays_of_the_executor(executor):
    class Named:
        shape = (3, 3)

        def matvec(self, x):
            assert executor.owns(x)
            return executor.from_host(Z @ executor.to_host(x))

    operator = wl.as_linop(Named(), executor)
    assert operator.dtype == np.complex128
    np.testing.assert_allclose(operator @ X, Z @ X)
