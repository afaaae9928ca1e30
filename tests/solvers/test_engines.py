"""Engines of the direct solver, each where its library is installed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers import Direct
from wollemi.solvers.direct import engines

from .conftest import DTYPES, block, convection, poisson

#: The results of each engine besides solutions, and the matrices that it takes.
DETERMINANT = ("superlu", "umfpack", "cholmod")
INERTIA = (("cholmod", "float64"), ("cholmod", "complex128"), ("pardiso", "float64"))
HERMITIAN_ONLY = ("cholmod",)


@pytest.fixture(params=["superlu", "umfpack", "klu", "cholmod", "pardiso"])
def engine(request: pytest.FixtureRequest) -> str:
    why = engines()[request.param].objection(wl.executor("reference"))
    if why:
        pytest.skip(f"{request.param}: {why}")
    return str(request.param)


def matrix(engine: str, dtype: str = "float64", n: int = 8) -> sp.csr_array:
    return (poisson if engine in HERMITIAN_ONLY else convection)(n, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_and_their_transposes_are_solved(engine, dtype, rng):
    S = matrix(engine, dtype)
    solver = Direct(wl.Csr(S), engine=engine, rtol=1e-5 if dtype in DTYPES[:1] else 1e-4)
    b = block(rng, (64, 3), dtype)
    for turned, other in ((solver, S), (solver.T, S.T), (solver.H, S.conj().T)):
        result = turned.solve(b)
        assert result.converged and result.x.dtype == dtype
        np.testing.assert_allclose(other @ result.x, b, atol=1000 * np.finfo(dtype).eps)
    vector = b[:, 0]
    assert solver.solve(vector).x.shape == (64,)
    assert engines()[engine].library in solver.notes[0] and solver.factors_nnz >= S.nnz / 2


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_new_values_need_no_analysis(engine, dtype, rng, monkeypatch):
    S = matrix(engine, dtype)
    solver = Direct(wl.Csr(S), engine=engine)
    transposed, b = solver.T, block(rng, (64,), dtype)
    calls = []
    monkeypatch.setattr(type(solver._engine), "analyse", lambda *_: calls.append(1))
    for factor in (2.0, 3.0, 4.0, 5.0, 6.0, 7.0):
        solver.update(wl.Csr(factor * S))
        np.testing.assert_allclose(factor * (S @ solver.solve(b).x), b, atol=1e-10)
    assert not calls
    # who has the factors of the old values goes on with them
    np.testing.assert_allclose(S.T @ transposed.solve(b).x, b, atol=1e-10)


@pytest.mark.parametrize(
    "values",
    [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.diag([1.0, 2.0, np.nan])],
)
def test_singular_matrices_are_refused_and_change_nothing(engine, values):
    with pytest.raises(wl.errors.InvalidMatrix, match=r"singular|NaN"):
        Direct(wl.Csr(values), engine=engine)
    solver = Direct(wl.Csr(sp.csr_array(np.eye(3) + 1.0)), engine=engine)
    with pytest.raises(wl.errors.InvalidMatrix):
        solver.update(wl.Csr(sp.csr_array(np.ones((3, 3)))))
    np.testing.assert_allclose(solver.solve(np.full(3, 4.0)).x, 1.0)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_determinants_are_numpys(engine, dtype):
    S = matrix(engine, dtype, 5)
    solver = Direct(wl.Csr(S), engine=engine)
    if engine not in DETERMINANT:
        with pytest.raises(wl.errors.UnsupportedOperation, match="superlu"):
            solver.log_determinant()
        return
    sign, logarithm = np.linalg.slogdet(S.toarray())
    np.testing.assert_allclose(solver.log_determinant(), (sign, logarithm), rtol=1e-9)
    # beyond the range of a double
    large = Direct(wl.Csr(matrix(engine, dtype, 16) * 1e8), engine=engine).log_determinant()
    np.testing.assert_allclose(
        large, np.linalg.slogdet(matrix(engine, dtype, 16).toarray() * 1e8), rtol=1e-9
    )


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_inertia_counts_the_signs_of_eigenvalues(engine, dtype):
    S = sp.csr_array(poisson(7, dtype) - 1.7 * sp.eye_array(49))
    values = np.linalg.eigvalsh(S.toarray())
    expected = (int(np.sum(values > 0)), int(np.sum(values < 0)), 0)
    solver = Direct(wl.Csr(S), engine=engine)
    if (engine, dtype) in INERTIA:
        assert solver.inertia() == expected
    else:
        with pytest.raises(wl.errors.UnsupportedOperation, match="inertia"):
            solver.inertia()


def test_orderings_are_those_of_the_library(engine, rng):
    S, b = matrix(engine), rng.standard_normal(64)
    for ordering in engines()[engine].orderings:
        np.testing.assert_allclose(
            S @ Direct(wl.Csr(S), engine=engine, ordering=ordering).solve(b).x, b, atol=1e-10
        )
    with pytest.raises(wl.errors.InvalidArgument, match=engines()[engine].orderings[0]):
        Direct(wl.Csr(S), engine=engine, ordering="alphabetical")


def test_engines_work_for_every_executor_and_pickle(on, engine, rng):
    S, b = matrix(engine, n=5), rng.standard_normal(25)
    solver = Direct(wl.Csr(S, executor=on), engine=engine)
    for made in (solver, pickle.loads(pickle.dumps(solver)), solver.to("reference")):
        np.testing.assert_allclose(S @ made.solve(b).x, b, atol=1e-10)
    result = wl.solvers.Gmres(wl.Csr(S, executor=on), M=Direct(engine=engine)).solve(b)
    assert result.iterations == 1


def test_empty_systems(engine):
    assert Direct(wl.Csr(sp.csr_array((0, 0))), engine=engine).solve(np.ones(0)).converged


def test_a_matrix_that_is_not_hermitian_is_not_for_cholmod(engine):
    if engine not in HERMITIAN_ONLY:
        assert Direct(wl.Csr(convection(4)), engine=engine).solve(np.ones(16)).converged
        return
    with pytest.raises(wl.errors.InvalidMatrix, match="not Hermitian; use engine='superlu'"):
        Direct(wl.Csr(convection(4)), engine=engine)


def test_a_library_that_is_missing_is_named(monkeypatch):
    from wollemi.solvers.direct import engine

    monkeypatch.setattr(engine, "shared_library", lambda *_: None)
    for name, words in (
        ("klu", "libsuitesparse"),
        ("umfpack", "libsuitesparse"),
        ("pardiso", "mkl"),
    ):
        with pytest.raises(wl.errors.UnsupportedOperation, match=words):
            Direct(wl.Csr(np.eye(2)), engine=name)
