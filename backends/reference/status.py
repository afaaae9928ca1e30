"""The stopping status of the columns, as ``backends/unified/status.hpp`` has it.

``columns`` is always an array of column numbers. A column that does not run is never among them, so
kernels leave it as it is.
"""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import status as operations
from ...core.status import Status, Stop
from .sums import squares
from .table import kernel


def running(status: Status) -> Array:
    """Return the numbers of the columns that run."""
    return np.flatnonzero(status.stop == Stop.RUNNING)


def halt(status: Status, columns: Array, why: Stop) -> None:
    """Stop ``columns``."""
    status.stop[columns] = why
    status.running[0] -= columns.size


def begin(status: Status, columns: Array, norms: Array) -> None:
    """Take the residual norms before the first iteration of a cycle."""
    status.norm[columns] = norms
    judge(status, columns, norms)


def observe(status: Status, columns: Array, norms: Array) -> None:
    """Take the residual norms after an iteration, and count it."""
    status.norm[columns] = norms
    status.history[status.iterations[columns] % status.capacity, columns] = norms
    status.iterations[columns] += 1
    judge(status, columns, norms)


def judge(status: Status, columns: Array, norms: Array) -> None:
    """Stop the columns that have arrived, and those whose norm is no number."""
    finite = np.isfinite(norms)
    halt(status, columns[~finite], Stop.NOT_FINITE)
    halt(status, columns[finite & (norms <= status.threshold[columns])], Stop.CONVERGED)


@kernel(operations.start)
def start(executor: Executor, r: Array, status: Status) -> None:
    """Set norm_c = |r_c|."""
    on = running(status)
    begin(status, on, np.sqrt(squares(r[:, on])))
