"""The steps of conjugate gradients squared."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import cgs as operations
from ...core.status import Status
from .bicgstab import close_iteration
from .status import running
from .sums import dots, squares
from .table import kernel


@kernel(operations.start)
def start(
    executor: Executor,
    r: Array,
    shadow: Array,
    p: Array,
    q: Array,
    rho: Array,
    rho_old: Array,
    scale: Array,
    status: Status,
) -> None:
    """Set shadow = r, p = q = 0, rho = |r|^2, rho_old = 1, scale = |r|."""
    on = running(status)
    squared = squares(r[:, on])
    shadow[:, on] = r[:, on]
    p[:, on] = q[:, on] = 0
    rho[on] = squared
    rho_old[on] = 1
    scale[on] = np.sqrt(squared)


@kernel(operations.direction)
def direction(
    executor: Executor,
    u: Array,
    p: Array,
    q: Array,
    r: Array,
    rho: Array,
    rho_old: Array,
    status: Status,
) -> None:
    """Set u = r + beta q, p = u + beta (q + beta p) with beta = rho / rho_old."""
    on = running(status)
    beta = rho[on] / rho_old[on]
    u[:, on] = r[:, on] + beta * q[:, on]
    p[:, on] = u[:, on] + beta * (q[:, on] + beta * p[:, on])


@kernel(operations.half)
def half(executor: Executor, u: Array, q: Array, v: Array, alpha: Array, status: Status) -> None:
    """Set q = u - alpha v, u += q."""
    on = running(status)
    q[:, on] = u[:, on] - alpha[on] * v[:, on]
    u[:, on] += q[:, on]


@kernel(operations.update)
def update(
    executor: Executor,
    x: Array,
    r: Array,
    w: Array,
    t: Array,
    shadow: Array,
    alpha: Array,
    rho: Array,
    rho_old: Array,
    scale: Array,
    status: Status,
) -> None:
    """Set x += alpha w, r -= alpha t; rho_old = rho, rho = <shadow, r>."""
    on = running(status)
    x[:, on] += alpha[on] * w[:, on]
    r[:, on] -= alpha[on] * t[:, on]
    rho_old[on] = rho[on]
    rho[on] = dots(shadow[:, on], r[:, on])
    close_iteration(status, on, rho[on], np.sqrt(squares(r[:, on])), scale[on])
