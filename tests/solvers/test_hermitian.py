"""Methods for Hermitian operators name the operator that is not Hermitian."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop
from wollemi.solvers.driver import hermitian
from wollemi.solvers.driver.hermitian import is_hermitian_in_products

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
