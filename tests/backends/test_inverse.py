"""Selected entries of inverses, on patterns of many shapes, against dense inverses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import wollemi as wl
from wollemi.core.operations import inverse
from wollemi.solvers.differentiable import determinant

RNG = np.random.default_rng(5)


def arrow(n: int, first: bool) -> np.ndarray:
    """Return a matrix with a full first or last row and column."""
    dense = 3.0 * n * np.eye(n)
    place = 0 if first else -1
    dense[place, 1:-1] = dense[1:-1, place] = 1.0
    return dense


def plate(n: int, skew: float = 0.0) -> np.ndarray:
    """Return the Laplacian of a plate, with convection of strength ``skew``."""
    line = 2.1 * np.eye(n) - (1 + skew) * np.eye(n, k=-1) - (1 - skew) * np.eye(n, k=1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)


def scattered(n: int, density: float) -> np.ndarray:
    """Return a random matrix that its diagonal dominates, with an unsymmetric pattern."""
    dense = np.where(RNG.random((n, n)) < density, RNG.standard_normal((n, n)), 0.0)
    return dense + np.diag(1 + np.abs(dense).sum(0) + np.abs(dense).sum(1))


MATRICES = {
    "one": np.array([[2.0]]),
    "diagonal": np.diag(np.arange(1.0, 8.0)),
    "dense": scattered(19, 1.0),
    "chain": 4 * np.eye(40) + np.eye(40, k=1) + 0.5 * np.eye(40, k=-1),
    "arrow first": arrow(17, True),
    "arrow last": arrow(17, False),
    "plate": plate(9),
    "convection": plate(9, 0.4),
    "sparse": scattered(60, 0.03),
    "apart": np.kron(np.eye(4), scattered(5, 0.5)),
    "empty rows but for the diagonal": scattered(30, 0.01),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("host", ["reference", "omp"])
def test_inverses_at_the_positions_of_a_matrix(name, host):
    dense = MATRICES[name]
    A = wl.Csr(sp.csr_array(dense), executor=host)
    found = determinant.inverse_entries(A, np.asarray(A.data))
    rows = np.repeat(np.arange(dense.shape[0]), np.diff(A.indptr))
    wanted = np.linalg.inv(dense)[np.asarray(A.indices), rows]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("host", ["reference", "omp"])
def test_a_matrix_without_rows(host):
    A = wl.Csr(sp.csr_array((0, 0)), executor=host)
    assert determinant.log_determinant(A, np.zeros(0)) == 0.0
    assert determinant.inverse_entries(A, np.zeros(0)).size == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("kind", ["symmetric", "general"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("host", ["reference", "omp"])
def test_every_dtype(dtype, kind, index, host):
    dense = plate(7, 0.0 if kind == "symmetric" else 0.3).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        dense = dense + 0.3j * np.eye(49)
        if kind == "general":
            dense = dense * np.exp(0.1j * np.arange(49))[:, None].astype(dtype)
    S = sp.csc_array(dense.astype(dtype))
    lu = spl.splu(S, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    assert np.array_equal(lu.perm_r, lu.perm_c)
    order = lu.perm_c.astype(index)
    coo = S.tocoo()
    rows, columns = order[coo.row], order[coo.col]
    L, U = lu.L.tocsc(), lu.U.tocsr()
    of = [[x.indptr.astype(index), x.indices.astype(index), x.data.astype(dtype)] for x in (L, U)]
    found, outside = np.empty(rows.size, dtype), np.zeros(1, np.int64)
    symmetric = int(kind == "symmetric")
    on = wl.executor(host)
    on.run(inverse.selected, rows, columns, *of[0], *of[1], symmetric, found, outside)
    wanted = np.linalg.inv(dense.astype(np.complex128))[coo.row, coo.col]
    assert outside[0] == 0
    np.testing.assert_allclose(found, wanted, rtol=0, atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("host", ["reference", "omp"])
def test_entries_of_factors_outside_of_the_fill_are_counted(host):
    on = wl.executor(host)
    diagonal = np.arange(3, dtype=np.int32)
    lower = [np.array([0, 1, 1, 1], np.int32), np.array([2], np.int32), np.array([0.5])]
    upper = [np.arange(4, dtype=np.int32), diagonal, np.ones(3)]
    found, outside = np.empty(3), np.zeros(1, np.int64)
    on.run(inverse.selected, diagonal, diagonal, *lower, *upper, 0, found, outside)
    assert outside[0] == 1


def test_factors_serve_the_value_and_its_derivatives(monkeypatch):
    A = wl.Csr(sp.csr_array(plate(6)))
    values = np.array(A.data)
    made = []
    factorize = determinant._factorize
    monkeypatch.setattr(determinant, "_factorize", lambda *a: made.append(1) or factorize(*a))
    determinant.log_determinant(A, values)
    determinant.inverse_entries(A, values)
    determinant.inverse_derivative(A, values, values)
    assert len(made) == 1
    determinant.log_determinant(A, 2 * values)
    assert len(made) == 2


def test_matrices_that_need_row_exchanges():
    dense = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 1e-30]])
    A = wl.Csr(sp.csr_array(dense))
    found = determinant.inverse_entries(A, np.asarray(A.data))
    rows = np.repeat(np.arange(3), np.diff(A.indptr))
    wanted = np.linalg.inv(dense)[np.asarray(A.indices), rows]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
