"""The numbers of the example in Wikipedia's article on the method: A = (4 1; 1 3), b = (1, 2)."""

import numpy as np

from wollemi.core.status import Stop
from wollemi.solvers.krylov import cg

from .helpers import columns, unset


def test_start(do, make_status):
    status, p, rho = make_status(0.0), unset(2, 1), unset(1)
    do(cg.start, r=columns([-8, -3]), z=columns([-8, -3]), p=p, rho=rho, status=status)
    assert p.tolist() == [[-8], [-3]]
    assert rho.tolist() == [73]
    assert status.running.tolist() == [1]


def test_start_finds_an_indefinite_preconditioner(do, make_status):
    status = make_status(0.0, 0.0, 0.0)
    r, z = columns([1, 1], [1, 1], [1, 1]), columns([1, -3], [1, -1], [1, 1])
    do(cg.start, r=r, z=z, p=unset(2, 3), rho=unset(3), status=status)
    assert status.stop.tolist() == [Stop.INDEFINITE, Stop.INDEFINITE, Stop.RUNNING]


def test_curvature(do, make_status):
    status, pq = make_status(0.0), unset(1)
    do(cg.curvature, p=columns([-8, -3]), q=columns([-35, -17]), pq=pq, status=status)
    assert pq.tolist() == [331]
    assert status.running.tolist() == [1]


def test_curvature_of_an_indefinite_matrix(do, make_status):
    status, pq = make_status(0.0, 0.0), unset(2)
    p, q = columns([1, 1], [1, np.inf]), columns([1, -2], [1, 1])
    do(cg.curvature, p=p, q=q, pq=pq, status=status)
    assert status.stop.tolist() == [Stop.INDEFINITE, Stop.NOT_FINITE]
    assert pq.tolist() == [-1, np.inf]


def test_curvature_goes_by_the_real_part(do, make_status):
    status, pq = make_status(0.0), unset(1, dtype=complex)
    do(cg.curvature, p=columns([1j]), q=columns([2j + 1]), pq=pq, status=status)
    assert pq.tolist() == [2 - 1j]
    assert status.stop.tolist() == [Stop.RUNNING]


def test_update(do, make_status):
    status = make_status(0.0)
    x, r = columns([2, 1]), columns([-8, -3])
    rho, rho_old = np.array([73.0]), unset(1)
    p, q, pq = columns([-8, -3]), columns([-35, -17]), np.array([331.0])
    do(cg.update, x=x, r=r, p=p, q=q, rho=rho, rho_old=rho_old, pq=pq, status=status)
    np.testing.assert_allclose(x, columns([78 / 331, 112 / 331]))
    np.testing.assert_allclose(r, columns([-93 / 331, 248 / 331]))
    assert rho_old.tolist() == [73]
    np.testing.assert_allclose(rho, [(93**2 + 248**2) / 331**2])
    np.testing.assert_allclose(status.norm, np.sqrt(rho))
    np.testing.assert_allclose(status.history[0], np.sqrt(rho))
    assert status.iterations.tolist() == [1]


def test_update_converges_with_the_residual(do, make_status):
    status, x, r = make_status(0.0), columns([0, 0]), columns([2, 0])
    rho, rho_old, pq = np.array([4.0]), unset(1), np.array([2.0])
    p, q = columns([1, 1]), columns([1, 0])
    do(cg.update, x=x, r=r, p=p, q=q, rho=rho, rho_old=rho_old, pq=pq, status=status)
    assert x.tolist() == [[2], [2]]
    assert r.tolist() == [[0], [0]]
    assert status.stop.tolist() == [Stop.CONVERGED]
    assert status.iterations.tolist() == [1]


def test_weigh_replaces_the_squared_norm(do, make_status):
    status, rho = make_status(0.0), np.array([5.0])
    do(cg.weigh, r=columns([1, 2]), z=columns([10, 1]), rho=rho, status=status)
    assert rho.tolist() == [12]


def test_weigh_finds_an_indefinite_preconditioner(do, make_status):
    status, rho = make_status(0.0), np.array([5.0])
    do(cg.weigh, r=columns([1, 2]), z=columns([-10, 1]), rho=rho, status=status)
    assert status.stop.tolist() == [Stop.INDEFINITE]


def test_direction(do, make_status):
    p = columns([2, 0])
    rho, rho_old = np.array([3.0]), np.array([1.0])
    do(cg.direction, p=p, z=columns([1, 1]), rho=rho, rho_old=rho_old, status=make_status(0.0))
    assert p.tolist() == [[7], [1]]


def test_two_iterations_solve_two_equations(do, make_status):
    A, status = np.array([[4.0, 1.0], [1.0, 3.0]]), make_status(1e-14)
    x, p, q = columns([2, 1]), unset(2, 1), unset(2, 1)
    r = columns([1, 2]) - A @ x
    rho, rho_old, pq = unset(1), unset(1), unset(1)
    arrays = {"x": x, "r": r, "z": r, "p": p, "q": q, "rho": rho, "rho_old": rho_old, "pq": pq}
    do(cg.start, **arrays, status=status)
    for _ in range(2):
        q[...] = A @ p
        for step in (cg.curvature, cg.update, cg.direction):
            do(step, **arrays, status=status)
    np.testing.assert_allclose(x, columns([1 / 11, 7 / 11]))
    assert status.stop.tolist() == [Stop.CONVERGED]
    assert status.iterations.tolist() == [2]
