"""Members that fail: the others end, and the error names who failed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .conftest import line


def test_a_member_that_raises_ends_the_others(kind: str) -> None:
    group = wl.distributed.Group([kind] * 3)

    def program(member: Any) -> None:
        if member.links.rank == 2:
            raise MemoryError("no memory left (on purpose)")
        member.links.all(1)

    began = time.perf_counter()
    with pytest.raises(MemoryError, match="on purpose") as raised:
        group.run(program)
    assert time.perf_counter() - began < 5
    assert raised.value.__notes__ == [f"on member 2 of 3, {kind}"]
    assert group.run(lambda member: member.links.all(member.links.rank)) == [[0, 1, 2]] * 3


AT_EXIT = """
import os, threading
import wollemi as wl

class Resource:
    def __del__(self):
        os.write(1, f"{threading.get_ident() == self.owner} ".encode())

own = threading.local()

def program(member):
    own.resource = Resource()
    own.resource.owner = threading.get_ident()

group = wl.distributed.Group(["reference"] * 3)
group.run(program)
"""


def test_members_give_back_objects_of_their_own_before_the_process_ends() -> None:
    """A driver of a device may be gone when the interpreter takes them away."""
    command = [sys.executable, "-c", AT_EXIT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3


def test_a_callback_that_raises_ends_the_solve(kind: str) -> None:
    def callback(x: Any) -> None:
        raise ZeroDivisionError("on purpose")

    A = wl.distribute(line(30), [kind] * 3)
    with pytest.raises(ZeroDivisionError):
        wl.solvers.Cg(A).solve(np.ones(30), callback=callback)
    assert wl.solvers.Cg(A).solve(np.ones(30)).converged


def test_ctrl_c_ends_the_solve_on_all_members_in_the_same_iteration() -> None:
    n = 20_000
    A = wl.distribute(line(n) - 0.6 * wl_eye(n), ["omp:1"] * 2)
    cg = wl.solvers.Cg(A, rtol=1e-13, maxiter=10**6)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.perf_counter()
    timer.start()
    with pytest.raises(wl.errors.SolveInterrupted) as raised:
        cg.solve(np.random.default_rng(0).standard_normal(n))
    assert time.perf_counter() - began < 5
    result: Any = raised.value.result
    assert result.x.shape == (n,) and "interrupted" in result.reason
    assert cg.solve(np.zeros(n)).converged


def wl_eye(n: int) -> Any:
    import scipy.sparse as sp

    return sp.eye_array(n, format="csr")


def test_ctrl_c_in_a_callback(kind: str) -> None:
    def callback(x: Any) -> None:
        raise KeyboardInterrupt

    A = wl.distribute(line(30), [kind] * 2)
    with pytest.raises(wl.errors.SolveInterrupted) as raised:
        wl.solvers.Cg(A, rtol=1e-10).solve(np.ones(30), callback=callback)
    result: Any = raised.value.result
    assert 1 <= result.iterations <= 2


def test_an_inverse_that_is_missing_is_told_by_the_member_that_misses_it() -> None:
    S = line(30)
    S.setdiag(np.where(np.arange(30) == 25, 0.0, 2.6))
    with pytest.raises(wl.errors.InvalidMatrix, match="diagonal") as raised:
        wl.preconditioners.Jacobi(wl.distribute(S, ["omp:1"] * 3))
    assert raised.value.__notes__ == ["on member 2 of 3, omp:1"]


def test_operands_of_groups_and_of_lone_executors_do_not_mix(kind: str) -> None:
    A, other = (wl.distribute(line(20), [kind] * 2) for _ in range(2))
    M = wl.preconditioners.Jacobi(wl.Csr(line(20), executor=kind))
    with pytest.raises(wl.errors.ExecutorMismatch, match="member 0 of 2"):
        wl.solvers.Cg(A, M=M)
    with pytest.raises(wl.errors.InvalidArgument, match="over one group"):
        wl.solvers.Cg(A, M=wl.preconditioners.Jacobi(other))
    with pytest.raises(wl.errors.UnsupportedOperation, match="does not move"):
        A.to(kind)


def test_groups_are_not_pickled_and_need_members(kind: str) -> None:
    group = wl.distributed.Group([kind])
    for thing in (group, group.members[0]):
        with pytest.raises(wl.errors.InvalidArgument, match="pickle"):
            pickle.dumps(thing)
    with pytest.raises(wl.errors.InvalidArgument, match="at least one member"):
        wl.distributed.Group([])
    with pytest.raises(wl.errors.InvalidArgument, match=r"such as \['omp:1'\] \* 2"):
        wl.distribute(line(4), 2)
    with pytest.raises(wl.errors.InvalidArgument, match=r"give the list \['omp:1', 'omp:2'\]"):
        wl.distribute(line(4), "omp:1, omp:2")
    with pytest.raises(wl.errors.InvalidArgument, match="not a member of another"):
        wl.distributed.Group([group.members[0]])


def test_a_callback_that_uses_the_group_is_told_that_it_is_at_work(kind: str) -> None:
    A = wl.distribute(line(30), [kind] * 2)
    with pytest.raises(wl.errors.UnsupportedOperation, match="at work"):
        wl.solvers.Cg(A).solve(np.ones(30), callback=lambda x: A @ x)
    assert (A @ np.ones(30)).shape == (30,)


def test_threads_that_share_a_group_take_turns(kind: str) -> None:
    A = wl.distribute(line(30), [kind] * 2)
    cg, found = wl.solvers.Cg(A, rtol=1e-8), []
    threads = [
        threading.Thread(target=lambda: found.append(cg.solve(np.ones(30)).converged))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [True] * 4


def test_a_value_of_one_member_that_is_not_finite_is_refused_on_all(kind: str) -> None:
    S = line(30).tolil()
    S[29, 29] = np.nan
    A = wl.distribute(S.tocsr(), [kind] * 3)
    with pytest.raises(wl.errors.InvalidMatrix, match="A has NaN or Inf"):
        wl.solve(A, np.ones(30))


def test_values_that_one_member_refuses_are_taken_by_none(kind: str) -> None:
    S, b = line(40), np.arange(40.0)
    A = wl.distribute(S, [kind, kind])
    counts = [part.local_nnz for part in A.members]
    for second in (np.ones(counts[1] + 1), np.full(counts[1], 1j)):
        with pytest.raises(wl.errors.InvalidMatrix):
            A.update_values(wl.distributed.Parts([np.full(counts[0], 7.0), second]))
        np.testing.assert_allclose(A @ b, S @ b)


@pytest.mark.parametrize("M", ["jacobi", "blockjacobi:size=2", "schwarz:inner=ilu"])
def test_an_update_that_one_member_refuses_leaves_all_as_they_were(kind: str, M: str) -> None:
    S, b = line(40), np.arange(1.0, 41.0)
    A = wl.distribute(S, [kind, kind])
    gmres = wl.solvers.Gmres(A, M=M, rtol=1e-10)
    before, solution = gmres.M @ b, gmres.solve(b).x
    A.update_values(np.where(np.arange(S.nnz) == S.nnz - 1, np.nan, 2 * S.data))
    with pytest.raises(wl.errors.WollemiError):
        gmres.update()
    np.testing.assert_array_equal(gmres.M @ b, before)
    A.update_values(S.data)
    np.testing.assert_array_equal(gmres.solve(b).x, solution)


def test_the_error_of_the_first_member_is_raised_and_not_those_of_aborted_links(monkeypatch):
    group = wl.distributed.Group(["reference"] * 3)
    monkeypatch.setattr("wollemi.core.distributed.group.PATIENCE", 0.1)
    aborted = threading.Event()
    for member in group.members:
        monkeypatch.setattr(type(member.links), "abort", lambda links: aborted.set(), raising=False)

    def program(member: wl.Executor) -> None:
        if member.links.rank == 1:
            raise MemoryError("no memory left")
        assert aborted.wait(10)
        raise RuntimeError("the communicator was aborted")

    with pytest.raises(MemoryError, match="no memory left") as caught:
        group.run(program)
    assert any("on member 1 of 3" in note for note in caught.value.__notes__)
