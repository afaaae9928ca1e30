"""Multigrid over groups: levels that members share, and gathered ones."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.distributed import assembly, collected, ghost_rows, index_arrays, products
from wollemi.core.distributed.shared import Shared
from wollemi.solvers.auto import plan
from wollemi.solvers.preconditioners.multigrid import amg, groups

from .conftest import grid


@pytest.fixture(autouse=True)
def few_rows_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small systems have levels of both kinds."""
    monkeypatch.setattr(groups, "ROWS_ON_HOSTS", 150)


def iterations(A: Any, b: Any, M: Any, solver: str = "Cg") -> int:
    found = getattr(wl.solvers, solver)(A, M, rtol=1e-8).solve(b)
    assert found.converged
    return int(found.iterations)


def stretched(n: int) -> Any:
    """Return diffusion that is a thousand times stronger along one axis than along the other."""
    along = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    return (sp.kron(eye, along) + 1e-3 * sp.kron(along, eye)).tocsr()


def cube(n: int) -> Any:
    """Return the 7-point stencil."""
    side = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.kronsum(sp.kronsum(side, side), side).tocsr()


def drifting(n: int) -> Any:
    """Return diffusion with a pattern that is not symmetric."""
    S = grid(n)
    drift = sp.diags_array([0.3, -0.3], offsets=[0, n // 3], shape=S.shape)
    return (S + drift).tocsr()


PROBLEMS = {
    "plane": grid(24),
    "jump": grid(24, 1e6),
    "stretched": stretched(24),
    "space": cube(8),
    "drifting": drifting(24),
}


def matrices_of(level: Any) -> list[Any]:
    """Return the matrices of a level of one executor, as arrays of SciPy with sorted rows."""
    parts = (level.A, level.P, level.R)
    return [sp.csr_array(part.to_scipy()).sorted_indices() for part in parts]


def shared_matrices_of(M: Any, level: int) -> list[Any]:
    """Return the matrices of a level that a group shares."""
    found = []
    for name in "APR":
        parts = [getattr(member.levels[level], name) for member in M.members]
        found.append(Shared(M.group, parts).to_local().sorted_indices())
    return found


def check_levels_of_one_executor(kind: str, name: str, sizes: Any, **options: Any) -> None:
    """Compare levels of groups with the levels of one executor, and iterations."""
    S = PROBLEMS[name]
    b = np.random.default_rng(4).standard_normal(S.shape[0])
    alone = wl.Csr(S, executor=kind)
    lone = wl.preconditioners.Amg(alone, coarse_rows=20, **options)
    solver = "Bicgstab" if name == "drifting" else "Cg"
    expected = iterations(alone, b, lone, solver)
    for size in sizes:
        A = wl.distribute(S, [kind] * size)
        M = wl.preconditioners.Amg(A, coarse_rows=20, **options)
        shared = len(M.members[0].levels)
        gathered = M.members[0].coarsest.inner.levels
        assert shared >= 1 and shared + len(gathered) == len(lone.levels)
        for at, level in enumerate(lone.levels[:shared]):
            for mine, theirs in zip(shared_matrices_of(M, at), matrices_of(level), strict=True):
                np.testing.assert_array_equal(mine.indptr, theirs.indptr)
                np.testing.assert_array_equal(mine.indices, theirs.indices)
                np.testing.assert_array_equal(mine.data, theirs.data)
        for mine, level in zip(gathered, lone.levels[shared:], strict=True):
            for left, right in zip(matrices_of(mine), matrices_of(level), strict=True):
                np.testing.assert_array_equal(left.data, right.data)
        assert abs(iterations(A, b, M, solver) - expected) <= 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_levels_are_those_of_one_executor_bit_for_bit(kind: str, name: str) -> None:
    check_levels_of_one_executor(kind, name, [2, 3, 5])


@pytest.mark.parametrize("name", ["jump", "drifting"])
def test_levels_of_two_steps_are_those_of_one_executor(kind: str, name: str) -> None:
    check_levels_of_one_executor(kind, name, [3], aggressive=1)


@pytest.mark.parametrize("name", ["space", "drifting"])
def test_rows_of_ghosts_that_devices_collect(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members with links on their devices keep rows whole and copy arrays from each other."""
    for module in (assembly, collected, ghost_rows, index_arrays, products):
        monkeypatch.setattr(module, "keeps_whole", lambda executor: executor.links is not None)
    monkeypatch.setattr(groups, "is_gathered", lambda A: A.shape[0] <= 150)
    check_levels_of_one_executor("omp:1", name, [2, 3])


def test_a_group_of_one_has_the_levels_of_its_member(kind: str, rng: Any) -> None:
    S, b = PROBLEMS["jump"], rng.standard_normal(576)
    alone, A = wl.Csr(S, executor=kind), wl.distribute(S, [kind])
    counts = [iterations(M, b, wl.preconditioners.Amg(M, coarse_rows=20)) for M in (alone, A)]
    assert counts[0] == counts[1]


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
