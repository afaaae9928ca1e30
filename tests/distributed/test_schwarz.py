"""Schwarz over groups: another preconditioner within each member."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import BlockJacobi, Ilu, Schwarz

from .conftest import line, scattered


def plane(n: int) -> Any:
    T = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return (sp.kron(T, sp.eye_array(n)) + sp.kron(sp.eye_array(n), T)).tocsr()


@pytest.mark.parametrize("overlap", [0, 1])
@pytest.mark.parametrize("size", [1, 3])
def test_it_solves_the_block_of_each_member(kind: str, size: int, overlap: int, rng: Any) -> None:
    S, x = line(30), rng.standard_normal(30)
    A = wl.distribute(S, [kind] * size)
    # a block of so few rows is inverted as a whole
    found = Schwarz(A, inner=BlockJacobi(size=32), overlap=overlap) @ x
    expected = np.empty(30)
    for rank in range(size):
        rows = A.partition.rows(rank)
        block = np.arange(max(rows[0] - overlap, 0), min(rows[-1] + overlap, 29) + 1)
        solution = np.linalg.solve(S[block][:, block].toarray(), x[block])
        expected[rows] = solution[np.isin(block, rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("partition", ["rows", "owners"])
def test_it_takes_fewer_iterations_with_overlap(partition: str, rng: Any) -> None:
    S, b, kind = plane(12), rng.standard_normal(144), "omp:1"
    owners = np.repeat(np.arange(12) // 6, 12) + 2 * np.tile(np.arange(12) // 6, 12)
    A = wl.distribute(S, [kind] * 4, partition=owners if partition == "owners" else "rows")
    counts = [
        wl.solvers.Gmres(A, M=M, rtol=1e-8, restart=200).solve(b).iterations
        for M in (None, "schwarz:inner=ilu", "schwarz:inner=ilu,overlap=1")
    ]
    assert counts[2] < counts[1] < counts[0]


def test_cg_takes_it_without_overlap(kind: str, rng: Any) -> None:
    S, b = plane(10), rng.standard_normal((100, 2))
    A = wl.distribute(S, [kind] * 3)
    found = wl.solvers.Cg(A, M=Schwarz(A, inner="ic"), rtol=1e-10).solve(b)
    assert found.converged
    np.testing.assert_allclose(S @ found.x, b, atol=1e-7)


@pytest.mark.parametrize("overlap", [0, 1])
def test_new_values(kind: str, overlap: int, rng: Any) -> None:
    S, x = scattered(40), rng.standard_normal(40)
    A = wl.distribute(S, [kind] * 2)
    M = Schwarz(A, inner="jacobi", overlap=overlap)
    np.testing.assert_allclose(M @ x, x / S.diagonal())
    A.update_values(2 * S.data)
    M.update()
    np.testing.assert_allclose(M @ x, x / S.diagonal() / 2)


def test_a_single_block_is_the_inner_preconditioner(kind: str, rng: Any) -> None:
    S, x = scattered(40), rng.standard_normal(40)
    A = wl.Csr(S, executor=kind)
    np.testing.assert_array_equal(Schwarz(A, inner="ilu") @ x, Ilu(A) @ x)


def test_what_does_not_fit_is_refused(kind: str) -> None:
    A = wl.distribute(line(20), [kind] * 2)
    with pytest.raises(wl.errors.InvalidArgument, match="overlap: expected 0 or 1"):
        Schwarz(A, overlap=2)
    with pytest.raises(wl.errors.InvalidArgument, match="a name or settings"):
        Schwarz(A, inner=wl.Identity(20))
    with pytest.raises(wl.errors.UnsupportedOperation, match="no transpose"):
        _ = Schwarz(A, overlap=1).T
    assert Schwarz(A).T.shape == (20, 20)
