"""Least squares over groups: ``b`` has the rows of the matrix, a solution its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from .conftest import SIZES

TIGHT = {"atol": 1e-10, "btol": 1e-10}
NAMES = ("Lsqr", "Lsmr")


def tall(m: int = 70, n: int = 30, dtype: str = "float64") -> Any:
    """Return a matrix of full rank with more rows than columns."""
    rng = np.random.default_rng(5)
    S = sp.random_array((m, n), density=0.2, rng=rng) + sp.eye_array(m, n)
    if np.dtype(dtype).kind == "c":
        S = S + 1j * sp.random_array((m, n), density=0.1, rng=rng)
    return S.tocsr().astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"damp": 0.3}, {"M": "columns"}], ids=str)
def test_solutions_are_those_of_one_executor(
    kind: str, size: int, name: str, options: Any, rng: Any
) -> None:
    S, b = tall(), rng.standard_normal((70, 2))
    make = getattr(wl.solvers, name)
    alone = make(wl.Csr(S, executor=kind), **TIGHT, **options).solve(b)
    found = make(wl.distribute(S, [kind] * size), **TIGHT, **options).solve(b)
    assert found.converged and abs(found.iterations - alone.iterations) <= 2
    np.testing.assert_allclose(found.x, alone.x, atol=1e-7)
    np.testing.assert_allclose(found.residual_norm, alone.residual_norm, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_dtypes_and_wide_matrices(kind: str, dtype: str, name: str, rng: Any) -> None:
    S = sp.csr_array(tall(dtype=dtype).T)
    b = (S @ rng.standard_normal(70)).astype(dtype)
    tolerance = 1e-5 if dtype in ("float32", "complex64") else 1e-10
    A = wl.distribute(S, [kind] * 3)
    found = getattr(wl.solvers, name)(A, atol=tolerance, btol=tolerance).solve(b)
    assert found.converged and found.x.shape == (70,)
    assert np.linalg.norm(b - S @ found.x) <= 10 * tolerance * np.linalg.norm(b)


@pytest.mark.parametrize("name", NAMES)
def test_starts_variances_and_parts(kind: str, name: str, rng: Any) -> None:
    S, b, x0 = tall(), rng.standard_normal(70), rng.standard_normal(30)
    A = wl.distribute(S, [kind] * 2)
    solver = getattr(wl.solvers, name)(A, **TIGHT)
    best = np.linalg.lstsq(S.toarray(), b)[0]
    np.testing.assert_allclose(solver.solve(b, x0).x, best, atol=1e-7)
    np.testing.assert_allclose(solver @ b, best, atol=1e-7)
    parts = solver.solve(A.T.scatter(b)).x
    assert isinstance(parts, wl.distributed.Parts)
    np.testing.assert_allclose(np.concatenate(parts), best, atol=1e-7)
    if name == "Lsqr":
        made = wl.solvers.Lsqr(A, calc_var=True, maxiter=8).solve(b)
        alone = wl.solvers.Lsqr(wl.Csr(S, executor=kind), calc_var=True, maxiter=8).solve(b)
        np.testing.assert_allclose(made.variance, alone.variance, rtol=1e-8)


def test_new_values_and_callbacks(kind: str, rng: Any) -> None:
    S, b = tall(), rng.standard_normal(70)
    A = wl.distribute(S, [kind] * 3)
    solver = wl.solvers.Lsmr(A, M="columns", **TIGHT)
    seen: list[Any] = []

    def thrice(x: Any) -> bool:
        seen.append(x.copy())
        return len(seen) == 3

    assert solver.solve(b, callback=thrice).iterations == 3
    assert [x.shape for x in seen] == [(30,)] * 3
    A.update_values(2 * S.data)
    np.testing.assert_allclose(solver.solve(b).x, np.linalg.lstsq(2 * S.toarray(), b)[0], atol=1e-7)


def test_shapes_of_other_members_and_entries_that_are_not_finite_are_named(kind: str) -> None:
    S = tall()
    S.data[5] = np.nan
    A = wl.distribute(S, [kind] * 2)
    found = wl.solvers.Lsqr(A).solve(np.ones(70))
    assert not found.converged and any("NaN" in note for note in found.notes)
    with pytest.raises(wl.errors.ShapeMismatch, match="70"):
        wl.solvers.Lsqr(wl.distribute(tall(), [kind] * 2)).solve(np.ones(30))
