"""Solves with fixed arrays, which graphs of a user may hold: their solutions and verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument, UnsupportedOperation
from wollemi.core.status import Stop

SOLVERS = ("Cg", "Bicgstab", "Minres", "Gmres", "Fcg", "Idr", "Qmr")


def laplacian(n: int = 12) -> Any:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("name", SOLVERS)
def test_each_call_solves_for_the_numbers_in_b(on: Any, rng: Any, name: str) -> None:
    S = laplacian()
    A = wl.Csr(S, executor=on)
    options = {"restart": 144} if name == "Gmres" else {}
    solver = getattr(wl.solvers, name)(A, rtol=1e-9, maxiter=400, **options)
    b, x = on.from_host(np.ones(144)), on.from_host(np.zeros(144))
    solve = solver.recorded(b, out=x)
    for _ in range(3):
        rhs = rng.standard_normal(144)
        on.copy_into(b, rhs)
        solve()
        status, want = solve.status(), solver.solve(rhs)
        assert status.converged and status.reason == Stop.CONVERGED.sentence
        residual = np.linalg.norm(rhs - S @ on.to_host(x))
        assert residual <= 1.01e-9 * np.linalg.norm(rhs)
        np.testing.assert_allclose(status.residual_norm, residual, rtol=1e-3, atol=1e-14)
        assert abs(status.iterations - want.iterations) <= 1
        assert repr(status).startswith(f"<RecordedStatus: {status.reason}; {status.iterations} it")
        np.testing.assert_allclose(status.threshold, 1e-9 * np.linalg.norm(rhs), rtol=1e-12)


@pytest.mark.parametrize("name", ["Direct", "Lsmr", "Lsqr", "Lanczos", "Lobpcg", "SingularValues"])
def test_other_solvers_say_which_are_recorded(name: str) -> None:
    A = wl.Csr(laplacian(4))
    many = wl.batch([laplacian(3)] * 2)
    solver = getattr(wl.solvers, name)
    for made in (solver(A), *([solver(many)] if name == "Direct" else [wl.solvers.Cg(many)])):
        with pytest.raises(AttributeError, match=r"'recorded'; write wl\.solvers\.Cg\(A, M\)\.rec"):
            made.recorded(np.ones(16), out=np.zeros(16))
        assert not hasattr(made, "other")


@pytest.mark.parametrize("M", ["jacobi", "ic", "amg"])
def test_preconditioners(on: Any, rng: Any, M: str) -> None:
    S = laplacian()
    A = wl.Csr(S, executor=on)
    solver = wl.solvers.Cg(A, M=M, rtol=1e-8)
    rhs = rng.standard_normal(144)
    b, x = on.from_host(rhs), on.from_host(np.zeros(144))
    solve = solver.recorded(b, out=x)
    assert solve.status().converged
    assert np.linalg.norm(rhs - S @ on.to_host(x)) <= 1.01e-8 * np.linalg.norm(rhs)


def test_verdicts(on: Any) -> None:
    S = laplacian()
    A = wl.Csr(S, executor=on)
    b, x = on.from_host(np.linspace(1, 2, 144)), on.from_host(np.zeros(144))
    few = wl.solvers.Cg(A, rtol=1e-9, maxiter=3).recorded(b, out=x)
    assert few.status().stop == Stop.MAX_ITERATIONS and few.status().iterations == 3
    solve = wl.solvers.Cg(A, rtol=1e-9).recorded(b, out=x)
    for scale, stop in ((0.0, Stop.CONVERGED), (1e-200, Stop.OUT_OF_RANGE), (1.0, Stop.CONVERGED)):
        on.copy_into(b, np.full(144, scale))
        solve()
        assert solve.status().stop == stop
    on.copy_into(b, np.full(144, np.nan))
    solve()
    assert not solve.status().converged
    indefinite = wl.Csr(sp.csr_array(np.diag([1.0, -1.0, 2.0])), executor=on)
    b, x = on.from_host(np.array([0.0, 1.0, 0.0])), on.from_host(np.zeros(3))
    assert wl.solvers.Cg(indefinite).recorded(b, out=x).status().stop == Stop.INDEFINITE


def test_operands_that_cannot_stay_are_refused() -> None:
    A = wl.Csr(laplacian(), executor="reference")
    b, x = np.ones(144), np.zeros(144)
    solver = wl.solvers.Cg(A)
    for given, out in ((b.astype("f4"), x), (b, x[:10]), (list(b), x), (np.ones((144, 2)), x)):
        with pytest.raises((InvalidArgument, wl.errors.ShapeMismatch)):
            solver.recorded(given, out=out)
    for given, out in ((b.astype(int), x), (b > 0, x), (b, x.astype(int))):
        with pytest.raises(InvalidArgument, match="expected an array of float64"):
            solver.recorded(given, out=out)
    by_host = wl.LinearOperator((144, 144), lambda v: 2 * v, executor="reference")
    with pytest.raises(UnsupportedOperation, match="the host takes part"):
        wl.solvers.Cg(by_host).recorded(b, out=x)
    with pytest.raises(UnsupportedOperation, match="the host takes part"):
        wl.solvers.Lgmres(A).recorded(b, out=x)


@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_tensors_of_the_cpu_are_solved_in_place(executor) -> None:
    torch = pytest.importorskip("torch")
    A = wl.Csr(laplacian(), executor=executor)
    b, x = torch.ones(144, dtype=torch.float64), torch.zeros(144, dtype=torch.float64)
    solve = wl.solvers.Cg(A, rtol=1e-10).recorded(b, out=x)
    b.mul_(2.0)
    solve()
    assert solve.status().converged
    np.testing.assert_allclose(A @ x.numpy(), 2.0, rtol=1e-8)
    with pytest.raises(InvalidArgument, match=r"tensor\.detach\(\)"):
        wl.solvers.Cg(A).recorded(b.requires_grad_(), out=x)
