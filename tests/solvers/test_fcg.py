"""Flexible conjugate gradients: its steps by hand, and preconditioners that change."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.precision import in_precision
from wollemi.core.status import Status, Stop
from wollemi.solvers.krylov import fcg

from .conftest import DTYPES, block, convection, poisson, tolerance


@pytest.fixture
def do() -> Any:
    """Run a step on the reference executor with columns of floats; return the status."""
    executor = wl.executor("reference")

    def do(step: Any, **named: Any) -> Status:
        status = Status(executor, 1, np.float64, 4)
        step(SimpleNamespace(executor=executor, status=status, **named))
        return status

    return do


def column(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, float)[:, None]


def test_curvature(do):
    pq, rho = np.array([np.nan]), np.array([np.nan])
    status = do(fcg.curvature, p=column(1, 2), q=column(3, 4), r=column(5, 6), pq=pq, rho=rho)
    assert (pq.item(), rho.item()) == (11, 17)
    assert status.stop.tolist() == [Stop.RUNNING]


def test_a_direction_that_leads_up_is_indefinite(do):
    pq, rho = np.array([np.nan]), np.array([np.nan])
    status = do(fcg.curvature, p=column(1, 2), q=column(3, 4), r=column(-5, 2), pq=pq, rho=rho)
    assert status.stop.tolist() == [Stop.INDEFINITE]


def test_update(do):
    x, r = column(1, 1), column(5, 6)
    status = do(
        fcg.update,
        x=x,
        r=r,
        p=column(1, 2),
        q=column(3, 4),
        rho=np.array([4.0]),
        pq=np.array([2.0]),
        qz=(qz := np.array([np.nan])),
    )
    assert qz.item() == -11
    assert x.tolist() == [[3], [5]]
    assert r.tolist() == [[-1], [-2]]
    np.testing.assert_allclose(status.norm, np.sqrt(5))


def test_the_new_direction_is_orthogonal_to_the_last_one(do):
    p, q, z = column(1, 2), column(3, 4), column(7, 1)
    qz, pq = np.array([np.nan]), np.array([11.0])
    do(fcg.project, q=q, z=z, qz=qz)
    assert qz.item() == 25
    do(fcg.direction, p=p, z=z, qz=qz, pq=pq)
    np.testing.assert_allclose((q * p).sum(), 0, atol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("jacobi", [False, True])
def test_every_column_is_solved_as_by_cg(on, dtype, jacobi, rng):
    S = poisson(12, dtype)
    A, b = wl.Csr(S, executor=on), block(rng, (S.shape[0], 3), dtype)
    M = "jacobi" if jacobi else None
    found = wl.solvers.Fcg(A, M, rtol=tolerance(dtype)).solve(b)
    plain = wl.solvers.Cg(A, M, rtol=tolerance(dtype)).solve(b)
    assert found.converged
    assert abs(found.iterations - plain.iterations) <= 2
    residual = np.linalg.norm(b - S @ found.x, axis=0)
    assert (residual <= 2 * tolerance(dtype) * np.linalg.norm(b, axis=0)).all()


def test_a_preconditioner_that_changes(on, rng):
    S = poisson(30)
    A, b = wl.Csr(S, executor=on), rng.standard_normal(S.shape[0])
    # Few iterations of another solver are another polynomial for each residual.
    M = wl.solvers.Cg(A, stop=wl.stop.Iterations(4))
    flexible = wl.solvers.Fcg(A, M, rtol=1e-8, maxiter=300).solve(b)
    assert flexible.converged
    assert flexible.iterations <= wl.solvers.Cg(A, rtol=1e-8).solve(b).iterations / 2


def test_it_is_found_by_name():
    assert wl.solvers.from_settings({"solver": "fcg", "rtol": 1e-8}) == wl.solvers.Fcg(rtol=1e-8)
    A = wl.Csr(np.diag([1.0, 2.0, 3.0]))
    assert wl.solve(A, np.ones(3), method="fcg").converged


def inner(A: wl.Csr) -> wl.solvers.Cg:
    return wl.solvers.Cg(A, stop=wl.stop.Iterations(4))


def test_what_varies_is_told_by_every_operator(on):
    A = wl.Csr(poisson(6), executor=on)
    eye, solver = wl.Identity(36, executor=on), inner(A)
    fixed = (A, eye, A + eye, A @ eye, 2.0 * A, wl.preconditioners.Jacobi(A), wl.solvers.Direct(A))
    assert not any(operator.varies for operator in fixed)
    sequence = wl.preconditioners.Multiplicative(A, ["jacobi", solver])
    blocks = wl.preconditioners.BlockSchwarz(A, blocks=2, inner=wl.solvers.Gmres(maxiter=2))
    low = in_precision(wl.solvers.Cg(A, dtype="float32"), np.float64)
    assert all(op.varies for op in (solver, eye + solver, A @ solver, -solver))
    assert all(op.varies for op in (sequence, blocks, low, solver.H, solver.to("reference")))


def test_cycles_of_multigrid_vary_where_they_are_accelerated(on):
    A = wl.Csr(poisson(30), executor=on)
    made = {cycle: wl.preconditioners.Amg(A, cycle=cycle, coarse_rows=20) for cycle in "VK"}
    assert len(made["K"].levels) > 1
    assert [M.varies for M in made.values()] == [False, True]


@pytest.mark.parametrize(
    "rigid, flexible",
    [("Cg", "Fcg"), ("PipeCg", "Fcg"), ("Minres", "Fgmres"), ("Bicgstab", "Fgmres")],
)
def test_a_method_that_is_not_flexible_names_one_that_is(on, rigid, flexible):
    A, b = wl.Csr(poisson(8), executor=on), np.ones(64)
    told = getattr(wl.solvers, rigid)(A, inner(A), maxiter=40).solve(b)
    assert len(told.notes) == 1
    assert rigid in told.notes[0] and f": {flexible} takes" in told.notes[0]
    kin = getattr(wl.solvers, flexible)
    assert kin.FLEXIBLE and not getattr(wl.solvers, rigid).FLEXIBLE
    assert kin(A, inner(A), maxiter=40).solve(b).notes == []
    assert getattr(wl.solvers, rigid)(A, "jacobi").solve(b).notes == []


def test_refinement_and_cycles_take_any_inner_solver():
    A, b = wl.Csr(poisson(8)), np.ones(64)
    for outer in (wl.solvers.Ir, wl.solvers.Multigrid, wl.solvers.Gcrotmk, wl.solvers.Lgmres):
        assert outer(A, inner(A), maxiter=30).solve(b).notes == []


@pytest.mark.parametrize("by", ["settings", "operator", "sequence"])
def test_solve_chooses_the_flexible_method(on, by):
    A, b = wl.Csr(poisson(20), executor=on), np.ones(400)
    few = wl.solvers.Cg(stop=wl.stop.Iterations(4))
    M = {
        "settings": few,
        "operator": few.on(A),
        "sequence": wl.preconditioners.Multiplicative("jacobi", few),
    }[by]
    result = wl.solve(A, b, M=M, rtol=1e-8)
    assert result.converged and result.solver == "Fcg"
    assert "M varies" in result.notes[0]
    skew = wl.Csr(convection(12), executor=on)
    few = wl.solvers.Gmres(stop=wl.stop.Iterations(4))
    result = wl.solve(skew, np.ones(144), M=few, rtol=1e-8)
    assert result.converged and result.solver == "Fgmres"


def test_solve_does_as_asked_and_says_what_it_thinks_of_it():
    A = wl.Csr(poisson(8))
    result = wl.solve(A, np.ones(64), method="cg", M=inner(A), maxiter=30)
    assert result.solver == "Cg"
    assert any("Fcg takes an M that varies" in note for note in result.notes)
