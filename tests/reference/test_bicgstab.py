import numpy as np
import pytest

from wollemi.core.operations import bicgstab
from wollemi.core.status import Stop

from .helpers import columns, unset


def test_start(run, make_status):
    shadow, p, v = unset(2, 1), unset(2, 1), unset(2, 1)
    rho, rho_old, alpha, omega, scale = (unset(1) for _ in range(5))
    r = columns([3, 4])
    run(bicgstab.start, r, shadow, p, v, rho, rho_old, alpha, omega, scale, make_status(0.0))
    assert shadow.tolist() == [[3], [4]]
    assert not p.any()
    assert not v.any()
    assert (rho.item(), rho_old.item(), alpha.item(), omega.item()) == (25, 1, 1, 1)
    assert scale.item() == 5


def test_direction(run, make_status):
    """beta = (6 / 2) (4 / 2) = 6, and 1 + 6 (2 - 2 * 3) = -23."""
    p, r, v = columns([2]), columns([1]), columns([3])
    scalars = [np.array([value]) for value in (6.0, 2.0, 4.0, 2.0)]
    run(bicgstab.direction, p, r, v, *scalars, make_status(0.0))
    assert p.item() == -23


def test_length(run, make_status):
    status, alpha = make_status(0.0), unset(1)
    run(bicgstab.length, columns([1, 2]), columns([3, 4]), np.array([22.0]), alpha, status)
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
def test_a_step_length_that_is_none_stops_the_column(run, make_status, v, rho, why):
    status, alpha = make_status(0.0), unset(1)
    run(bicgstab.length, columns([1, 2]), columns(v), np.array([float(rho)]), alpha, status)
    assert status.stop.tolist() == [why]


def test_half_knows_whether_the_residual_is_at_its_threshold(run, make_status):
    r, v = columns([5, 4], [5, 4]), columns([1, 0], [1, 0])
    halfway = unset(2, dtype=np.uint8)
    status = make_status(5.0, 4.9)
    run(bicgstab.half, r, v, np.array([2.0, 2.0]), halfway, status)
    assert r.tolist() == [[3, 3], [4, 4]]
    assert halfway.tolist() == [1, 0]
    assert status.running.tolist() == [2]


def test_stabilize(run, make_status):
    omega, halfway = unset(1), np.zeros(1, np.uint8)
    run(bicgstab.stabilize, columns([1, 1]), columns([3, 1]), omega, halfway, make_status(0.0))
    assert omega.tolist() == [2]


def test_stabilize_does_nothing_halfway(run, make_status):
    """Where the residual is at its threshold already, t may well be 0."""
    status, omega, halfway = make_status(0.0), unset(1), np.ones(1, np.uint8)
    run(bicgstab.stabilize, columns([0, 0]), columns([3, 1]), omega, halfway, status)
    assert omega.tolist() == [0]
    assert status.stop.tolist() == [Stop.RUNNING]


@pytest.mark.parametrize("t", [[0, 0], [1, -3]], ids=["t is 0", "t is orthogonal to r"])
def test_stabilize_breaks_down_where_it_would_not_move(run, make_status, t):
    status, halfway = make_status(0.0), np.zeros(1, np.uint8)
    run(bicgstab.stabilize, columns(t), columns([3, 1]), unset(1), halfway, status)
    assert status.stop.tolist() == [Stop.BREAKDOWN]


def _update(run, status, x=1.0, r=(5.0, 0.0), t=(0.04, 0.0), shadow=(2.0, 0.0), omega=100.0):
    blocks = columns([x, x]), columns(r), columns([2, 2]), columns([3, 3]), columns(t)
    rho, rho_old = np.array([7.0]), unset(1)
    alpha, scale = np.array([10.0]), np.array([2.0])
    run(
        bicgstab.update,
        *blocks,
        columns(shadow),
        alpha,
        np.array([omega]),
        rho,
        rho_old,
        scale,
        status,
    )
    return blocks[0], blocks[1], rho, rho_old


def test_update(run, make_status):
    status = make_status(0.0)
    x, r, rho, rho_old = _update(run, status)
    assert x.tolist() == [[321], [321]]
    assert r.tolist() == [[1], [0]]
    assert (rho.item(), rho_old.item()) == (2, 7)
    assert status.norm.tolist() == [1]
    assert status.stop.tolist() == [Stop.RUNNING]


def test_update_breaks_down_where_the_shadow_is_lost(run, make_status):
    status = make_status(0.0)
    _update(run, status, shadow=(0.0, 2.0))
    assert status.stop.tolist() == [Stop.BREAKDOWN]
    assert status.iterations.tolist() == [1]


def test_having_converged_comes_before_a_lost_shadow(run, make_status):
    status = make_status(1.0)
    _update(run, status, shadow=(0.0, 2.0))
    assert status.stop.tolist() == [Stop.CONVERGED]
    assert status.running.tolist() == [0]


def test_update_sees_a_scalar_that_is_no_number(run, make_status):
    status = make_status(0.0)
    _update(run, status, shadow=(np.inf, 2.0))
    assert status.stop.tolist() == [Stop.NOT_FINITE]
