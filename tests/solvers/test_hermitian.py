"""Methods for Hermitian operators name the operator that is not Hermitian."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop
from wollemi.solvers.driver import hermitian
from wollemi.solvers.driver.hermitian import FIRST_LOOK, has_fallen, is_hermitian_in_products

from .conftest import DTYPES, convection, poisson


def lower(S: sp.csr_array) -> np.ndarray:
    """Return the inverse of the lower triangle, which is not Hermitian."""
    return np.linalg.inv(np.tril(S.toarray()))


@pytest.mark.parametrize("name", ["Cg", "PipeCg", "BlockCg", "Minres"])
def test_a_failed_method_says_that_m_is_not_hermitian(on, name):
    S = poisson(8)
    M = wl.Csr(lower(S) + 0.3 * np.triu(np.ones((64, 64)), 1), executor=on)
    b = np.random.default_rng(0).standard_normal(64)
    result = getattr(wl.solvers, name)(wl.Csr(S, executor=on), M, rtol=1e-12).solve(b)
    assert not result.converged
    said = "M is not Hermitian, as the method needs it: use gmres, or another M"
    assert said in result.notes or result.iterations == 0


@pytest.mark.parametrize("name", ["Cg", "Fcg", "PipeCg", "BlockCg", "Minres"])
def test_a_failed_method_says_that_a_is_not_hermitian(on, name):
    A, b = wl.Csr(convection(8), executor=on), np.random.default_rng(0).standard_normal(64)
    result = getattr(wl.solvers, name)(A, rtol=1e-14, maxiter=30).solve(b)
    assert not result.converged
    assert "A is not Hermitian, as the method needs it: use gmres" in result.notes
    assert result.reason.endswith(": A is not Hermitian, as the method needs it; use gmres")
    result = wl.solvers.Cg(wl.Csr(poisson(8), executor=on), maxiter=2).solve(b)
    assert not result.converged and not result.notes


def test_a_matrix_is_asked_once_for_its_values(on, monkeypatch):
    A, b = wl.Csr(poisson(8), executor=on), np.ones(64)
    asked = []
    monkeypatch.setattr(
        hermitian, "is_hermitian_in_products", lambda A: asked.append(A) or not A.nnz
    )
    solver = wl.solvers.Cg(A, maxiter=2)
    for _ in range(2):
        assert "A is not Hermitian" in solver.solve(b).notes[-1]
    assert len(asked) == 1
    A.update_values(2.0 * poisson(8).data)
    solver.update()
    solver.solve(b)
    assert len(asked) == 2


@pytest.mark.parametrize("M", ["none", "jacobi"])
def test_a_failed_method_says_that_a_maps_constants_to_zero(on, M):
    line = sp.diags_array(
        [-np.ones(29), [1.0, *2 * np.ones(28), 1.0], -np.ones(29)], offsets=[-1, 0, 1]
    )
    A, b = wl.Csr(sp.kronsum(line, line).tocsr(), executor=on), np.random.default_rng(0).random(900)
    result = wl.solve(A, b, method="cg", M=M)
    assert not result.converged
    assert "A maps constants to zero and b does not add up to zero" in result.reason
    assert "wl.solve(A, b) or minres gives a least squares solution" in result.reason
    short = wl.solve(A, b - b.mean(), method="cg", M=M, maxiter=2)
    assert short.reason == Stop.MAX_ITERATIONS.sentence  # the system has a solution


def test_one_attempt_is_made_where_jacobi_changes_nothing(on):
    A = wl.Csr(convection(12), executor=on)
    result = wl.solve(A, np.ones(144), method="cg")
    assert not result.converged and "A is not Hermitian" in result.reason
    assert [(a.method, a.M) for a in result.attempts] == [("cg", "")]


def test_the_choice_leaves_out_cg_where_m_is_not_hermitian(on):
    S, b = poisson(8), np.random.default_rng(0).standard_normal(64)
    inverse = lower(S)
    result = wl.solve(wl.Csr(S, executor=on), b, M=wl.Csr(inverse, executor=on), rtol=1e-8)
    assert result.converged and result.solver == "Bicgstab"
    assert "but M is not Hermitian, as cg and minres need it" in result.notes[0]
    result = wl.solve(wl.Csr(S, executor=on), b, M=wl.Diagonal(np.full(64, 0.25), executor=on))
    assert result.converged and result.solver == "Cg"


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_products_tell_hermitian_operators_from_others(on, dtype):
    assert is_hermitian_in_products(wl.Csr(poisson(12, dtype), executor=on))
    assert not is_hermitian_in_products(wl.Csr(convection(12, dtype), executor=on))


#: Sizes of matrices of which products, or squares of products, leave the range of the dtype.
EXTREME = [("float64", 1e200), ("float64", 3e-309), ("complex128", 1e-300), ("float32", 1e-38)]


@pytest.mark.parametrize(("dtype", "size"), EXTREME)
@pytest.mark.parametrize("name", ["Cg", "Gmres", "Bicgstab"])
def test_reasons_do_not_depend_on_the_size_of_the_matrix(on, name, dtype, size):
    usual, skew = poisson(6, dtype), convection(6, dtype)
    for S, said in ((usual, "raise maxiter"), (skew, "not Hermitian" if name == "Cg" else "raise")):
        S.data = (S.data * size).astype(dtype)
        A, b = wl.Csr(S, executor=on), np.zeros(36)
        b[0] = size  # no part of it is along the constants alone
        result = getattr(wl.solvers, name)(A, rtol=1e-14, maxiter=2).solve(b)
        assert not result.converged and said in result.reason and "constants" not in result.reason


@pytest.mark.parametrize(("dtype", "size"), EXTREME)
def test_constants_are_found_for_every_size(on, dtype, size):
    line = sp.diags_array(
        [-np.ones(8), [1.0, *2 * np.ones(7), 1.0], -np.ones(8)], offsets=[-1, 0, 1]
    )
    A = wl.Csr((line * size).astype(dtype).tocsr(), executor=on)
    result = wl.solvers.Gmres(A, rtol=1e-6, maxiter=3).solve(np.full(9, size).astype(dtype))
    assert "A maps constants to zero and b does not add up to zero (100 %" in result.reason


def stream(n: int, dtype: str = "float64") -> sp.csr_array:
    """Return diffusion with a skew part of three times its size."""
    skew = sp.diags_array([-3.0, 3.0], offsets=[-1, 1], shape=(n, n))
    return sp.csr_array(poisson(n, dtype) + sp.kron(skew, sp.eye_array(n))).astype(dtype)


#: More iterations than the methods may take before they ask.
FOR_EVER = 5_000


@pytest.mark.parametrize("name", ["Cg", "Fcg", "PipeCg", "BlockCg", "Minres"])
@pytest.mark.parametrize(("M", "dtype"), [(None, "float64"), ("jacobi", "complex128")])
def test_a_method_ends_soon_where_a_is_not_hermitian(on, name, M, dtype):
    A, b = wl.Csr(stream(8, dtype), executor=on), np.random.default_rng(0).random((64, 2))
    solver = getattr(wl.solvers, name)(A, M, rtol=1e-10, maxiter=FOR_EVER)
    # the second solve goes straight; iterations of reference take long
    sides = (b[:, 0], b[:, 0]) if M is None and on.backend != "reference" else (b,)
    for side in sides:
        result = solver.solve(side)
        assert not result.converged and result.iterations <= FIRST_LOOK
        assert result.reason.endswith(": A is not Hermitian, as the method needs it; use gmres")


def test_a_method_ends_soon_where_m_is_not_hermitian(on):
    S = poisson(8)
    M = wl.Csr(lower(S) @ np.diag(np.arange(1.0, 65.0)), executor=on)
    solver = wl.solvers.Cg(wl.Csr(S, executor=on), M, rtol=1e-10, maxiter=FOR_EVER)
    result = solver.solve(np.random.default_rng(0).standard_normal(64))
    assert not result.converged and 0 < result.iterations <= FIRST_LOOK
    assert "M is not Hermitian" in result.reason


def test_a_callback_sees_a_solve_end_soon(on):
    A, b = wl.Csr(stream(8), executor=on), np.random.default_rng(0).random(64)
    seen = []
    result = wl.solvers.Cg(A, maxiter=FOR_EVER).solve(b, norm_callback=seen.append)
    assert len(seen) == result.iterations == FIRST_LOOK and result.stops == [Stop.STAGNATED]


@pytest.mark.parametrize("name", ["Cg", "Fcg", "PipeCg", "BlockCg", "Minres"])
def test_rows_of_boundary_values_keep_no_method_from_converging(name):
    n = FIRST_LOOK + 200
    S = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    for row in (0, n - 1):
        S[row, :] = 0.0
        S[row, row] = 1.0
    A, b = wl.Csr(S.tocsr()), np.zeros(n)
    b[1] = 1.0  # its residual does not fall before it has come to the other end
    assert not is_hermitian_in_products(A)
    result = getattr(wl.solvers, name)(A, rtol=1e-8).solve(b)
    assert result.converged and result.iterations > FIRST_LOOK


def test_a_hermitian_operator_is_not_given_up(on):
    n = FIRST_LOOK + 200
    A = wl.Csr(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)), executor=on)
    b = np.zeros(n)
    b[0] = 1.0
    result = wl.solvers.Cg(A, rtol=1e-8).solve(b)
    assert result.converged and result.iterations > FIRST_LOOK


def test_a_residual_that_comes_down_from_a_hump_is_waited_for():
    skew = sp.diags_array([-1.0, 1.0], offsets=[-1, 1], shape=(10, 10))
    A = wl.Csr(poisson(10) + sp.kron(skew, sp.eye_array(10)))
    b = np.random.default_rng(0).random((100, 2))[:, 0]
    result = wl.solvers.Fcg(A, rtol=1e-10, maxiter=5000).solve(b)
    assert result.converged and result.iterations > FIRST_LOOK


def test_a_residual_falls_by_its_second_half():
    assert (
        has_fallen([1.0, 2.0, 2.0, 0.5])
        and has_fallen([1.0, 9.0, 9.0, 9.0, 4.0, 2.0])
        and has_fallen([4.0, 3.0, 2.0, 1.0])
    )
    assert not has_fallen([1.0, 0.1, 0.2, 0.15]) and not has_fallen([1.0] * 5)
