"""The statements of docs/coming-from-scipy.md on functions that take wollemi matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import wollemi as wl

N = 40
S = sp.diags_array([-1.0, 2.2, -1.0], offsets=[-1, 0, 1], shape=(N, N)).tocsr()
B = np.linspace(1, 2, N)
START = np.random.default_rng(0).standard_normal((N, 2))

TAKE_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "eigsh": lambda A: sla.eigsh(A, k=3, v0=B, return_eigenvectors=False),
    "eigsh-inverse": lambda A: sla.eigsh(A, k=3, sigma=0, v0=B, return_eigenvectors=False),
    "eigs": lambda A: np.sort(sla.eigs(A, k=3, v0=B, return_eigenvectors=False).real),
    "svds": lambda A: sla.svds(A, k=2, v0=B, return_singular_vectors=False),
    "lobpcg": lambda A: sla.lobpcg(A, START.copy(), maxiter=200, tol=1e-8)[0],
    "lsqr": lambda A: sla.lsqr(A, B, atol=1e-14, btol=1e-14, iter_lim=400)[0],
    "lsmr": lambda A: sla.lsmr(A, B, atol=1e-14, btol=1e-14, maxiter=400)[0],
    "minres": lambda A: sla.minres(A, B, rtol=1e-12)[0],
    "lgmres": lambda A: sla.lgmres(A, B, rtol=1e-12)[0],
    "gcrotmk": lambda A: sla.gcrotmk(A, B, rtol=1e-12)[0],
    "qmr": lambda A: sla.qmr(A, B, rtol=1e-12)[0],
    "tfqmr": lambda A: sla.tfqmr(A, B, rtol=1e-12)[0],
    "cg": lambda A: sla.cg(A, B, rtol=1e-12)[0],
    "onenormest": sla.onenormest,
    "aslinearoperator": lambda A: sla.aslinearoperator(A) @ B,
}


@pytest.mark.parametrize("name", TAKE_OPERATORS)
@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_functions_of_operators_take_a_matrix(name: str, executor: str) -> None:
    function = TAKE_OPERATORS[name]
    have = function(wl.Csr(S, executor=executor))
    np.testing.assert_allclose(have, function(S), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_a_hierarchy_of_pyamg_is_a_preconditioner(executor: str) -> None:
    pyamg = pytest.importorskip("pyamg", reason="the extra test brings it: make test")
    P = pyamg.gallery.poisson((40, 40), format="csr")
    A, b = wl.Csr(P, executor=executor), np.ones(P.shape[0])
    M = pyamg.smoothed_aggregation_solver(P).aspreconditioner()
    for result in (wl.solve(A, b, M=M, rtol=1e-8), wl.solvers.Cg(A, M=M, rtol=1e-8).solve(b)):
        assert result.converged
        assert result.iterations < 20
    x, info = wl.linalg.cg(A, b, M=M, rtol=1e-8)
    assert info == 0
    assert np.linalg.norm(b - P @ x) <= 1.1e-8 * np.linalg.norm(b)
    assert isinstance(wl.linalg.aslinearoperator(M), wl.linalg.LinearOperator)
