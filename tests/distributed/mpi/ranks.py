"""Programs of MPI's ranks: python ranks.py NAME [executor]; assertions hold on all ranks.

The executor is ``omp:1`` by default; ``own`` is the GPU of each rank.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.distributed import ranks as waiting
from wollemi.solvers.preconditioners.multigrid import groups

N = 48


def line(n: int = N, far: int = 0) -> Any:
    A = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    return (A + sp.diags_array([-0.3], offsets=[far], shape=(n, n))).tocsr() if far else A


def say(group: Any, *words: Any) -> None:
    print(f"rank {group.rank}:", *words, flush=True)


def everything(group: Any) -> None:
    kind, b = group.executor.name, np.random.default_rng(0).standard_normal(N)
    products(group, kind, b)
    partitions(group, kind, b)
    for name in ("Cg", "Bicgstab", "Cgs", "Gmres"):
        S = line() if name == "Cg" else line(N, 17)
        A, solver = wl.distribute(S, group), getattr(wl.solvers, name)
        alone = solver(wl.Csr(S, executor=kind), rtol=1e-8).solve(b)
        found = solver(A, rtol=1e-8).solve(b)
        assert found.converged and found.x.shape == (N,), name
        assert abs(found.iterations - alone.iterations) <= (5 if name == "Bicgstab" else 0), name
        np.testing.assert_allclose(found.x, alone.x, atol=1e-6)
        part = solver(A, M="jacobi", rtol=1e-8).solve(A.scatter(b)).x
        np.testing.assert_allclose(A.gather(part), alone.x, atol=1e-6)
    assert wl.solve(wl.distribute(line(), group), b).notes[0].startswith("cg: the matrix is symm")
    multigrid(group, kind)
    mismatches(group, b)
    contributions(group)
    long_waits(group)


def contributions(group: Any) -> None:
    """Elements of a line contribute to the rows of both ends, whoever has these rows."""
    own = np.arange(group.rank, N - 1, group.size)
    row = np.concatenate([own, own, own + 1, own + 1])
    col = np.concatenate([own, own + 1, own, own + 1])
    values = np.repeat([1.0, -1.0, -1.0, 1.0], own.size)
    A = wl.distributed.from_contributions(group, (values, (row, col)), (N, N))
    S = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(N, N)).toarray()
    S[0, 0] = S[-1, -1] = 1.0
    np.testing.assert_array_equal(A.to_local().toarray(), S)


def long_waits(group: Any) -> None:
    """A rank that waits long for another one warns with the line of its call, once in a group."""
    A = wl.distribute(line(), group)
    b = np.ones(A.local_rows)
    before, waiting.LONG_WAIT = waiting.LONG_WAIT, 0.2
    for call in (A.to_local, lambda: wl.solve(A, b)):
        group.host._reminded = False
        if group.rank == group.size - 1:
            time.sleep(1.0)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        if group.rank != group.size - 1:
            assert [Path(warning.filename).name for warning in seen] == ["ranks.py"], seen
            assert "collective" in str(seen[0].message)
    waiting.LONG_WAIT = before


def multigrid(group: Any, kind: str) -> None:
    """A matrix of more rows than are gathered, and its square."""
    n = groups.ROWS_ON_HOSTS + 8
    S, b = line(n) - 0.49 * sp.eye_array(n), np.random.default_rng(0).standard_normal(n)
    A, alone = wl.distribute(S, group), wl.Csr(S, executor=kind)
    assert abs((A @ A).to_local() - (alone @ alone).to_scipy()).max() == 0
    found = wl.solvers.Cg(A, M="amg", rtol=1e-8).solve(b)
    expected = wl.solvers.Cg(alone, M="amg", rtol=1e-8).solve(b)
    assert found.converged and abs(found.iterations - expected.iterations) <= 1
    np.testing.assert_allclose(found.x, expected.x, atol=1e-4)


def products(group: Any, kind: str, b: Any) -> None:
    S = line(N, 17)
    alone = wl.Csr(S, executor=kind)
    # its own .T goes by columns at first, in another order where rows are added up by lanes
    rows_of_transpose = wl.Csr(sp.csr_array(S.T), executor=kind)
    rows = S[group.rank :: group.size]
    by_owner = wl.distribute(
        S if group.rank == 0 else None, group, partition=np.arange(N) % group.size
    )
    assert abs(by_owner.host_rows() - rows).max() == 0
    counts = [N - group.size + 1] + [1] * (group.size - 1)
    begin = sum(counts[: group.rank])
    mine = S[begin : begin + counts[group.rank]]
    for A in (by_owner, wl.distributed.Csr.from_rows(group, mine, S.shape)):
        np.testing.assert_array_equal(A @ b, alone @ b)
        np.testing.assert_array_equal(A.T @ b, rows_of_transpose @ b)
        np.testing.assert_array_equal(A.gather(A @ A.scatter(b)), alone @ b)
        assert A.nnz == S.nnz and abs(A.to_local() - S).max() == 0


def partitions(group: Any, kind: str, b: Any) -> None:
    """Rank 0 alone saves a partition and prints reports; others load it for rows of their own."""
    S, owners = line(N, 17), (np.arange(N) * 7) % group.size
    A = wl.distribute(S, group, partition=owners)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(group.host.all(folder)[0], "parts.npz")  # the folder of rank 0
        if group.rank == 0:
            A.partition.save(path)
            assert [share.rows for share in A.partition.report()] == np.bincount(owners).tolist()
        group.barrier()
        loaded = wl.distributed.Partition.load(path)
        A.partition.save(path)  # all at once
        assert wl.distributed.Partition.load(path) == loaded == A.partition
        group.barrier()
    from_rows, expected = wl.distributed.Csr.from_rows, wl.Csr(S, executor=kind) @ b
    own = from_rows(group, S[loaded.rows(group.rank)], S.shape, partition=loaded)
    begin, end = N * group.rank // group.size, N * (group.rank + 1) // group.size
    moved = wl.distribute(from_rows(group, S[begin:end], S.shape), group, partition=loaded)
    back = wl.distribute(moved, group)
    for found in (own, moved, back):
        np.testing.assert_array_equal(found @ b, expected)
        if group.rank == group.size - 1:
            assert sum(share.entries for share in found.partition.report()) == S.nnz
    assert own.partition == moved.partition == loaded
    assert back.partition == wl.distributed.Partition.even(N, group.size)
    turned = (np.arange(N) + group.rank) % group.size
    mismatch = wl.errors.GroupMismatch
    for bad, error, told in (
        (lambda: wl.distribute(A, group, partition=turned), mismatch, "different partitions"),
        (
            lambda: from_rows(group, S[turned == group.rank], S.shape, partition=turned),
            mismatch,
            "different partitions",
        ),
        (lambda: wl.distribute(None if group.rank else A, group), mismatch, "by every rank"),
        (lambda: from_rows(group, S, S.shape), wl.errors.InvalidMatrix, "from_contributions"),
    ):
        try:
            bad()
        except error as raised:
            assert told in str(raised), raised
        else:
            raise AssertionError(f"no error: {told}")


def different(group: Any) -> None:
    """Ranks with different matrices or whole vectors, and with ones that rounding changed."""
    S, b, mine = line(), np.random.default_rng(0).standard_normal(N), group.rank + 1.0
    A, last, other = wl.distribute(S, group), group.size - 1, line()
    if group.rank == last:
        other.data[7] += 0.1
    moved = sp.csr_array((S.data, (S.indices + group.rank) % N, S.indptr), shape=S.shape)
    own = S[: N // 2, : N // 2] if group.rank == 0 else S[N // 2 :, N // 2 :]
    from_rows = wl.distributed.Csr.from_rows
    mismatch, shape = wl.errors.GroupMismatch, wl.errors.ShapeMismatch
    at, Cg, Amg = group.rank, wl.solvers.Cg, wl.preconditioners.Amg
    for bad, error, told in (
        (lambda: wl.distribute(S * mine, group), mismatch, "rank 1: other values. Pass the same A"),
        (lambda: wl.distribute(other, group), mismatch, f"rank {last}: other values"),
        (lambda: wl.distribute(moved, group), mismatch, "rank 1: entries at other places"),
        (
            lambda: wl.distribute(line(N + group.rank), group),
            mismatch,
            f"rank 0: {N} x {N} float64, {S.nnz} entries; rank 1: {N + 1} x {N + 1}",
        ),
        (lambda: A @ (b * mine), mismatch, "x: a whole vector is the same on every rank"),
        (lambda: wl.solve(A, b * mine), mismatch, "b: a whole vector is the same"),
        (lambda: wl.solve(A, np.roll(b, group.rank)), mismatch, "values of rank 1"),
        (lambda: A @ np.stack([b, b * mine], axis=1), mismatch, "A.scatter(x)"),
        (lambda: Cg(A, M=["jacobi", "amg"][at]), mismatch, "Cg: the members were given different"),
        (
            lambda: Cg(A, M=["jacobi", "amg"][at]),
            mismatch,
            "member 0: M='jacobi'; member 1: M='amg'",
        ),
        (lambda: Cg(A, M=[None, "amg"][at]), mismatch, "member 0: M=None; member 1: M='amg'"),
        (lambda: Cg(A, M=[wl.Identity(N), np.copy][at]), mismatch, "M=Identity; member 1: M="),
        (lambda: Cg(A, rtol=10.0 ** (-4 - at)), mismatch, "rtol=0.0001; member 1: rtol=1e-05"),
        (lambda: Cg(A, M=[Amg(), Amg(theta=0.1)][at]), mismatch, "M=Amg(theta=0.1)"),
        (lambda: Amg(A, theta=0.1 + 0.1 * at), mismatch, "Amg: the members were given"),
        (lambda: (Cg if at else wl.solvers.Gmres)(A), mismatch, "member 0: Gmres; member 1: Cg"),
        (lambda: Cg(A) if at else A @ b, mismatch, "member 0: a product; member 1: Cg"),
        (lambda: wl.solve(A, b, M=["jacobi", "amg"][at]), mismatch, "members"),
        (lambda: wl.solve(A, b, method=["cg", "gmres"][at]), mismatch, "members"),
        (lambda: wl.solve(A, b, rtol=10.0 ** (-4 - at)), mismatch, "members"),
        (lambda: wl.solvers.Lanczos(A, k=1 + at), mismatch, "k=1; member 1: k=2"),
        (lambda: from_rows(group, own, S.shape), (mismatch, shape), f"the matrix has {N} columns"),
        (lambda: from_rows(group, [own] * 3, S.shape), wl.errors.InvalidMatrix, "its own rows"),
    ):
        try:
            bad()
        except error as raised:
            assert told in str(raised), raised
        else:
            raise AssertionError(f"no error: {told}")
    rounded = b * (1 + 1e-14 * group.rank)
    x0 = np.full(N, mine)
    for found in (
        wl.solvers.Cg(A, rtol=1e-9).solve(rounded, x0=x0).x,
        wl.solvers.Cg(wl.distribute(S * (1 + 1e-14 * group.rank), group), rtol=1e-9).solve(b).x,
    ):
        np.testing.assert_allclose(S @ found, b, atol=1e-7)


def mismatches(group: Any, b: Any) -> None:
    A = wl.distribute(line(), group)
    for bad in (
        lambda: A @ (b if group.rank else b[:3]),
        lambda: wl.solvers.Cg(A, rtol=10.0 ** -(5 + group.rank)).solve(b),
        lambda: wl.solvers.Cg(A).solve(np.full(N, np.nan)),
        lambda: wl.distribute(line(N + group.rank), group),
    ):
        try:
            bad()
        except wl.errors.WollemiError as error:
            assert not isinstance(error, wl.errors.MemberFailed), error
        else:
            raise AssertionError("no error")
        np.testing.assert_array_equal((A @ b).shape, (N,))  # the group still works


def reproducible(group: Any) -> None:
    group = wl.distributed.world("omp:1", reproducible=True)
    n = 1500
    b = np.random.default_rng(0).standard_normal(n)
    found = wl.solvers.Cg(wl.distribute(line(n), group), rtol=1e-6).solve(b)
    alone = wl.distribute(line(n), ["omp:1"], reproducible=True)
    np.testing.assert_array_equal(found.x, wl.solvers.Cg(alone, rtol=1e-6).solve(b).x)


def memory(group: Any) -> None:
    """Rows and totals by memory that ranks share: every dtype and width, and products in a row."""
    assert type(group.links).__name__ == "MemoryLinks", group.links.reason
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        S = line(N, 17).astype(dtype)
        A, alone = wl.distribute(S, group), wl.Csr(S, executor="omp:1")
        for shape in ((N,), (N, 1), (N, 3)):
            X = Y = np.random.default_rng(4).standard_normal(shape).astype(dtype)
            for _ in range(5):  # no sum in between: buffers must not be overwritten
                X, Y = A @ X, alone @ Y
                np.testing.assert_array_equal(X, Y)
            rtol = 1e-3 if A.dtype in (np.float32, np.complex64) else 1e-9
            for M in (None, "polynomial"):
                x = wl.solvers.Gmres(A, M=M, rtol=rtol).solve(Y).x
                assert abs(S @ x - Y).max() <= 10 * rtol * abs(Y).max() * N
    observed_by_one(group)
    totals(group)
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(group.links.name)]


def observed_by_one(group: Any) -> None:
    """One rank has a profiler and runs operation by operation; the loop of the other is a tape."""
    A, b = wl.distribute(line(), group), np.ones(N)
    cg = wl.solvers.Cg(A, M="polynomial", rtol=1e-10)
    with wl.profile() if group.rank == 0 else contextlib.nullcontext():
        found = cg.solve(b)
    np.testing.assert_array_equal(cg.solve(b).x, found.x)


def totals(group: Any) -> None:
    """Totals of any length and kind, beside NumPy's; NaN stays."""
    for dtype, count in ((np.float32, 1), (np.float64, 7), (np.float64, 5000)):
        of_ranks = np.random.default_rng(5).standard_normal((group.size, count)).astype(dtype)
        of_ranks[-1, 0] = np.nan
        expected = {
            "sum": of_ranks.sum(axis=0),
            "largest": of_ranks.max(axis=0),
            "norm": np.sqrt((of_ranks**2).sum(axis=0)),
        }
        for name, total in expected.items():
            mine = of_ranks[group.rank].copy()
            getattr(group.links, name)(mine)
            np.testing.assert_allclose(mine, total, rtol=1e-5, atol=1e-6)


