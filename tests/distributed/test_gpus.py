"""Groups of GPUs in one process; run where there are two."""

from __future__ import annotations

import gc
import os
import time
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.solvers.preconditioners.multigrid import groups as levels_of_groups

from .conftest import grid, line, scattered

pytestmark = pytest.mark.gpu

# Multicast on NVLink is missing on some machines with GPUs that announce it.
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")


def names_of_gpus() -> list[str]:
    """Return the names of all NVIDIA GPUs, two at least."""
    try:
        from wollemi.core.registry import backend

        names = backend("cuda").devices()
    except wl.errors.ExecutorUnavailable as error:
        pytest.skip(f"no GPU here: {error}; runs on machines with two")
    if len(names) < 2:
        pytest.skip("one GPU here; runs on machines with two")
    return names


def joined_by(links: str, names: list[str]) -> wl.distributed.Group:
    """Return a group of GPUs that are joined by links of a kind."""
    try:
        return wl.distributed.Group(names, links=links)
    except wl.errors.UnsupportedOperation as error:
        pytest.skip(f"{error}; needs GPUs that reach each other's memory, or NCCL")


@pytest.fixture(params=["peer-2", "peer-all", "nccl-2", "nccl-all"])
def gpus(request: Any) -> wl.distributed.Group:
    """A group of two GPUs, or of all that there are."""
    links, _, count = request.param.partition("-")
    names = names_of_gpus()
    if count == "all" and len(names) == 2:
        pytest.skip("two GPUs here; runs on machines with more")
    return joined_by(links, names[:2] if count == "2" else names)


@pytest.mark.parametrize("make", [lambda: line(500, 17), lambda: scattered(300)])
def test_products_on_gpus(gpus: wl.distributed.Group, make: Any, rng: Any) -> None:
    S = make()
    A, x = wl.distribute(S, gpus), rng.standard_normal((S.shape[0], 3))
    np.testing.assert_allclose(A @ x, S @ x, atol=1e-11)
    np.testing.assert_allclose(A.T @ x, S.T @ x, atol=1e-11)
    np.testing.assert_allclose(A.gather(A @ A.scatter(x)), S @ x, atol=1e-11)


@pytest.mark.parametrize("name", ["Cg", "Fcg", "Bicgstab", "Cgs", "Gmres"])
@pytest.mark.parametrize("columns", [1, 3])
def test_solvers_on_gpus(gpus: wl.distributed.Group, name: str, columns: int, rng: Any) -> None:
    S = line(600) if name in ("Cg", "Fcg") else line(600, 17)
    b = rng.standard_normal((600, columns))
    alone = getattr(wl.solvers, name)(wl.Csr(S, executor="omp"), rtol=1e-8).solve(b)
    solver = getattr(wl.solvers, name)(wl.distribute(S, gpus), rtol=1e-8)
    for _ in range(2):  # the second time from the capture
        found = solver.solve(b)
        assert found.converged
        assert abs(found.iterations - alone.iterations) <= (5 if name == "Bicgstab" else 1)
        np.testing.assert_allclose(found.x, alone.x, atol=1e-5)


@pytest.mark.parametrize("by_first", [False, True])
def test_multigrid_on_gpus(
    gpus: wl.distributed.Group, by_first: bool, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels_of_groups, "ENTRIES_ON_DEVICES", 700)
    monkeypatch.setattr(levels_of_groups, "ENTRIES_OF_ONE", 4000 * by_first)
    S, b = grid(24), rng.standard_normal(576)
    A, alone = wl.distribute(S, gpus), wl.Csr(S, executor="omp")
    np.testing.assert_allclose((A @ A).to_local().toarray(), (S @ S).toarray(), atol=1e-10)
    expected = wl.solvers.Cg(alone, wl.preconditioners.Amg(alone), rtol=1e-8).solve(b)
    cg = wl.solvers.Cg(A, wl.preconditioners.Amg(A, coarse_rows=20), rtol=1e-8)
    for _ in range(2):  # the second time from the capture
        found = cg.solve(b)
        assert found.converged and found.iterations <= expected.iterations + 4
        np.testing.assert_allclose(found.x, expected.x, atol=1e-5)


