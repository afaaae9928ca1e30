"""Operators prepare one-time data before an iteration is recorded."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.linop import LinOp
from wollemi.core.operations import vector

from .conftest import SOLVERS, system

N = 8


def preconditioners(A: wl.Csr) -> dict[str, LinOp]:
    """Return operators near the inverse of A that transpose something when first applied."""
    n = A.shape[0]
    diagonal = np.asarray(A.executor.to_host(A.diagonal()))
    noise = sp.random_array((n, n), density=0.02, rng=np.random.default_rng(3), format="csr")
    P = wl.Csr(
        sp.csr_array(sp.diags_array(1 / diagonal) + 0.001 * (noise + noise.T)), executor=A.executor
    )
    root = wl.Csr(sp.csr_array(sp.diags_array(1 / np.sqrt(diagonal))), executor=A.executor)
    return {
        "csc": P.asformat("csc"),
        "transpose": P.T,
        "conjugate transpose": P.H,
        "product": root @ root.T,
        "sum": 0.5 * P + 0.5 * P.T,
        "scaled": 1.0 * P.T,
        "nested": (root @ (0.5 * root.T + 0.5 * root.asformat("csc"))) + 0.0 * P.T,
        "coo": P.asformat("coo"),
        "ell": P.asformat("ell"),
        "sellp": P.asformat("sellp"),
        "hybrid": P.asformat("hybrid"),
        "bsr": P.asformat("bsr"),
    }


NAMES = list(preconditioners(wl.Csr(system("Cg", N), executor="reference")))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [1, 3])
def test_a_preconditioner_that_makes_something_first(on, solver, name, columns, rng):
    S = system(solver, N)
    A = wl.Csr(S, executor=on)
    b = rng.standard_normal((N * N, columns))
    M = preconditioners(A)[name]
    result = getattr(wl.solvers, solver)(A, M, rtol=1e-8).solve(b)
    assert result.converged
    np.testing.assert_allclose(S @ result.x, b, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["csc", "transpose", "sum", "product"])
def test_a_matrix_that_makes_something_first(on, solver, name, rng):
    S = system(solver, N)
    A = wl.Csr(S, executor=on)
    transposed = wl.Csr(sp.csr_array(S.T), executor=on)
    operator = {
        "csc": A.asformat("csc"),
        "transpose": transposed.T,
        "sum": 0.5 * A + 0.5 * transposed.T,
        "product": wl.Identity(N * N, executor=on) @ transposed.H,
    }[name]
    b = rng.standard_normal(N * N)
    result = getattr(wl.solvers, solver)(operator, rtol=1e-8).solve(b)
    assert result.converged
    np.testing.assert_allclose(S @ result.x, b, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_complex_preconditioner_for_a_real_matrix(on, solver, rng):
    S = system(solver, N)
    M = wl.Csr(sp.csr_array(sp.diags_array(1 / S.diagonal()) * (1 + 0j)), executor=on).H
    b = rng.standard_normal(N * N)
    result = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), M, rtol=1e-8).solve(b)
    assert result.converged
    np.testing.assert_allclose(S @ result.x, b, atol=1e-6)


class Halves(LinOp):
    """Divides by two, with a vector that it makes and copies into when first applied."""

    def __init__(self, n: int, executor: wl.Executor) -> None:
        self.shape, self.dtype, self.executor = (n, n), np.dtype(np.float64), executor
        self.factors = None
        self.made = 0

    def apply_block(self, x, y, alpha, beta):
        if self.factors is None:
            self.factors = self.executor.from_host(np.full(self.shape[0], 0.5))
            self.executor.copy_into(self.factors, np.full(self.shape[0], 0.5))
            self.made += 1
        self.executor.run(vector.scale_rows, self.factors, x, y, alpha, beta)

    def to(self, executor):
        return self

    def astype(self, dtype):
        return self


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_operator_of_a_user_s_own_may_make_what_it_needs_when_first_applied(on, solver, rng):
    S = system(solver, N)
    M = Halves(N * N, on)
    made = getattr(wl.solvers, solver)(wl.Csr(S, executor=on), M, rtol=1e-8)
    b = rng.standard_normal(N * N)
    for _ in range(2):
        assert made.solve(b).converged
    assert M.made == 1
