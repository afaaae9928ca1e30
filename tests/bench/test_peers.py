"""Other libraries on CPUs and GPUs: their results, and their limits."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi_bench import case, ml, spmv
from wollemi_bench.peers import Absent, Mkl, Numba, PyAmg, SciPy, SolveCase, Torch, peers
from wollemi_bench.peers_numba import kernels

REFERENCE = wl.ReferenceExecutor()


def test_what_is_not_installed_is_absent(monkeypatch):
    from importlib.metadata import PackageNotFoundError

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("wollemi_bench.peers.version", missing)
    with pytest.raises(Absent, match="not installed: pip install pyamg"):
        PyAmg().version()


def test_an_executor_of_the_cpu_is_compared_with_libraries_of_the_cpu():
    assert [p.name for p in peers(REFERENCE)] == ["scipy", "mkl", "torch", "pyamg", "numba"]


@pytest.mark.parametrize("peer", [SciPy(), Mkl(1), Torch(1)], ids=lambda p: p.name)
def test_peers_that_are_here_compute_the_right_product(peer):
    try:
        peer.version()
        problem = spmv.Product(case("circuit:300").matrix())
        (offer,) = problem.theirs(peer)
    except Absent as reason:
        pytest.skip(f"{reason}; this runs where make bench has installed the peers")
    call = offer.make()
    for _ in range(2):  # the second call must not add to the first
        assert problem.wrong(offer.to_host(call())) == ""


def test_what_a_peer_cannot_do_is_absent():
    S = case("stencil5:3").matrix()
    b = np.ones(9)
    with pytest.raises(Absent, match="its cg is not compared"):
        Mkl(1).solve(SolveCase("cg", S, b, 3, 30))
    with pytest.raises(Absent, match="its SpMV is not compared"):
        PyAmg().spmv(S, b)
    with pytest.raises(Absent, match="its spmm is not compared"):
        PyAmg().ml("spmm", S, [b])


def test_pyamg_solves_where_it_is(monkeypatch):
    called = {}

    def method(S, b, **more):
        called.update(more)
        return 2 * b, 0

    krylov = SimpleNamespace(cg=method, gmres=method)
    monkeypatch.setitem(sys.modules, "pyamg", SimpleNamespace(krylov=krylov))
    S = case("stencil5:3").matrix()
    assert np.array_equal(PyAmg().solve(SolveCase("cg", S, np.ones(9), 3, 30))(), 2 * np.ones(9))
    assert called == {"tol": 0.0, "maxiter": 3, "callback": None}
    PyAmg().solve(SolveCase("gmres", S, np.ones(9), 60, 30))()
    assert (called["maxiter"], called["restart"], called["orthog"]) == (2, 30, "mgs")
    with pytest.raises(Absent, match="has no cgs"):
        PyAmg().solve(SolveCase("cgs", S, np.ones(9), 3, 30))


def plain_numba(monkeypatch):
    """Replace compiled loops by plain Python with the same results."""
    module = SimpleNamespace(
        njit=lambda **_: lambda function: function,
        prange=range,
        set_num_threads=lambda _: None,
        config=SimpleNamespace(NUMBA_NUM_THREADS=1),
    )
    monkeypatch.setitem(sys.modules, "numba", module)
    kernels.cache_clear()


@pytest.mark.parametrize("operation", ["spmm", "sddmm", "fusedmm"])
def test_the_loops_for_numba_are_right(monkeypatch, operation):
    plain_numba(monkeypatch)
    problem = ml.Dense(operation, case("pruned:8,9,70").matrix("float32"), 3)
    calls = Numba(2).ml(operation, problem.S, problem.operands)
    assert problem.wrong(calls["numba"]()) == ""
    problem = spmv.Product(case("circuit:40").matrix())
    assert problem.wrong(Numba(2).spmv(problem.S, problem.x)()) == ""
    kernels.cache_clear()


def test_peers_of_a_gpu_are_those_that_compute_there():
    executor = SimpleNamespace(properties={}, backend="cuda", name="cuda:0")
    assert [p.name for p in peers(executor)] == ["cupy", "torch", "warp", "jax"]
    assert [p.name for p in peers(executor, ["jax"])] == ["jax"]
    with pytest.raises(InvalidArgument, match="no peer of cuda:0 is called 'mkl'"):
        peers(executor, ["mkl"])


@pytest.mark.parametrize("peer", peers(SimpleNamespace(properties={}, backend="cuda")))
def test_a_peer_of_a_gpu_without_one_is_absent_or_fails_by_itself(peer):
    """A report on such a machine has its error here: the others go on."""
    S = case("stencil5:3").matrix()
    for ask in (lambda: peer.spmv(S, np.ones(9)), lambda: peer.ml("spmm", S, [np.ones((9, 2))])):
        with pytest.raises(Exception):  # noqa: B017  each library has its own
            ask()
