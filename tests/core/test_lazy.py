"""Sums, products, multiples and transposes of operators, and operands without such a meaning."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import (
    ShapeMismatch,
    UnsupportedOperand,
)

from .made import D, E, X, Z, lazy


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda A, B: A + B, D + E),
        (lambda A, B: A - B, D - E),
        (lambda A, B: -A, -D),
        (lambda A, B: 2 * A, 2 * D),
        (lambda A, B: A * 2.5, 2.5 * D),
        (lambda A, B: np.float64(2) * A, 2 * D),
        (lambda A, B: np.int64(3) * A, 3 * D),
        (lambda A, B: A / 4, D / 4),
        (lambda A, B: A @ B.T, D @ E.T),
        (lambda A, B: A.T @ B, D.T @ E),
        (lambda A, B: 2 * (A + 3 * B) - A, D + 6 * E),
        (lambda A, B: (A @ B.T) @ A, D @ E.T @ D),
        (lambda A, B: (A + B).T, (D + E).T),
        (lambda A, B: (A @ B.T).T, E @ D.T),
        (lambda A, B: (2j * A).H, -2j * D.T),
        (lambda A, B: (2j * A).T, 2j * D.T),
        (lambda A, B: (A + 1j * B).H, (D - 1j * E).T),
        (lambda A, B: A.T.T, D),
    ],
)
def test_expressions(op, expression, expected):
    operator = expression(op(D), op(E))
    assert operator.shape == expected.shape
    np.testing.assert_allclose(operator @ np.eye(expected.shape[1]), expected)


def test_transposes_of_complex_operators(op):
    np.testing.assert_array_equal(op(Z).T @ np.eye(2), Z.T)
    np.testing.assert_array_equal(op(Z).H @ np.eye(2), Z.conj().T)
    np.testing.assert_array_equal(op(Z).T.H @ np.eye(3), Z.conj())


def test_composed_operators_scale_and_add():
    for operator, dense in [
        (lazy(D) + lazy(E), D + E),
        (lazy(D) @ lazy(E).T, D @ E.T),
        (3 * lazy(D), 3 * D),
    ]:
        x, out = np.arange(1.0, dense.shape[1] + 1), np.ones(2)
        operator.apply(x, out=out, alpha=2.0, beta=-1.0)
        np.testing.assert_allclose(out, 2 * dense @ x - 1)


def test_composed_operators_do_not_read_out_without_beta():
    for operator in (lazy(D) + lazy(E), 2 * lazy(D), lazy(D) @ wl.Identity(3)):
        out = np.full(2, np.nan)
        assert np.isfinite(operator.apply(X, out=out)).all()


def test_a_matrix_and_an_operator_make_an_operator():
    for operator in (wl.Csr(D) + lazy(E), lazy(E) + wl.Csr(D)):
        np.testing.assert_array_equal(operator @ X, (D + E) @ X)
    np.testing.assert_array_equal((wl.Csr(D) @ wl.Identity(3)) @ X, D @ X)


def test_an_operator_shifted_by_the_identity():
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    shifted = wl.Csr(A) - 5 * wl.Identity(2)
    assert shifted.dtype == np.float64
    np.testing.assert_array_equal(shifted @ np.eye(2), A - 5 * np.eye(2))


def test_a_sum_takes_the_widest_dtype():
    assert (lazy(D.astype("f")) + lazy(E)).dtype == np.float64
    assert (lazy(D.astype("f")) @ lazy(Z.astype("F")).T).dtype == np.complex64
    assert (1j * lazy(D.astype("f"))).dtype == np.complex64


def test_shapes_that_do_not_fit_have_no_sum(op):
    with pytest.raises(ShapeMismatch, match=r"2x3.*3x2"):
        op(D) + op(D).T


def test_shapes_that_do_not_fit_have_no_product(op):
    with pytest.raises(ShapeMismatch, match="3 columns meet 2 rows"):
        op(D) @ op(D)


@pytest.mark.parametrize(
    "expression",
    [
        lambda A: A + "2",
        lambda A: 2 / A,
        lambda A: A * "2",
    ],
)
def test_what_has_no_meaning_is_a_type_error(op, expression):
    with pytest.raises(TypeError):
        expression(op(D))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (lambda A: A + 1, "wl.Identity"),
        (lambda A: 1 - A, "wl.Identity"),
        (lambda A: np.dot(A, X), "numpy.dot does not take"),
        (np.linalg.norm, "numpy.norm does not take"),
    ],
)
def test_what_means_one_thing_to_matrices_and_another_to_arrays_says_what_to_write(
    op, expression, message
):
    with pytest.raises(UnsupportedOperand, match=message):
        expression(op(D))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (lambda A: A * np.ones(3), "A @ x for the product"),
        (lambda A: np.ones(3) * A, "A @ x for the product"),
        (lambda A: A * A, "A @ x for the product"),
        (lambda A: A * sp.csr_array(D), "A @ x for the product"),
        (lambda A: A**2, "A @ A for the product"),
        (lambda A: A / A, "wl.Diagonal"),
        (lambda A: A - np.ones((2, 3)), "wl.Dense"),
        (lambda A: np.ones((2, 3)) + A, "wl.Dense"),
    ],
)
def test_operators_without_entries_have_no_products_of_entries(expression, message):
    with pytest.raises((UnsupportedOperand, TypeError), match=message):
        expression(lazy(D))


def test_numpy_may_ask_for_facts(op):
    assert (np.shape(op(D)), np.ndim(op(D)), np.iscomplexobj(op(Z))) == ((2, 3), 2, True)


def test_composed_operators_pickle():
    operator = 2 * (wl.Csr(D) @ wl.Identity(3)) + wl.Csr(E) @ wl.Identity(3)
    operator @ X
    again = pickle.loads(pickle.dumps(operator))
    np.testing.assert_array_equal(again @ X, operator @ X)


def test_a_product_works_for_any_number_of_columns_in_turn():
    operator = lazy(D) @ lazy(E).T
    for columns in (1, 3, 1, 2):
        x = np.arange(2.0 * columns).reshape(2, columns)
        np.testing.assert_array_equal(operator @ x, D @ E.T @ x)


def test_threads_may_apply_one_product():
    A = wl.Csr(sp.random_array((3000, 3000), density=1e-3, rng=0).tocsr())
    product = wl.LinearOperator(A.shape, matvec=lambda x: A @ x) @ A
    xs = np.random.default_rng(0).standard_normal((8, 3000))
    expected = [product @ x for x in xs]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda x: [product @ x for _ in range(20)], xs))
    for results, right in zip(found, expected, strict=True):
        assert all(np.array_equal(result, right) for result in results)


def test_operators_of_matrices_are_resident_and_callables_are_not():
    matrix, identity = wl.Csr(D), wl.Identity(3)
    assert (2 * (matrix @ identity)).resident
    assert not (matrix + lazy(E)).resident
    assert not (matrix @ (2 * lazy(np.eye(3)))).resident
