"""The stopping status of the columns on NumPy arrays, as ``backends/unified/status.hpp`` has it.

``columns`` is always an array of column numbers. A column that does not run is never among them, so
kernels leave it as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..status import Status, Stop

Array = Any


def running(status: Status) -> Array:
    """Return the numbers of the columns that run."""
    return np.flatnonzero(status.stop == Stop.RUNNING)


def halt(status: Status, columns: Array, why: Stop) -> None:
    """Stop ``columns``."""
    status.stop[columns] = why
    status.running[0] -= columns.size


def halt_where(status: Status, columns: Array, why: str, condition: Array) -> None:
    """Stop the running ones of ``columns`` for which the condition holds."""
    still = status.stop[columns] == Stop.RUNNING
    halt(status, columns[still & np.asarray(condition)], Stop[why])


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
    """Stop the columns that have converged, and columns with a norm that is no number."""
    norms = np.asarray(norms)
    finite = np.isfinite(norms)
    halt(status, columns[~finite], Stop.NOT_FINITE)
    halt(status, columns[finite & (norms <= status.threshold[columns])], Stop.CONVERGED)
