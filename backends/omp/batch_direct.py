"""Direct solves of batches of systems on threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.batch.factors import BatchFactors
from ...core.batch.systems import matrix_of_each
from .level import native

if TYPE_CHECKING:
    from ...core.batch.factors import FactoredSystems, Layout
    from ...core.executor import Array, Executor


def factorize(executor: Executor, layout: Layout, values: Array) -> BatchFactors:
    """Return the factors of matrices of one pattern; ``values`` has one row per matrix."""
    count = int(values.shape[0])
    result = BatchFactors(
        layout,
        executor.allocate((count, layout.size), values.dtype),
        executor.allocate((count, layout.n), np.int32),
        np.zeros(count, np.uint8),
        np.zeros(count, values.dtype),
        np.zeros(count),
    )
    native().batch_factorize(
        executor, *layout.shape, layout.places, np.ascontiguousarray(values), result.data,
        result.pivots, result.states, result.signs, result.logarithms,
    )  # fmt: skip
    return result


def solve_factored(executor: Executor, factors: BatchFactors, systems: FactoredSystems) -> None:
    """Solve systems with their factors; write solutions and verdicts to ``systems``."""
    s, layout, verdicts = systems, factors.layout, systems.verdicts
    relative, absolute = (
        np.ascontiguousarray(a) for a in (s.tolerances.relative, s.tolerances.absolute)
    )
    limits = np.array([s.least, s.most, s.least_norm])
    native().batch_solve(
        executor, *layout.shape, layout.order, s.indptr, s.indices,
        np.ascontiguousarray(s.values), matrix_of_each(s), s.b, s.x, relative, absolute, limits,
        s.refine, factors.data, factors.pivots, factors.states, verdicts.codes,
        verdicts.iterations, verdicts.norms, verdicts.thresholds,
    )  # fmt: skip
