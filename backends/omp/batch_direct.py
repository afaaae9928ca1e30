"""Direct solves of the systems of a batch on threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.batch.factors import Factors
from .level import native

if TYPE_CHECKING:
    from ...core.batch.factors import FactoredSystems, Layout
    from ...core.executor import Array, Executor


def factorize(executor: Executor, layout: Layout, values: Array) -> Factors:
    """Return the factors of matrices, one row of values for each."""
    count = int(values.shape[0])
    made = Factors(
        layout,
        executor.allocate((count, layout.size), values.dtype),
        executor.allocate((count, layout.n), np.int32),
        np.zeros(count, np.uint8),
        np.zeros(count, values.dtype),
        np.zeros(count),
    )
    native().batch_factorize(
        executor, *layout.shape, layout.places, np.ascontiguousarray(values), made.data,
        made.pivots, made.states, made.signs, made.logarithms,
    )  # fmt: skip
    return made


def solve_factored(executor: Executor, factors: Factors, systems: FactoredSystems) -> None:
    """Solve systems by factors; solutions and verdicts are written to ``systems``."""
    s, layout = systems, factors.layout
    relative, absolute = (np.ascontiguousarray(a) for a in (s.relative, s.absolute))
    native().batch_solve(
        executor, *layout.shape, layout.order, s.indptr, s.indices,
        np.ascontiguousarray(s.values), s.matrix, s.b, s.x, relative, absolute, s.limits,
        s.refine, factors.data, factors.pivots, factors.states, s.codes, s.iterations, s.norms,
        s.thresholds,
    )  # fmt: skip
