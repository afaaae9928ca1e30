"""SciPy's iterative programs with operators of wollemi: ARPACK, LOBPCG, Newton-Krylov, matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.optimize import newton_krylov

import wollemi as wl

EXECUTORS = ("reference", "omp:2")


def laplacian(n: int = 15) -> Any:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_arpack_takes_products_and_solves(executor: str) -> None:
    S = laplacian()
    A = wl.Csr(S, executor=executor)
    exact = np.linalg.eigvalsh(S.toarray())
    largest = spla.eigsh(A.to_scipy_operator(), k=3, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(largest), exact[-3:], rtol=1e-10)
    # shift-invert: ARPACK asks our solver, an operator too, for each product with the inverse
    inverse = wl.solvers.Cg(A, M="ic", rtol=1e-12).to_scipy_operator()
    smallest, vectors = spla.eigsh(A.to_scipy_operator(), k=3, sigma=0.0, OPinv=inverse)
    np.testing.assert_allclose(np.sort(smallest), exact[:3], rtol=1e-9)
    assert np.linalg.norm(S @ vectors - vectors * smallest) < 1e-8
    _, values, _ = spla.svds(A.to_scipy_operator(), k=2)
    np.testing.assert_allclose(np.sort(values), exact[-2:], rtol=1e-9)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_lobpcg_takes_preconditioners(executor: str) -> None:
    S = laplacian()
    A = wl.Csr(S, executor=executor)
    M = wl.preconditioners.Amg(A).to_scipy_operator()
    start = np.random.default_rng(0).standard_normal((225, 3))
    values, _ = spla.lobpcg(A.to_scipy_operator(), start, M=M, largest=False, tol=1e-9, maxiter=60)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(S.toarray())[:3], rtol=1e-7)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_newton_krylov_takes_preconditioners(executor: str) -> None:
    S = laplacian()
    A = wl.Csr(S, executor=executor)
    source = np.linspace(0.5, 1.0, 225)

    def residual(u: Any) -> Any:
        return np.asarray(A @ u) + 0.1 * u**3 - source

    M = wl.preconditioners.Ic(A).to_scipy_operator()
    u = newton_krylov(residual, np.zeros(225), inner_M=M, f_tol=1e-10)
    assert np.abs(residual(u)).max() <= 1e-10


class MatrixCSR:
    """An object like ``dolfinx.la.MatrixCSR``, which has ``to_scipy`` and no other conversion."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self.data, self.indices, self.indptr = matrix.data, matrix.indices, matrix.indptr
        self.block_size = [1, 1]

    def to_scipy(self, ghosted: bool = False) -> Any:
        return self._matrix


def test_matrices_of_dolfinx_share_their_memory() -> None:
    S = sp.csr_matrix(laplacian())
    A = wl.Csr(MatrixCSR(S), copy=False, executor="reference")
    assert np.shares_memory(A.data, S.data)
    assert wl.solve(wl.Csr(MatrixCSR(S)), np.ones(225)).converged
