import numpy as np

from wollemi.core.status import Stop
from wollemi.solvers.krylov import cgs

from .helpers import columns, unset


def test_start(do, make_status):
    shadow, p, q = unset(2, 1), unset(2, 1), unset(2, 1)
    rho, rho_old, scale = unset(1), unset(1), unset(1)
    scalars = {"rho": rho, "rho_old": rho_old, "scale": scale}
    r, status = columns([3, 4]), make_status(0.0)
    do(cgs.start, r=r, shadow=shadow, p=p, q=q, **scalars, status=status)
    assert shadow.tolist() == [[3], [4]]
    assert not p.any()
    assert not q.any()
    assert (rho.item(), rho_old.item(), scale.item()) == (25, 1, 5)


def test_direction(do, make_status):
    """beta = 3: u = 1 + 3 * 2 = 7 and p = 7 + 3 (2 + 3 * 5) = 58."""
    u, p, q, r = unset(1, 1), columns([5]), columns([2]), columns([1])
    rho, rho_old, status = np.array([6.0]), np.array([2.0]), make_status(0.0)
    do(cgs.direction, u=u, p=p, q=q, r=r, rho=rho, rho_old=rho_old, status=status)
    assert (u.item(), p.item()) == (7, 58)


def test_half(do, make_status):
    u, q = columns([7]), unset(1, 1)
    do(cgs.half, u=u, q=q, v=columns([2]), alpha=np.array([3.0]), status=make_status(0.0))
    assert (q.item(), u.item()) == (1, 8)


def _update(do, status, shadow):
    named = {
        "x": columns([1, 1]),
        "r": columns([9, 0]),
        "w": columns([2, 3]),
        "v": columns([4, 0]),
        "shadow": columns(shadow),
        "alpha": np.array([2.0]),
        "rho": np.array([7.0]),
        "rho_old": unset(1),
        "scale": np.array([1.0]),
    }
    do(cgs.update, **named, status=status)
    return named["x"], named["r"], named["rho"], named["rho_old"]


def test_update(do, make_status):
    status = make_status(0.0)
    x, r, rho, rho_old = _update(do, status, [3, 1])
    assert x.tolist() == [[5], [7]]
    assert r.tolist() == [[1], [0]]
    assert (rho.item(), rho_old.item()) == (3, 7)
    assert status.norm.tolist() == [1]
    assert status.iterations.tolist() == [1]
    assert status.stop.tolist() == [Stop.RUNNING]


def test_update_breaks_down_where_the_shadow_is_lost(do, make_status):
    status = make_status(0.0)
    _update(do, status, [0, 1])
    assert status.stop.tolist() == [Stop.BREAKDOWN]
