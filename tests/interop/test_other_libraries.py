"""Matrices and graphs of other libraries, and messages that name our equivalents of their names."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import wollemi as wl
from wollemi.core.equivalents import OF_ATTRIBUTES, OF_FUNCTIONS
from wollemi.core.errors import InvalidMatrix, UnsupportedOperand

S = sp.csr_array(np.array([[4.0, 1.0, 0.0], [0.0, 3.0, 2.0], [1.0, 0.0, 5.0]]))


class Assembled:
    """An object that makes a matrix of SciPy's, as scikit-fem's data of coordinates does."""

    def tocsr(self):
        return S


class Petsc:
    """A matrix with the methods of petsc4py."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def getSize(self):
        return S.shape

    def getValuesCSR(self):
        part = S[: self.rows]
        return part.indptr, part.indices, part.data


class MatrixCsr:
    """A matrix of DOLFINx, which gives one of SciPy in its own memory."""

    def to_scipy(self):
        return S


class DataFrame:
    """A frame whose accessor has pandas' method."""

    __module__ = "pandas.core.frame"
    sparse = SimpleNamespace(to_coo=S.tocoo)


@pytest.mark.parametrize(
    "made",
    [Assembled(), Petsc(3), MatrixCsr(), DataFrame(), DataFrame.sparse],
    ids=["tocsr", "petsc", "dolfinx", "pandas", "accessor"],
)
def test_whatever_can_become_a_matrix(made):
    for cls in (wl.Csr, wl.Csc, wl.Coo):
        np.testing.assert_array_equal(cls(made).to_dense(), S.toarray())
    assert wl.solve(made, np.ones(3)).converged


def test_rows_of_other_processes_are_missing():
    with pytest.raises(InvalidMatrix, match=r"wl\.distribute"):
        wl.Csr(Petsc(2))


def test_a_matrix_of_dolfinx_is_used_in_place():
    A = wl.Csr(MatrixCsr(), copy=False)
    assert np.shares_memory(np.asarray(A.data), S.data)


def test_graphs_of_networkx():
    networkx = pytest.importorskip("networkx")
    G = networkx.path_graph(4)
    np.testing.assert_array_equal(wl.Csr(G).to_dense(), networkx.to_numpy_array(G))
    directed = networkx.DiGraph()
    directed.add_weighted_edges_from([(0, 1, 2.5), (1, 2, 0.5)])
    np.testing.assert_array_equal(wl.Csr(directed).to_dense(), networkx.to_numpy_array(directed))


@pytest.mark.parametrize("name", ["norm", "solve", "inv", "eigh", "svd", "det"])
def test_functions_of_linear_algebra_name_ours(name):
    with pytest.raises(UnsupportedOperand) as raised:
        getattr(np.linalg, name)(*[wl.Csr(S)] * (2 if name == "solve" else 1))
    assert f"write {OF_FUNCTIONS[name]}" in str(raised.value)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "transpose", "trace", "argmax", "nonzero", "diagonal", "tril"]
)
def test_functions_of_numpy_are_methods_of_matrices(name):
    found, wanted = getattr(np, name)(wl.Csr(S)), getattr(np, name)(S.toarray())
    np.testing.assert_array_equal(found.to_dense() if hasattr(found, "to_dense") else found, wanted)


@pytest.mark.parametrize("name", ["sum", "mean", "real", "argmax", "nonzero", "diagonal", "tril"])
def test_functions_of_numpy_name_methods(name):
    operator = wl.LinearOperator((3, 3), lambda x: x)
    with pytest.raises(UnsupportedOperand) as raised:
        getattr(np, name)(operator)
    assert f"write {OF_FUNCTIONS[name]}" in str(raised.value)


@pytest.mark.parametrize("name", [n for n in OF_ATTRIBUTES if not hasattr(wl.Csr, n)])
def test_attributes_of_other_libraries_name_ours(name):
    with pytest.raises(AttributeError) as raised:
        getattr(wl.Csr(S), name)
    assert str(raised.value).endswith(f"write {OF_ATTRIBUTES[name]}")


def test_functions_of_scipy_say_where_its_matrix_is():
    with pytest.raises(ValueError) as raised:
        sp.csr_array(wl.Csr(S))
    assert "A.to_scipy() for SciPy" in str(raised.value.__cause__)


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_factors_of_scipy_are_preconditioners(executor):
    A = wl.Csr(S, executor=executor)
    factors = spl.splu(S.tocsc())
    result = wl.solvers.Gmres(A, M=factors, rtol=1e-12).solve(np.ones(3))
    assert result.converged and result.iterations <= 2
    np.testing.assert_allclose(S @ result.x, np.ones(3))
    block = wl.solvers.Gmres(A, M=factors, rtol=1e-12).solve(np.eye(3))
    np.testing.assert_allclose(S @ block.x, np.eye(3), atol=1e-12)
