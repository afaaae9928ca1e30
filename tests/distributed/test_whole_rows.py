"""Groups whose members multiply all rows by one kernel, as GPUs do; here the members are threads.

The links of these tests store rows into the ghosts of other members, as GPUs that reach each
other's memory do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.distributed import group as groups
from wollemi.core.distributed.threads import ThreadLinks
from wollemi.core.room import with_room, zeros_with_room
from wollemi.solvers.preconditioners.multigrid import groups as levels

from .conftest import SYSTEMS, grid, line, scattered
from .test_multigrid import PROBLEMS, shared_matrices_of


class Pushing(ThreadLinks):
    """Links of threads that stand for GPUs: ghosts lie after the rows of a vector."""

    on_device = fuses = True
    pushes = 0

    def push(self, halo: Any, x: Any, ghosts: Any) -> None:
        Pushing.pushes += self.rank == 0
        rows = np.ascontiguousarray(x[halo.send_index])
        found = self.all((rows, halo.sends))
        for rank, begin, end in halo.receives:
            packed, sends = found[rank]
            first, last = next((b, e) for r, b, e in sends if r == self.rank)
            ghosts[begin:end] = packed[first:last]


class Sending(ThreadLinks):
    """Links of threads that send packed rows, as GPUs do by NCCL."""

    on_device = True


@pytest.fixture(params=[Pushing, Sending])
def kind_of_links(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make groups of threads whose links are those of GPUs."""
    monkeypatch.setattr(groups, "ThreadLinks", request.param)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("size", [2, 3])
def test_products_have_the_bits_of_one_executor(
    kind_of_links: None, kind: str, name: str, size: int, rng: Any
) -> None:
    S = SYSTEMS[name]
    n = S.shape[0]
    alone, A = wl.Csr(S, executor=kind), wl.distribute(S, [kind] * size)
    assert all(part._blocks.whole for part in A.members)
    x, block = rng.standard_normal(n), rng.standard_normal((n, 3))
    np.testing.assert_array_equal(A @ x, alone @ x)
    np.testing.assert_array_equal(A @ block, alone @ block)
    np.testing.assert_allclose(A.T @ x, S.T @ x, rtol=1e-12, atol=1e-12)
    assert (abs(A.to_local() - S)).max() == 0
    y = rng.standard_normal(n)
    expected = alone.apply(x, y.copy(), alpha=-1.0, beta=1.0)
    np.testing.assert_array_equal(A.apply(x, y, alpha=-1.0, beta=1.0), expected)


@pytest.mark.parametrize("partition", [[0, 0, 40, 40], [0, 39, 40, 40], np.arange(40) % 3])
def test_any_partition(kind_of_links: None, kind: str, partition: Any, rng: Any) -> None:
    S, x = scattered(40), rng.standard_normal(40)
    A = wl.distribute(S, [kind] * 3, partition=partition)
    np.testing.assert_array_equal(A @ x, wl.Csr(S, executor=kind) @ x)


@pytest.mark.parametrize("name", ["Cg", "Bicgstab", "Gmres", "Minres", "Idr", "PipeCg"])
@pytest.mark.parametrize("columns", [1, 3])
def test_solvers_do_the_iterations_of_one_executor(
    kind_of_links: None, kind: str, name: str, columns: int, rng: Any
) -> None:
    S = line(60) if name in ("Cg", "Minres", "PipeCg") else line(60, 17)
    b = rng.standard_normal((60, columns))
    make = getattr(wl.solvers, name)
    alone = make(wl.Csr(S, executor=kind), rtol=1e-8).solve(b)
    solver = make(wl.distribute(S, [kind] * 3), rtol=1e-8)
    for _ in range(2):
        found = solver.solve(b)
        assert found.converged
        assert abs(found.iterations - alone.iterations) <= (5 if name == "Bicgstab" else 2)
        np.testing.assert_allclose(found.x, alone.x, atol=1e-6)


