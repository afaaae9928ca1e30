"""Expressions of matrices are matrices, and parts without a home follow the others."""

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import ExecutorMismatch, UnsupportedOperation

D = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 6.0]])
p, EYE = [2, 0, 1], np.eye(3)
PD, X = EYE[p], np.array([1.0, 10.0, 100.0])


def matrix(format="csr"):
    return wl.Csr(D, executor="reference").asformat(format)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "ell", "sellp", "hybrid", "bsr"])
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda A, P, one: P @ A @ P.T, D[p][:, p]),
        (lambda A, P, one: A - 2 * one, D - 2 * EYE),
        (lambda A, P, one: 2 * one - A, 2 * EYE - D),
        (lambda A, P, one: A + one, D + EYE),
        (lambda A, P, one: one @ A @ one, D),
        (lambda A, P, one: (2 * P) @ A, 2 * D[p]),
        (lambda A, P, one: A @ (P + one), D @ (PD + EYE)),
        (lambda A, P, one: A + 1j * one, D + 1j * EYE),
    ],
)
def test_expressions_with_a_matrix_are_matrices(format, expression, expected):
    made = expression(matrix(format), wl.Permutation(p), wl.Identity(3))
    assert isinstance(made, wl.Csr)
    np.testing.assert_array_equal(made.to_dense(), expected)
    np.testing.assert_array_equal(made @ X, expected @ X)


MADE = [
    (lambda: wl.Identity(3), EYE),
    (lambda: wl.Permutation(p), PD),
    (lambda: wl.Permutation(p).T, PD.T),
    (lambda: 2 * wl.Identity(3), 2 * EYE),
    (lambda: 2j * wl.Permutation(p), 2j * PD),
    (lambda: wl.Permutation(p) @ wl.Permutation(p), PD @ PD),
    (lambda: wl.Permutation(p) - 2 * wl.Identity(3), PD - 2 * EYE),
]


@pytest.mark.parametrize(("make", "expected"), MADE)
def test_identities_and_permutations_become_matrices_on_request(make, expected):
    operator = make()
    for made, cls in (
        (operator.tocsr(), wl.Csr),
        (operator.tocsc(), wl.Csc),
        (operator.tocoo(), wl.Coo),
        (operator.tobsr(), wl.Bsr),
        (operator.asformat("ell"), wl.Ell),
        (wl.Csr(operator), wl.Csr),
        (wl.Csc(operator), wl.Csc),
        (wl.Dense(operator), wl.Dense),
    ):
        assert type(made) is cls and made.dtype == operator.dtype
        np.testing.assert_array_equal(made.to_dense(), expected)
    np.testing.assert_array_equal(operator.to_scipy().toarray(), expected)


def test_what_is_known_by_its_products_alone_does_not():
    op = wl.LinearOperator((3, 3), matvec=lambda x: 2 * x)
    for call in (
        lambda: wl.Csr(op),
        lambda: (matrix() + op).tocsr(),
        lambda: (2 * op).asformat("csc"),
        lambda: wl.Dense(wl.Identity(3) @ op),
    ):
        with pytest.raises(UnsupportedOperation, match=r"no entries .*A\.to_dense\(\)"):
            call()
    np.testing.assert_array_equal((matrix() + op) @ X, D @ X + 2 * X)


# ---- who follows whom


@pytest.mark.parametrize(
    "make",
    [
        lambda: wl.Identity(3, dtype=float),
        lambda: wl.Permutation([0, 1, 2], dtype=float),
        lambda: wl.Diagonal(np.ones(3)),
        lambda: wl.Csr(EYE),
        lambda: wl.Csc(EYE).T,
        lambda: wl.Coo(wl.Csr(EYE)),
        lambda: wl.Hybrid(EYE),
        lambda: 2 * wl.Csr(EYE) - wl.Identity(3),
        lambda: wl.Csr(EYE).astype("float32").copy(),
        lambda: wl.LinearOperator((3, 3), matvec=lambda x: 1 * x),
    ],
)
def test_what_was_made_without_an_executor_follows(make):
    A = matrix()
    with wl.default_executor("omp"):
        other = make()
    assert other.executor.backend == "omp"
    for met, expected in (
        (A @ other, D),
        (other @ A, D),
        (A + other, D + EYE),
        (other - A, EYE - D),
    ):
        assert met.executor == A.executor
        np.testing.assert_array_equal(met @ X, expected @ X)
    solver = wl.solvers.Gmres(A, M=other)
    assert solver.executor == A.executor
    np.testing.assert_allclose(A @ solver.solve(X).x, X, rtol=1e-4)
    with wl.default_executor("omp"):
        assert wl.solvers.Gmres(make(), M=A).executor == A.executor


@pytest.mark.parametrize(
    "make",
    [
        lambda: wl.Identity(3, executor="omp"),
        lambda: wl.Csr(EYE, executor="omp"),
        lambda: wl.Identity(3).to("omp"),
        lambda: wl.LinearOperator((3, 3), matvec=lambda x: x, executor="omp"),
    ],
)
def test_what_was_given_a_home_stays_there(make):
    A, other = matrix(), make()
    for call in (
        lambda: A @ other,
        lambda: other + A,
        lambda: wl.solvers.Gmres(A, M=other),
    ):
        with pytest.raises(ExecutorMismatch):
            call()


def test_among_operators_without_a_home_the_first_stays():
    with wl.default_executor("omp"):
        A = wl.Csr(D)
    B = wl.Csr(EYE)
    assert (A @ B).executor == A.executor
    assert (B @ A).executor == B.executor
