"""Measure times of calls on an executor, and fit lines to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import nnls

from ..core.executor import Executor

#: Seconds for which a call is repeated, and the largest and smallest number of repetitions.
LEAST_SECONDS, MOST_REPETITIONS, FEWEST_REPETITIONS = 0.05, 30, 3


def seconds_of(executor: Executor, call: Callable[[], Any]) -> float:
    """Return the minimum time of a call after a first call, which compiles and makes plans."""
    call()
    executor.synchronize()
    times: list[float] = []
    while len(times) < FEWEST_REPETITIONS or (
        sum(times) < LEAST_SECONDS and len(times) < MOST_REPETITIONS
    ):
        begun = perf_counter()
        call()
        executor.synchronize()
        times.append(perf_counter() - begun)
    return min(times)


def line(x: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return constant and slope of the line that fits some times best; neither is negative.

    The fit minimizes errors relative to the times.

    Examples
    --------
    >>> constant, slope = line([1.0, 10.0, 100.0], [3.0, 12.0, 102.0])
    >>> round(constant, 6), round(slope, 6)
    (2.0, 1.0)
    """
    found = combination([[1.0, value] for value in x], seconds)
    return float(found[0]), float(found[1])


def combination(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """Return nonnegative factors of a table's columns that fit the times best.

    The fit minimizes errors relative to the times.
    """
    times = np.asarray(seconds)
    table = np.asarray(columns, np.float64) / times[:, None]
    scale = np.maximum(np.abs(table).max(axis=0), np.finfo(np.float64).tiny)
    found, _ = nnls(table / scale, np.ones(times.size))
    return [float(value) for value in found / scale]