def no_memory(group: Any) -> None:
    """If one rank cannot share memory, all exchange messages, and say why."""
    from wollemi.backends.omp import ranks as shared

    shared.PLACES = () if group.rank == 1 else shared.PLACES
    group = wl.distributed.world("omp:1")
    assert type(group.links).__name__ != "MemoryLinks"
    assert "rank 1" in group.links.reason
    A, b = wl.distribute(line(), group), np.ones(N)
    np.testing.assert_allclose(line() @ wl.solvers.Cg(A, rtol=1e-10).solve(b).x, b, atol=1e-8)


def ended(group: Any) -> None:
    """A rank ends while another waits for its total."""
    if group.rank == 1:
        os._exit(0)
    try:
        group.links.sum(np.ones(1))
    except wl.errors.MemberFailed as error:
        assert "rank 1 has ended" in str(error)
        say(group, "heard of it")
    os._exit(0)


def interrupt(group: Any) -> None:
    n = 200_000  # 4000 rows stagnate after half a second, when Ctrl-C is to come
    A = wl.distribute(line(n) - 0.5 * sp.eye_array(n), group)
    cg = wl.solvers.Cg(A, rtol=1e-15, maxiter=10**7)
    b = np.random.default_rng(1).standard_normal(n)
    wl.solvers.Cg(A, maxiter=1).solve(b)  # imports all of it: Ctrl-C comes while it iterates
    if group.rank == group.size - 1:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        cg.solve(b)
    except wl.errors.SolveInterrupted as error:
        result: Any = error.result
        assert len(set(group.links.all(result.iterations))) == 1
        assert result.x.shape == (n,)
        assert (A @ np.ones(n)).shape == (n,)
        say(group, "interrupted")


