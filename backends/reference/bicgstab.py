"""The steps of stabilized bi-conjugate gradients."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import bicgstab as operations
from ...core.status import Status, Stop
from .status import halt, observe, running
from .sums import dots, squares
from .table import kernel


def close_iteration(
    status: Status, columns: Array, rho: Array, norms: Array, shadow_norms: Array
) -> None:
    """Observe the residual; then stop columns whose ``rho`` is lost to rounding or no number."""
    observe(status, columns, norms)
    still = status.stop[columns] == Stop.RUNNING
    finite = np.isfinite(rho)
    eps = np.finfo(rho.dtype).eps
    lost = np.abs(rho) <= eps * eps * shadow_norms * norms
    halt(status, columns[still & ~finite], Stop.NOT_FINITE)
    halt(status, columns[still & finite & lost], Stop.BREAKDOWN)


def divide_or_halt(status: Status, columns: Array, above: Array, below: Array) -> Array:
    """Return ``above / below``; stop the columns where that is no step."""
    quotient = above / below
    finite = np.isfinite(above) & np.isfinite(below)
    halt(status, columns[~finite], Stop.NOT_FINITE)
    halt(
        status,
        columns[finite & ((below == 0) | ~np.isfinite(quotient))],
        Stop.BREAKDOWN,
    )
    return quotient


@kernel(operations.start)
def start(
    executor: Executor,
    r: Array,
    shadow: Array,
    p: Array,
    v: Array,
    rho: Array,
    rho_old: Array,
    alpha: Array,
    omega: Array,
    scale: Array,
    status: Status,
) -> None:
    """Set shadow = r, p = v = 0, rho = |r|^2, rho_old = alpha = omega = 1, scale = |r|."""
    on = running(status)
    squared = squares(r[:, on])
    shadow[:, on] = r[:, on]
    p[:, on] = v[:, on] = 0
    rho[on] = squared
    rho_old[on] = alpha[on] = omega[on] = 1
    scale[on] = np.sqrt(squared)


@kernel(operations.direction)
def direction(
    executor: Executor,
    p: Array,
    r: Array,
    v: Array,
    rho: Array,
    rho_old: Array,
    alpha: Array,
    omega: Array,
    status: Status,
) -> None:
    """Set p = r + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)."""
    on = running(status)
    beta = (rho[on] / rho_old[on]) * (alpha[on] / omega[on])
    p[:, on] = r[:, on] + beta * (p[:, on] - omega[on] * v[:, on])


@kernel(operations.length)
def length(
    executor: Executor, shadow: Array, v: Array, rho: Array, alpha: Array, status: Status
) -> None:
    """Set alpha = rho / <shadow, v>."""
    on = running(status)
    alpha[on] = divide_or_halt(status, on, rho[on], dots(shadow[:, on], v[:, on]))


@kernel(operations.half)
def half(
    executor: Executor, r: Array, v: Array, alpha: Array, halfway: Array, status: Status
) -> None:
    """Set r -= alpha v; halfway = whether |r| is at its threshold already."""
    on = running(status)
    r[:, on] -= alpha[on] * v[:, on]
    halfway[on] = np.sqrt(squares(r[:, on])) <= status.threshold[on]


@kernel(operations.stabilize)
def stabilize(
    executor: Executor, t: Array, r: Array, omega: Array, halfway: Array, status: Status
) -> None:
    """Set omega = <t, r> / <t, t>; 0 if halfway, where x moves by alpha y alone."""
    on = running(status)
    omega[on[halfway[on] != 0]] = 0
    on = on[halfway[on] == 0]
    along, squared = dots(t[:, on], r[:, on]), squares(t[:, on])
    omega[on] = divide_or_halt(status, on, along, squared.astype(along.dtype))
    still = status.stop[on] == Stop.RUNNING
    halt(status, on[still & (omega[on] == 0)], Stop.BREAKDOWN)


@kernel(operations.update)
def update(
    executor: Executor,
    x: Array,
    r: Array,
    y: Array,
    z: Array,
    t: Array,
    shadow: Array,
    alpha: Array,
    omega: Array,
    rho: Array,
    rho_old: Array,
    scale: Array,
    status: Status,
) -> None:
    """Set x += alpha y + omega z, r -= omega t; rho_old = rho, rho = <shadow, r>."""
    on = running(status)
    x[:, on] += alpha[on] * y[:, on] + omega[on] * z[:, on]
    r[:, on] -= omega[on] * t[:, on]
    rho_old[on] = rho[on]
    rho[on] = dots(shadow[:, on], r[:, on])
    close_iteration(status, on, rho[on], np.sqrt(squares(r[:, on])), scale[on])
