"""Multigrid over groups: levels that members share, and gathered ones."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.auto import plan
from wollemi.solvers.preconditioners.multigrid import amg, groups

from .conftest import SIZES, grid


@pytest.fixture(autouse=True)
def few_rows_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small systems have levels of both kinds."""
    monkeypatch.setattr(groups, "ROWS_ON_HOSTS", 150)


def iterations(A: Any, b: Any, M: Any, solver: str = "Cg") -> int:
    found = getattr(wl.solvers, solver)(A, M, rtol=1e-8).solve(b)
    assert found.converged
    return int(found.iterations)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("contrast", [1.0, 1e6])
def test_iterations_grow_little_with_members(
    kind: str, size: int, contrast: float, rng: Any
) -> None:
    S, b = grid(24, contrast), rng.standard_normal(576)
    options: dict[str, Any] = {"coarse_rows": 20}
    alone = wl.Csr(S, executor=kind)
    expected = iterations(alone, b, wl.preconditioners.Amg(alone, **options))
    A = wl.distribute(S, [kind] * size)
    M = wl.preconditioners.Amg(A, **options)
    found = iterations(A, b, M)
    assert found == expected if size == 1 else found <= expected + 4
    report = M.report()
    assert report.rows[0] == 576 and len(report.rows) >= 3


@pytest.mark.parametrize(
    "partition",
    [[0, 0, 200, 576], np.arange(576) % 3, np.zeros(576, int)],
    ids=["no-rows", "round-robin", "one-member-has-all"],
)
def test_any_partition(kind: str, partition: Any, rng: Any) -> None:
    S, b = grid(24), rng.standard_normal(576)
    A = wl.distribute(S, [kind] * 3, partition=partition)
    assert iterations(A, b, wl.preconditioners.Amg(A)) <= 40


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_dtypes_and_levels_in_single_precision(kind: str, dtype: str, rng: Any) -> None:
    S, b = grid(24).astype(dtype), rng.standard_normal(576).astype(dtype)
    A = wl.distribute(S, [kind] * 2)
    found = wl.solvers.Cg(A, wl.preconditioners.Amg(A, dtype="float32"), rtol=1e-4).solve(b)
    assert found.converged and found.iterations <= 10
    with pytest.raises(wl.errors.UnsupportedOperation, match="use dtype='float32'"):
        wl.preconditioners.Amg(A, dtype="bfloat16")


@pytest.mark.parametrize(
    "smoother", ["l1jacobi", "jacobi", "schwarz:inner=ilu", "chebyshev:degree=3"]
)
def test_smoothers(kind: str, smoother: str, rng: Any) -> None:
    S, b = grid(24), rng.standard_normal(576)
    A = wl.distribute(S, [kind] * 3)
    assert iterations(A, b, wl.preconditioners.Amg(A, smoother=smoother)) <= 25


@pytest.mark.parametrize("cycle", ["W", "F", "K"])
def test_cycles_and_adjoints(kind: str, cycle: str, rng: Any) -> None:
    S, b = grid(24), rng.standard_normal(576)
    A = wl.distribute(S, [kind] * 2)
    M = wl.preconditioners.Amg(A, cycle=cycle, coarse_rows=10)
    assert iterations(A, b, M, "Fcg") <= 12
    if cycle != "K":
        x = rng.standard_normal(576)
        np.testing.assert_allclose(b @ (M @ x), (M.H @ b) @ x, rtol=1e-8)


def test_aggregation_keeps_the_near_null_space(kind: str, rng: Any) -> None:
    """A plane membrane of nodes with two unknowns, coupled within the node."""
    S = sp.kron(grid(16), np.array([[2.0, 0.5], [0.5, 1.0]])).tocsr()
    near = np.tile(np.eye(2), (256, 1))
    b = rng.standard_normal(512)
    A = wl.distribute(S, [kind] * 2)
    M = wl.preconditioners.Amg(A, near_null=near, block_size=2, coarse_rows=10)
    assert iterations(A, b, M) <= 25
    uneven = wl.distribute(S, [kind] * 2, partition=[0, 255, 512])
    with pytest.raises(wl.errors.InvalidArgument, match="multiples of 2"):
        wl.preconditioners.Amg(uneven, near_null=near, block_size=2)


def test_two_steps_at_once_have_fewer_rows(kind: str, rng: Any) -> None:
    S, b = grid(24), rng.standard_normal(576)
    A = wl.distribute(S, [kind] * 2)
    plain, wide = (wl.preconditioners.Amg(A, coarse_rows=20, aggressive=a) for a in (0, 1))
    assert wide.report().rows[1] < plain.report().rows[1]
    assert iterations(A, b, wide) <= 25


def test_a_matrix_that_does_not_become_coarser_is_gathered(kind: str) -> None:
    S = sp.diags_array(np.linspace(1.0, 2.0, 400)).tocsr()
    A = wl.distribute(S, [kind] * 2)
    M = wl.preconditioners.Amg(A, near_null=np.ones(400), coarse_rows=10)
    np.testing.assert_allclose(wl.solvers.Cg(A, M, rtol=1e-8).solve(S @ np.ones(400)).x, 1.0)


def test_new_values(kind: str, rng: Any) -> None:
    S, T, b = grid(24), grid(24, 30.0), rng.standard_normal(576)
    A = wl.distribute(S, [kind] * 2)
    M = wl.preconditioners.Amg(A, coarse_rows=20)
    cg = wl.solvers.Cg(A, M, rtol=1e-8)
    assert cg.solve(b).converged
    A.update_values(T.data)
    cg.update()
    found = cg.solve(b)
    assert found.converged and found.iterations <= 14
    np.testing.assert_allclose(T @ found.x, b, atol=1e-6)


def test_solve_takes_it_for_what_looks_elliptic(
    kind: str, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "ROWS_FOR_MULTIGRID", 1000)
    S, b = grid(40), rng.standard_normal(1600)
    found = wl.solve(wl.distribute(S, [kind] * 2), b, rtol=1e-8)
    assert found.converged
    assert found.attempts[0].M == "amg"


def test_levels_are_freed_with_the_operator(kind: str) -> None:
    """No reference cycle keeps them: the garbage collector rests while a group of GPUs works."""
    A = wl.distribute(grid(24), [kind] * 2)
    M = wl.preconditioners.Amg(A, coarse_rows=20)
    members = [weakref.ref(member) for member in M.members]
    gc.collect()
    gc.disable()
    try:
        del M
        assert [member() for member in members] == [None, None]
    finally:
        gc.enable()


def test_members_of_a_process_have_copies_of_the_gathered_levels(kind: str) -> None:
    made = []
    A = wl.distribute(grid(24), [kind] * 3)

    class Counted(wl.preconditioners.Amg):
        """Notes where levels are made."""

        def _hierarchy(self, A: Any) -> Any:
            made.append(A.partition is None)
            return super()._hierarchy(A)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amg, "Amg", Counted)
        M = Counted(A, coarse_rows=20)
    assert made.count(True) == 1 and made.count(False) == 3
    x = np.arange(576.0)
    np.testing.assert_array_equal(M @ x, wl.preconditioners.Amg(A, coarse_rows=20) @ x)
