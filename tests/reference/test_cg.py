"""The numbers of the example in Wikipedia's article on the method: A = (4 1; 1 3), b = (1, 2)."""

import numpy as np

from wollemi.core.operations import cg
from wollemi.core.status import Stop

from .helpers import columns, unset


def test_start(run, make_status):
    status, p, rho = make_status(0.0), unset(2, 1), unset(1)
    run(cg.start, columns([-8, -3]), columns([-8, -3]), p, rho, status)
    assert p.tolist() == [[-8], [-3]]
    assert rho.tolist() == [73]
    assert status.running.tolist() == [1]


def test_start_finds_an_indefinite_preconditioner(run, make_status):
    status = make_status(0.0, 0.0, 0.0)
    r, z = columns([1, 1], [1, 1], [1, 1]), columns([1, -3], [1, -1], [1, 1])
    run(cg.start, r, z, unset(2, 3), unset(3), status)
    assert status.stop.tolist() == [Stop.INDEFINITE, Stop.INDEFINITE, Stop.RUNNING]


def test_curvature(run, make_status):
    status, pq = make_status(0.0), unset(1)
    run(cg.curvature, columns([-8, -3]), columns([-35, -17]), pq, status)
    assert pq.tolist() == [331]
    assert status.running.tolist() == [1]


def test_curvature_of_an_indefinite_matrix(run, make_status):
    status, pq = make_status(0.0, 0.0), unset(2)
    run(cg.curvature, columns([1, 1], [1, np.inf]), columns([1, -2], [1, 1]), pq, status)
    assert status.stop.tolist() == [Stop.INDEFINITE, Stop.NOT_FINITE]
    assert pq.tolist() == [-1, np.inf]


def test_curvature_goes_by_the_real_part(run, make_status):
    status, pq = make_status(0.0), unset(1, dtype=complex)
    run(cg.curvature, columns([1j]), columns([2j + 1]), pq, status)
    assert pq.tolist() == [2 - 1j]
    assert status.stop.tolist() == [Stop.RUNNING]


def test_update(run, make_status):
    status = make_status(0.0)
    x, r = columns([2, 1]), columns([-8, -3])
    rho, rho_old = np.array([73.0]), unset(1)
    p, q, pq = columns([-8, -3]), columns([-35, -17]), np.array([331.0])
    run(cg.update, x, r, p, q, rho, rho_old, pq, status)
    np.testing.assert_allclose(x, columns([78 / 331, 112 / 331]))
    np.testing.assert_allclose(r, columns([-93 / 331, 248 / 331]))
    assert rho_old.tolist() == [73]
    np.testing.assert_allclose(rho, [(93**2 + 248**2) / 331**2])
    np.testing.assert_allclose(status.norm, np.sqrt(rho))
    np.testing.assert_allclose(status.history[0], np.sqrt(rho))
    assert status.iterations.tolist() == [1]


def test_update_converges_with_the_residual(run, make_status):
    status, x, r = make_status(0.0), columns([0, 0]), columns([2, 0])
    rho, rho_old, pq = np.array([4.0]), unset(1), np.array([2.0])
    run(cg.update, x, r, columns([1, 1]), columns([1, 0]), rho, rho_old, pq, status)
    assert x.tolist() == [[2], [2]]
    assert r.tolist() == [[0], [0]]
    assert status.stop.tolist() == [Stop.CONVERGED]
    assert status.iterations.tolist() == [1]


def test_weigh_replaces_the_squared_norm(run, make_status):
    status, rho = make_status(0.0), np.array([5.0])
    run(cg.weigh, columns([1, 2]), columns([10, 1]), rho, status)
    assert rho.tolist() == [12]


def test_weigh_finds_an_indefinite_preconditioner(run, make_status):
    status, rho = make_status(0.0), np.array([5.0])
    run(cg.weigh, columns([1, 2]), columns([-10, 1]), rho, status)
    assert status.stop.tolist() == [Stop.INDEFINITE]


def test_direction(run, make_status):
    p = columns([2, 0])
    run(cg.direction, p, columns([1, 1]), np.array([3.0]), np.array([1.0]), make_status(0.0))
    assert p.tolist() == [[7], [1]]


def test_two_iterations_solve_two_equations(run, make_status):
    A, status = np.array([[4.0, 1.0], [1.0, 3.0]]), make_status(1e-14)
    x, p, q = columns([2, 1]), unset(2, 1), unset(2, 1)
    r = columns([1, 2]) - A @ x
    rho, rho_old, pq = unset(1), unset(1), unset(1)
    run(cg.start, r, r, p, rho, status)
    for _ in range(2):
        q[...] = A @ p
        run(cg.curvature, p, q, pq, status)
        run(cg.update, x, r, p, q, rho, rho_old, pq, status)
        run(cg.direction, p, r, rho, rho_old, status)
    np.testing.assert_allclose(x, columns([1 / 11, 7 / 11]))
    assert status.stop.tolist() == [Stop.CONVERGED]
    assert status.iterations.tolist() == [2]
