"""Element-wise operations on blocks of vectors, and reductions."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import vector as operations
from ...core.status import Status, Stop
from ...core.step import events
from ...core.step.numeric import largest as column_maximum
from .sums import dots, squares
from .table import kernel


def store(y: Array, v: Array, alpha: complex, beta: complex) -> None:
    """Set y = alpha v + beta y; beta = 0 does not read y, so NaN in y is overwritten."""
    scalar = y.dtype.type
    if beta == 0:
        y[...] = scalar(alpha) * v
    else:
        y[...] = scalar(alpha) * v + scalar(beta) * y


@kernel(operations.fill)
def fill(executor: Executor, y: Array, value: complex) -> None:
    """Set y = value."""
    y[...] = value


@kernel(operations.axpby)
def axpby(executor: Executor, x: Array, y: Array, alpha: complex, beta: complex) -> None:
    """Set y = alpha x + beta y."""
    store(y, x, alpha, beta)


@kernel(operations.scale_rows)
def scale_rows(
    executor: Executor, d: Array, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Set y_i = alpha d_i x_i + beta y_i."""
    store(y, d[:, None] * x, alpha, beta)


@kernel(operations.scaled_sum)
def scaled_sum(executor: Executor, d: Array, x: Array, y: Array) -> None:
    """Set y_i = d_i (x_i + y_i)."""
    y[...] = d[:, None] * (x + y)


@kernel(operations.gather)
def gather(
    executor: Executor, index: Array, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Set y_i = alpha x_index(i) + beta y_i."""
    store(y, x[index], alpha, beta)


@kernel(operations.dot)
def dot(executor: Executor, x: Array, y: Array, value: Array) -> None:
    """Set value_c = sum_i conj(x_ic) y_ic."""
    value[:] = dots(x, y)


@kernel(operations.norm)
def norm(executor: Executor, x: Array, value: Array) -> None:
    """Set value_c = sqrt(sum_i |x_ic|^2)."""
    value[:] = np.sqrt(squares(x))


@kernel(operations.largest)
def largest(executor: Executor, x: Array, value: Array) -> None:
    """Set value_c = max_i |x_ic|, NaN if any is NaN, even NaN + i Inf with an abs of Inf."""
    value[:] = column_maximum(np.where(np.isnan(x), np.nan, np.abs(x)))


@kernel(operations.enter)
def enter(
    executor: Executor,
    r: Array,
    x: Array,
    relative: Array,
    absolute: Array,
    least: Array,
    most: Array,
    first: Array,
    threshold: Array,
    status: Status,
) -> None:
    """Set x = 0, compute the norm of r and the threshold, and judge the running columns."""
    on = events.running(status)
    x[:, on] = 0
    norm = np.sqrt(squares(r))[on]
    first[on] = status.norm[on] = norm
    threshold[on] = np.maximum(relative[on] * norm, absolute[on])
    inside = (norm >= least[on]) & (norm <= most[on])
    met = inside & (norm <= threshold[on])
    events.halt(status, on[~inside], Stop.OUT_OF_RANGE)
    events.halt(status, on[met], Stop.CONVERGED)


@kernel(operations.keep)
def keep(executor: Executor, x: Array, best_x: Array, best: Array, status: Status) -> None:
    """Set kept = x, best = norm in running columns with a norm below best."""
    on = np.flatnonzero((status.stop == Stop.RUNNING) & (status.norm < best))
    best_x[:, on] = x[:, on]
    best[on] = status.norm[on]
