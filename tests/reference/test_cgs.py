import numpy as np

from wollemi.core.operations import cgs
from wollemi.core.status import Stop

from .helpers import columns, unset


def test_start(run, make_status):
    shadow, p, q = unset(2, 1), unset(2, 1), unset(2, 1)
    rho, rho_old, scale = unset(1), unset(1), unset(1)
    run(cgs.start, columns([3, 4]), shadow, p, q, rho, rho_old, scale, make_status(0.0))
    assert shadow.tolist() == [[3], [4]]
    assert not p.any()
    assert not q.any()
    assert (rho.item(), rho_old.item(), scale.item()) == (25, 1, 5)


def test_direction(run, make_status):
    """beta = 3: u = 1 + 3 * 2 = 7 and p = 7 + 3 (2 + 3 * 5) = 58."""
    u, p, q, r = unset(1, 1), columns([5]), columns([2]), columns([1])
    run(cgs.direction, u, p, q, r, np.array([6.0]), np.array([2.0]), make_status(0.0))
    assert (u.item(), p.item()) == (7, 58)


def test_half(run, make_status):
    u, q = columns([7]), unset(1, 1)
    run(cgs.half, u, q, columns([2]), np.array([3.0]), make_status(0.0))
    assert (q.item(), u.item()) == (1, 8)


def _update(run, status, shadow):
    x, r = columns([1, 1]), columns([9, 0])
    rho, rho_old = np.array([7.0]), unset(1)
    w, t, alpha, scale = columns([2, 3]), columns([4, 0]), np.array([2.0]), np.array([1.0])
    run(cgs.update, x, r, w, t, columns(shadow), alpha, rho, rho_old, scale, status)
    return x, r, rho, rho_old


def test_update(run, make_status):
    status = make_status(0.0)
    x, r, rho, rho_old = _update(run, status, [3, 1])
    assert x.tolist() == [[5], [7]]
    assert r.tolist() == [[1], [0]]
    assert (rho.item(), rho_old.item()) == (3, 7)
    assert status.norm.tolist() == [1]
    assert status.iterations.tolist() == [1]
    assert status.stop.tolist() == [Stop.RUNNING]


def test_update_breaks_down_where_the_shadow_is_lost(run, make_status):
    status = make_status(0.0)
    _update(run, status, [0, 1])
    assert status.stop.tolist() == [Stop.BREAKDOWN]