def failing(x: Any) -> None:
    raise MemoryError("none left, on purpose")


def caught(group: Any) -> None:
    A = wl.distribute(line(), group)
    callback = failing if group.rank == 1 else (lambda x: None)
    began = time.perf_counter()
    try:
        wl.solvers.Cg(A, rtol=1e-10).solve(np.ones(N), callback=callback)
    except wl.errors.MemberFailed as error:
        assert "rank 1 of" in str(error) and "none left, on purpose" in str(error)
        say(group, "heard of it")
    except MemoryError:
        say(group, "failed")
    assert time.perf_counter() - began < 5


def uncaught(group: Any) -> None:
    A = wl.distribute(line(), group)
    callback = failing if group.rank == 1 else (lambda x: None)
    wl.solvers.Cg(A, rtol=1e-10).solve(np.ones(N), callback=callback)


def threads_of_gloo() -> int:
    return sum(
        "gloo_runloop" in name.read_text() for name in Path("/proc/self/task").glob("*/comm")
    )


@atexit.register
def report_released() -> None:
    """Handlers run in reverse order: the one that releases process groups has run."""
    if not threads_of_gloo():
        print("released", flush=True)


def ended_at_once(group: Any) -> None:
    """The interpreter ends right after a message."""
    assert group.links.all(group.rank) == [0, 1]
    assert threads_of_gloo()


