import numpy as np
import pytest

from wollemi.core.status import Stop
from wollemi.solvers.krylov import bicgstab

from .helpers import columns, unset


def test_start(do, make_status):
    shadow, p, v = unset(2, 1), unset(2, 1), unset(2, 1)
    rho, rho_old, alpha, omega, scale = (unset(1) for _ in range(5))
    r = columns([3, 4])
    scalars = {"rho": rho, "rho_old": rho_old, "alpha": alpha, "omega": omega, "scale": scale}
    do(bicgstab.start, r=r, shadow=shadow, p=p, v=v, **scalars, status=make_status(0.0))
    assert shadow.tolist() == [[3], [4]]
    assert not p.any()
    assert not v.any()
    assert (rho.item(), rho_old.item(), alpha.item(), omega.item()) == (25, 1, 1, 1)
    assert scale.item() == 5


def test_direction(do, make_status):
    """beta = (6 / 2) (4 / 2) = 6, and 1 + 6 (2 - 2 * 3) = -23."""
    p, r, v = columns([2]), columns([1]), columns([3])
    given = {"rho": 6.0, "rho_old": 2.0, "alpha": 4.0, "omega": 2.0}
    scalars = {name: np.array([value]) for name, value in given.items()}
    do(bicgstab.direction, p=p, r=r, v=v, **scalars, status=make_status(0.0))
    assert p.item() == -23


def test_length(do, make_status):
    status, alpha = make_status(0.0), unset(1)
    shadow, v, rho = columns([1, 2]), columns([3, 4]), np.array([22.0])
    do(bicgstab.length, shadow=shadow, v=v, rho=rho, alpha=alpha, status=status)
    assert alpha.tolist() == [2]
    assert status.stop.tolist() == [Stop.RUNNING]


@pytest.mark.parametrize(
    ("v", "rho", "why"),
    [
        ([2, -1], 22, Stop.BREAKDOWN),
        ([1e-300, 0], 1e300, Stop.BREAKDOWN),
        ([np.nan, 0], 22, Stop.NOT_FINITE),
        ([1, 1], np.inf, Stop.NOT_FINITE),
    ],
    ids=["divides by zero", "overflows", "NaN below", "Inf above"],
)
def test_a_step_length_that_is_none_stops_the_column(do, make_status, v, rho, why):
    status, alpha = make_status(0.0), unset(1)
    shadow, rho = columns([1, 2]), np.array([float(rho)])
    do(bicgstab.length, shadow=shadow, v=columns(v), rho=rho, alpha=alpha, status=status)
    assert status.stop.tolist() == [why]


def test_half_knows_whether_the_residual_is_at_its_threshold(do, make_status):
    r, v = columns([5, 4], [5, 4]), columns([1, 0], [1, 0])
    halfway = unset(2, dtype=np.uint8)
    status = make_status(5.0, 4.9)
    do(bicgstab.half, r=r, v=v, alpha=np.array([2.0, 2.0]), halfway=halfway, status=status)
    assert r.tolist() == [[3, 3], [4, 4]]
    assert halfway.tolist() == [1, 0]
    assert status.running.tolist() == [2]


def test_stabilize(do, make_status):
    omega, halfway = unset(1), np.zeros(1, np.uint8)
    t, r, status = columns([1, 1]), columns([3, 1]), make_status(0.0)
    do(bicgstab.stabilize, t=t, r=r, omega=omega, halfway=halfway, status=status)
    assert omega.tolist() == [2]


def test_stabilize_does_nothing_halfway(do, make_status):
    """Where the residual is at its threshold already, t may well be 0."""
    status, omega, halfway = make_status(0.0), unset(1), np.ones(1, np.uint8)
    t, r = columns([0, 0]), columns([3, 1])
    do(bicgstab.stabilize, t=t, r=r, omega=omega, halfway=halfway, status=status)
    assert omega.tolist() == [0]
    assert status.stop.tolist() == [Stop.RUNNING]


@pytest.mark.parametrize("t", [[0, 0], [1, -3]], ids=["t is 0", "t is orthogonal to r"])
def test_stabilize_breaks_down_where_it_would_not_move(do, make_status, t):
    status, halfway = make_status(0.0), np.zeros(1, np.uint8)
    t, r = columns(t), columns([3, 1])
    do(bicgstab.stabilize, t=t, r=r, omega=unset(1), halfway=halfway, status=status)
    assert status.stop.tolist() == [Stop.BREAKDOWN]


def _update(do, status, x=1.0, r=(5.0, 0.0), t=(0.04, 0.0), shadow=(2.0, 0.0), omega=100.0):
    named = {
        "x": columns([x, x]),
        "r": columns(r),
        "y": columns([2, 2]),
        "z": columns([3, 3]),
        "t": columns(t),
        "shadow": columns(shadow),
        "alpha": np.array([10.0]),
        "omega": np.array([omega]),
        "rho": np.array([7.0]),
        "rho_old": unset(1),
        "scale": np.array([2.0]),
    }
    do(bicgstab.update, **named, status=status)
    return named["x"], named["r"], named["rho"], named["rho_old"]


def test_update(do, make_status):
    status = make_status(0.0)
    x, r, rho, rho_old = _update(do, status)
    assert x.tolist() == [[321], [321]]
    assert r.tolist() == [[1], [0]]
    assert (rho.item(), rho_old.item()) == (2, 7)
    assert status.norm.tolist() == [1]
    assert status.stop.tolist() == [Stop.RUNNING]


def test_update_breaks_down_where_the_shadow_is_lost(do, make_status):
    status = make_status(0.0)
    _update(do, status, shadow=(0.0, 2.0))
    assert status.stop.tolist() == [Stop.BREAKDOWN]
    assert status.iterations.tolist() == [1]


def test_having_converged_comes_before_a_lost_shadow(do, make_status):
    status = make_status(1.0)
    _update(do, status, shadow=(0.0, 2.0))
    assert status.stop.tolist() == [Stop.CONVERGED]
    assert status.running.tolist() == [0]


def test_update_sees_a_scalar_that_is_no_number(do, make_status):
    status = make_status(0.0)
    _update(do, status, shadow=(np.inf, 2.0))
    assert status.stop.tolist() == [Stop.NOT_FINITE]