@pytest.mark.parametrize("M", ["jacobi", "schwarz:inner=ilu,overlap=1", "amg", "polynomial"])
def test_preconditioners(
    kind_of_links: None, M: str, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "ENTRIES_ON_DEVICES", 400)
    monkeypatch.setattr(levels, "ROWS_ON_HOSTS", 60)
    S, b = grid(20), rng.standard_normal(400)
    A = wl.distribute(S, ["omp:1"] * 3)
    found = wl.solvers.Gmres(A, M=M, rtol=1e-8).solve(b)
    assert found.converged
    np.testing.assert_allclose(S @ found.x, b, atol=1e-5)


def test_products_of_matrices_and_their_local_blocks(kind_of_links: None, kind: str) -> None:
    S = scattered(40)
    A = wl.distribute(S, [kind] * 3)
    np.testing.assert_allclose((A @ A).to_local().toarray(), (S @ S).toarray(), atol=1e-12)
    for part in A.members:
        begin, end = part.partition.offsets[part.executor.links.rank :][:2]
        block = wl.Csr(part.local, executor="reference")
        np.testing.assert_allclose(block @ np.eye(end - begin), S[begin:end, begin:end].toarray())


def test_vectors_of_a_solve_have_room_for_ghosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "ThreadLinks", Pushing)
    cg = wl.solvers.Cg(wl.distribute(line(60), ["reference"] * 2), rtol=1e-8)
    asked: list[bool] = []
    from wollemi.core.distributed import matrix

    def noted(executor: Any, block: Any, room: int) -> Any:
        asked.append(with_room(executor, block, room) is not None)
        return with_room(executor, block, room)

    monkeypatch.setattr(matrix, "with_room", noted)
    assert cg.solve(np.ones(60)).converged
    assert all(asked)


def test_only_blocks_that_were_made_with_room_have_it() -> None:
    executor = wl.executor("reference")
    block = zeros_with_room(executor, 4, 2, 3, np.float64)
    found: Any = with_room(executor, block, 2)
    assert found.shape == (6, 3) and found.base is block.base
    assert with_room(executor, block, 3) is None
    assert with_room(executor, block[1:], 1) is None
    assert with_room(executor, block[:, :2], 1) is None
    assert with_room(executor, np.zeros((6, 3))[:4], 2) is None
    assert zeros_with_room(executor, 4, 0, 3, np.float64).base is None


@pytest.mark.parametrize("name", ["plane", "drifting"])
@pytest.mark.parametrize("size", [2, 3])
def test_levels_that_the_first_member_makes_are_those_of_one_executor(
    kind_of_links: None, name: str, size: int, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "ENTRIES_ON_DEVICES", 200)
    S, b = PROBLEMS[name], rng.standard_normal(576)
    A = wl.distribute(S, ["omp:1"] * size, partition=[0, *[200] * (size - 1), 576])
    made = []
    for entries in (0, S.nnz // 2, S.nnz):  # by all members, from the second level on, by the first
        monkeypatch.setattr(levels, "ENTRIES_OF_ONE", entries)
        made.append(wl.preconditioners.Amg(A, coarse_rows=20))
        by_first = "levels of one member" in made[-1].members[0].seconds
        assert by_first == bool(entries)
    count = len(made[0].members[0].levels)
    assert count >= 2
    for M in made[1:]:
        assert len(M.members[0].levels) == count
        for at in range(count):
            for mine, theirs in zip(
                shared_matrices_of(M, at), shared_matrices_of(made[0], at), strict=True
            ):
                np.testing.assert_array_equal(mine.indptr, theirs.indptr)
                np.testing.assert_array_equal(mine.indices, theirs.indices)
                np.testing.assert_array_equal(mine.data, theirs.data)
            for one, other in zip(M.members, made[0].members, strict=True):
                assert one.levels[at].A.partition == other.levels[at].A.partition
        assert M.report().rows == made[0].report().rows
    solver = wl.solvers.Bicgstab if name == "drifting" else wl.solvers.Cg
    found = [solver(A, M, rtol=1e-8).solve(b) for M in made]
    assert len({one.iterations for one in found}) == 1
    np.testing.assert_array_equal(found[1].x, found[0].x)