def ended_by_the_user(group: Any) -> None:
    """The user has a group of their own, and destroys all process groups."""
    import torch.distributed as processes

    mine = wl.distributed.from_torch(processes.new_group([0, 1]), "omp:1")
    assert mine.links.all(group.rank) == [0, 1]
    processes.destroy_process_group()


def outside(group: Any) -> None:
    """Fail where no other rank can hear of it: the error ends the process."""
    A = wl.distribute(line(), group)
    if group.rank == 1:
        raise ValueError("outside of everything")
    A @ np.ones(N)


def killed(group: Any) -> None:
    A = wl.distribute(line(), group)
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    A @ np.ones(N)


def parts_of_a_process_group(group: Any) -> None:
    import torch.distributed as processes

    first, others = processes.new_group([0]), processes.new_group([1, 2])
    asked = first if group.rank == 0 else others
    mine = wl.distributed.from_torch(asked, "omp:1")
    assert mine.size == (1 if group.rank == 0 else 2)
    b = np.random.default_rng(0).standard_normal(N)
    found = wl.solvers.Cg(wl.distribute(line(), mine), rtol=1e-8).solve(b)
    np.testing.assert_allclose(line() @ found.x, b, atol=1e-6)
    say(group, "solved")


if __name__ == "__main__":
    asked = sys.argv[2] if len(sys.argv) > 2 else "omp:1"
    globals()[sys.argv[1]](wl.distributed.world(None if asked == "own" else asked))
