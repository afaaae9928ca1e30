"""The steps of conjugate gradients."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import cg as operations
from ...core.status import Status, Stop
from .status import halt, observe, running
from .sums import dots, squares
from .table import kernel


def require_positive(status: Status, columns: Array, values: Array) -> None:
    """Stop the columns where ``<r, M r>`` or ``<p, A p>`` is not positive."""
    finite = np.isfinite(values)
    halt(status, columns[~finite], Stop.NOT_FINITE)
    halt(status, columns[finite & ~(values.real > 0)], Stop.INDEFINITE)


@kernel(operations.start)
def start(executor: Executor, r: Array, z: Array, p: Array, rho: Array, status: Status) -> None:
    """Set p = z, rho = <r, z>."""
    on = running(status)
    p[:, on] = z[:, on]
    rho[on] = dots(r[:, on], z[:, on])
    require_positive(status, on, rho[on])


@kernel(operations.curvature)
def curvature(executor: Executor, p: Array, q: Array, pq: Array, status: Status) -> None:
    """Set pq = <p, q>."""
    on = running(status)
    pq[on] = dots(p[:, on], q[:, on])
    require_positive(status, on, pq[on])


@kernel(operations.update)
def update(
    executor: Executor,
    x: Array,
    r: Array,
    p: Array,
    q: Array,
    rho: Array,
    rho_old: Array,
    pq: Array,
    status: Status,
) -> None:
    """Set x += alpha p, r -= alpha q with alpha = rho / pq; rho_old = rho, rho = |r|^2."""
    on = running(status)
    alpha = rho[on] / pq[on]
    x[:, on] += alpha * p[:, on]
    r[:, on] -= alpha * q[:, on]
    squared = squares(r[:, on])
    rho_old[on] = rho[on]
    rho[on] = squared
    observe(status, on, np.sqrt(squared))


@kernel(operations.weigh)
def weigh(executor: Executor, r: Array, z: Array, rho: Array, status: Status) -> None:
    """Set rho = <r, z>."""
    on = running(status)
    rho[on] = dots(r[:, on], z[:, on])
    require_positive(status, on, rho[on])


@kernel(operations.direction)
def direction(
    executor: Executor, p: Array, z: Array, rho: Array, rho_old: Array, status: Status
) -> None:
    """Set p = z + beta p with beta = rho / rho_old."""
    on = running(status)
    beta = rho[on] / rho_old[on]
    p[:, on] = z[:, on] + beta * p[:, on]
