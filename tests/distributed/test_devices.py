"""Groups whose members have arrays of their own kind, as GPUs do, and copy them to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.distributed import group as groups
from wollemi.core.links import Move
from wollemi.solvers.preconditioners.multigrid import groups as levels

from . import away
from .conftest import line, scattered
from .test_multigrid import PROBLEMS, matrices_of, shared_matrices_of


@pytest.fixture(autouse=True)
def members_with_arrays_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "ThreadLinks", away.AwayLinks)
    monkeypatch.setattr(levels, "ENTRIES_ON_DEVICES", 300)


def shared(S: Any, size: int = 3) -> Any:
    return wl.distribute(S, [away.AwayExecutor() for _ in range(size)])


@pytest.mark.parametrize("make", [lambda: line(60, 17), lambda: scattered(40)])
def test_products_transposes_and_sums(make: Any, rng: Any) -> None:
    S = make()
    A, x = shared(S), rng.standard_normal(S.shape[0])
    np.testing.assert_array_equal(A @ x, wl.Csr(S, executor="reference") @ x)
    np.testing.assert_allclose(A.T @ x, S.T @ x, atol=1e-12)
    np.testing.assert_allclose((A @ A).to_local().toarray(), (S @ S).toarray(), atol=1e-12)
    found = wl.solvers.Gmres(A, rtol=1e-8).solve(x)
    np.testing.assert_allclose(S @ found.x, x, atol=1e-5)


@pytest.mark.parametrize("by_first", [False, True])
@pytest.mark.parametrize("name", ["plane", "space", "drifting"])
def test_levels_have_the_bits_of_one_executor(
    name: str, by_first: bool, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "ENTRIES_OF_ONE", 10**8 * by_first)
    S = PROBLEMS[name]
    alone = wl.Csr(S, executor="reference")
    expected = wl.preconditioners.Amg(alone, coarse_rows=20)
    A = shared(S)
    M = wl.preconditioners.Amg(A, coarse_rows=20)
    count = len(M.members[0].levels)
    assert count >= 2
    for level in range(count):
        mine, theirs = shared_matrices_of(M, level), matrices_of(expected.levels[level])
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one.indptr, other.indptr)
            np.testing.assert_array_equal(one.indices, other.indices)
            np.testing.assert_array_equal(one.data, other.data)
        bounds = {member.levels[level].before.M.largest for member in M.members}
        assert bounds == {expected.levels[level].before.M.largest}
    b = rng.standard_normal(S.shape[0])
    solver = wl.solvers.Bicgstab if name == "drifting" else wl.solvers.Cg
    iterations = [
        solver(B, P, rtol=1e-8).solve(b).iterations for B, P in ((alone, expected), (A, M))
    ]
    assert abs(iterations[0] - iterations[1]) <= 1


def test_members_meet_as_often_for_many_levels_as_for_few() -> None:
    A = shared(PROBLEMS["plane"])
    wl.preconditioners.Amg(A, coarse_rows=20)  # facts of the matrix are found once
    counts = []
    for rows in (150, 20):
        levels.ENTRIES_ON_DEVICES = rows * 6  # of the fixture, which restores it
        away.COUNTS.clear()
        M = wl.preconditioners.Amg(A, coarse_rows=20)
        seen = away.COUNTS["wollemi-member-1"]
        counts.append((len(M.members[0].levels), seen["meeting"], seen["wait"], seen["call"]))
    (few, meetings, waits, calls), (many, *more) = counts
    assert many > few
    # each level makes a bound of its smoother, and numbers the columns of three matrices
    assert more[0] - meetings == many - few
    assert more[1] - waits <= 8 * (many - few)
    assert more[2] - calls <= 80 * (many - few)


def test_a_local_block_is_made_where_it_is_asked_for() -> None:
    A = shared(line(60, 17))
    wl.preconditioners.Chebyshev(A, bounds=2.0, fraction=0.3)
    assert all("local" not in member._derived for member in A.members)


def test_members_move_parts_of_several_arrays_at_once() -> None:
    def program(member: Any) -> Any:
        rank, links = member.links.rank, member.links
        whole = [member.from_host(np.arange(6) + 10 * at) for at in range(2)]
        moves = [Move(whole, [(1, 1, 4)], []), Move(whole[:1], [(1, 5, 6)], [])]
        if rank == 1:
            empty = [array[:0] for array in whole]
            moves = [Move(empty, [], [(0, 0, 3)]), Move(empty[:1], [], [(0, 0, 1)])]
        found = links.swap(moves)
        return [[member.to_host(array).tolist() for array in arrays] for arrays in found]

    group = wl.distributed.Group([away.AwayExecutor() for _ in range(2)])
    assert group.run(program) == [[[[], []], [[]]], [[[1, 2, 3], [11, 12, 13]], [[5]]]]
