"""Eigenvalues and singular values over groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

from .conftest import SIZES, grid


def pairs_fit(S: Any, found: Any, B: Any = None) -> bool:
    X, values = found.eigenvectors, found.eigenvalues
    right = X if B is None else B @ X
    gram = X.conj().T @ right
    near = abs(S @ X - right * values).max() <= 1e-6
    return bool(near and abs(gram - np.eye(len(values))).max() <= 1e-7)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", ["LA", "SA"])
def test_lanczos_finds_the_pairs_of_one_executor(kind: str, size: int, which: str) -> None:
    S = grid(10)
    found = wl.solvers.Lanczos(wl.distribute(S, [kind] * size), k=3, which=which).solve()
    assert found.converged and found.eigenvectors.shape == (100, 3)
    assert pairs_fit(S, found)
    expected = np.linalg.eigvalsh(S.toarray())
    expected = expected[-3:] if which == "LA" else expected[:3]
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("M", [None, "jacobi", "amg"])
def test_lobpcg_finds_the_smallest(kind: str, size: int, M: Any) -> None:
    S = grid(10)
    A = wl.distribute(S, [kind] * size)
    found = wl.solvers.Lobpcg(A, M=M, k=3, rtol=1e-8).solve()
    assert found.converged and pairs_fit(S, found)
    np.testing.assert_allclose(
        found.eigenvalues, np.linalg.eigvalsh(S.toarray())[:3], rtol=1e-6, atol=1e-8
    )


def test_generalized_problems_starts_constraints_and_parts(kind: str, rng: Any) -> None:
    S, T = grid(8), sp.diags_array(np.linspace(1.0, 2.0, 64)).tocsr()
    A = wl.distribute(S, [kind] * 3)
    B = wl.distribute(T, A.group)
    X = rng.standard_normal((64, 2))
    found = wl.solvers.Lobpcg(A, B=B, k=2, rtol=1e-8).solve(X)
    assert found.converged and pairs_fit(S, found, T)
    further = wl.solvers.Lobpcg(A, B=B, k=1, rtol=1e-8).solve(X[:, :1], Y=found.eigenvectors)
    assert further.eigenvalues[0] > found.eigenvalues[1] * (1 - 1e-6)
    parts = wl.solvers.Lanczos(A, k=2).solve(A.scatter(X[:, 0])).eigenvectors
    assert isinstance(parts, wl.distributed.Parts)
    whole = wl.solvers.Lanczos(A, k=2).solve(X[:, 0])
    assert pairs_fit(S, whole)
    np.testing.assert_allclose(abs(A.gather(parts)), abs(whole.eigenvectors), atol=1e-6)


def test_shifts_need_an_inverse(kind: str) -> None:
    S = grid(8)
    A = wl.distribute(S, [kind] * 2)
    inverse = wl.solvers.Cg(A, rtol=1e-13)
    found = wl.solvers.Lanczos(A, k=2, sigma=0.0, OPinv=inverse).solve()
    assert found.converged and pairs_fit(S, found)
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(S.toarray())[:2], rtol=1e-8)
    with pytest.raises(wl.errors.UnsupportedOperation, match="pass OPinv="):
        wl.solvers.Lanczos(A, k=2, sigma=0.0)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_dtypes_and_extreme_sizes(kind: str, dtype: str) -> None:
    S = grid(8).astype(dtype)
    if dtype == "complex128":
        S = S + sp.diags_array([0.5j, -0.5j], offsets=[1, -1], shape=(64, 64))
    S = (S * np.dtype(dtype).type(2.0**70 if dtype == "float32" else 1e200)).tocsr()
    found = wl.solvers.Lanczos(wl.distribute(S, [kind] * 3), k=2, which="LA").solve()
    assert found.converged
    expected = np.linalg.eigvalsh(S.toarray().astype(complex) / abs(S).max())[-2:]
    np.testing.assert_allclose(
        found.eigenvalues / abs(S).max(), expected, rtol=1e-4 if dtype == "float32" else 1e-9
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wide", [False, True])
def test_singular_values(kind: str, size: int, wide: bool, rng: Any) -> None:
    S = sp.random_array((60, 40), density=0.2, rng=rng).tocsr()
    S = sp.csr_array(S.T) if wide else S
    found = wl.solvers.SingularValues(wl.distribute(S, [kind] * size), k=3).solve()
    u, s, vt = found
    assert found.converged and u.shape == (S.shape[0], 3) and vt.shape == (3, S.shape[1])
    np.testing.assert_allclose(s, np.linalg.svd(S.toarray())[1][2::-1], rtol=1e-9)
    np.testing.assert_allclose(S @ vt.T, u * s, atol=1e-8)


def test_matrices_that_are_not_hermitian_are_refused_by_all(kind: str) -> None:
    S = (grid(8) + sp.diags_array([1.0], offsets=[3], shape=(64, 64))).tocsr()
    with pytest.raises(wl.errors.InvalidMatrix, match="not Hermitian"):
        wl.solvers.Lanczos(wl.distribute(S, [kind] * 2), k=2).solve()
    with pytest.raises(wl.errors.InvalidArgument, match="finite"):
        wl.solvers.Lanczos(wl.distribute(grid(8), [kind] * 2), k=2).solve(np.zeros(64))