def test_graphs_of_others_are_freed_while_a_group_solves(
    gpus: wl.distributed.Group, rng: Any
) -> None:
    S = line(600, 17)
    b = rng.standard_normal((600, 3))
    A = wl.distribute(S, gpus)
    for _ in range(4):
        others = [wl.solvers.Gmres(A, rtol=1e-8, restart=10 + i) for i in range(3)]
        for solver in others:
            solver.solve(b)
        others.append(others)  # only the garbage collector finds them
        del others, solver
        again = wl.solvers.Gmres(A, rtol=1e-8)
        found = again.solve(b, callback=lambda _: gc.collect(0) and None)
        assert found.converged
        assert again.solve(b).converged


def systems(rng: Any) -> list[tuple[Any, Any]]:
    return [(S, rng.standard_normal(S.shape[0])) for S in (grid(40), line(5000, 70))]


@pytest.mark.parametrize("name", ["Cg", "Bicgstab", "Gmres", "Minres", "Idr"])
def test_peers_give_the_bits_of_nccl(name: str, rng: Any) -> None:
    names = names_of_gpus()
    by_links = [joined_by(links, names) for links in ("peer", "nccl")]
    S, b = systems(rng)[name not in ("Cg", "Minres")]
    found = [
        getattr(wl.solvers, name)(wl.distribute(S, group), rtol=1e-6, maxiter=300).solve(b)
        for group in by_links
    ]
    np.testing.assert_array_equal(found[0].residuals, found[1].residuals)
    np.testing.assert_array_equal(found[0].x, found[1].x)


def test_cycles_of_a_graph_have_the_bits_of_cycles_by_the_host(
    gpus: wl.distributed.Group, rng: Any
) -> None:
    S, b = line(5000, 70), rng.standard_normal(5000)
    gmres = wl.solvers.Gmres(wl.distribute(S, gpus), restart=7, rtol=1e-10)
    by_host = gmres.solve(b, callback=lambda _: None)
    assert by_host.iterations > 4 * 7
    for _ in range(3):
        found = gmres.solve(b)
        assert found.stops == by_host.stops
        np.testing.assert_array_equal(found.residuals, by_host.residuals)
        np.testing.assert_array_equal(found.x, by_host.x)


def test_a_group_of_one_gpu_has_the_bits_of_the_gpu(rng: Any) -> None:
    names = names_of_gpus()
    for S, b in systems(rng):
        results = [
            wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-6, maxiter=300).solve(b)
            for A in (wl.Csr(S, executor=names[0]), wl.distribute(S, names[:1]))
        ]
        np.testing.assert_array_equal(results[0].x, results[1].x)


@pytest.mark.parametrize("links", ["peer", "nccl"])
def test_a_member_that_fails_ends_kernels_that_wait_for_it(links: str, rng: Any) -> None:
    group = joined_by(links, names_of_gpus())
    A, b = wl.distribute(line(600), group), rng.standard_normal(600)
    cg = wl.solvers.Cg(A, rtol=1e-8)
    expected = cg.solve(b).x

    def program(member: Any) -> None:
        if member.links.rank == 1:
            raise MemoryError("no memory left (on purpose)")
        member.links.sum(member.zeros((4,), np.float64))

    began = time.perf_counter()
    with pytest.raises(MemoryError, match="on purpose"):
        group.run(program)
    assert time.perf_counter() - began < 5
    if links == "peer":
        np.testing.assert_array_equal(cg.solve(b).x, expected)


def test_a_gpu_twice_adds_up_on_the_host(rng: Any) -> None:
    try:
        group = wl.distributed.Group(["cuda:0", "cuda:0"])
    except wl.errors.ExecutorUnavailable as error:
        pytest.skip(f"no GPU here: {error}; runs on machines with one")
    b = rng.standard_normal(400)
    found = wl.solvers.Cg(wl.distribute(line(400), group), rtol=1e-8).solve(b)
    assert found.converged
    np.testing.assert_allclose(line(400) @ found.x, b, atol=1e-6)
