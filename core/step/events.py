"""Updates of the stopping status on NumPy arrays, as in ``backends/unified/status.hpp``.

``columns`` is always an array of column numbers. It contains only running columns, so that kernels
do not change the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..status import Status, Stop

Array = Any


def running(status: Status) -> Array:
    """Return the numbers of the running columns."""
    return np.flatnonzero(status.stop == Stop.RUNNING)


def halt(status: Status, columns: Array, why: Stop) -> None:
    """Stop ``columns``."""
    status.stop[columns] = why
    status.running[0] -= columns.size


def halt_where(status: Status, columns: Array, why: str, condition: Array) -> None:
    """Stop the columns among ``columns`` that still run and meet the condition."""
    still = status.stop[columns] == Stop.RUNNING
    halt(status, columns[still & np.asarray(condition)], Stop[why])


def begin(status: Status, columns: Array, norms: Array) -> None:
    """Record the residual norms before the first iteration of a cycle."""
    status.norm[columns] = norms
    judge(status, columns, norms)


def observe(status: Status, columns: Array, norms: Array) -> None:
    """Record the residual norms after an iteration, and count the iteration."""
    status.norm[columns] = norms
    status.history[status.iterations[columns] % status.capacity, columns] = norms
    status.iterations[columns] += 1
    judge(status, columns, norms)


def judge(status: Status, columns: Array, norms: Array) -> None:
    """Stop the columns that have converged, and columns with a norm that is NaN."""
    norms = np.asarray(norms)
    finite = np.isfinite(norms)
    halt(status, columns[~finite], Stop.NOT_FINITE)
    halt(status, columns[finite & (norms <= status.threshold[columns])], Stop.CONVERGED)
