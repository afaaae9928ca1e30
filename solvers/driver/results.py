"""The result of a solve, from the host's values at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.result import Result
from ...core.status import Stop

if TYPE_CHECKING:
    from .loop import Solve

Numbers = np.ndarray[Any, Any]


def result_of(
    solve: Solve,
    x: Any,
    stops: Sequence[Stop],
    iterations: Numbers,
    norms: Numbers,
    thresholds: Numbers,
    residuals: Numbers,
) -> Result:
    """Return the result of a solve, for one column or several as its user gave them.

    Parameters
    ----------
    solve : Solve
        The solve that is over.
    x : Array
        The solution as the user sees it.
    stops : sequence of Stop, length k
        Why each column ended.
    iterations, norms, thresholds : ndarray, shape (k,)
        Of each column; norms and thresholds in the units of the right-hand side.
    residuals : ndarray, shape (iterations + 1, k)
        The norms on the way.
    """
    one = np.ndim(solve.asked) == 1
    return Result(
        x=x,
        stops=list(stops),
        column_iterations=iterations,
        residual_norm=norms.item() if one else norms,
        residuals=residuals[:, 0] if one else residuals,
        threshold=thresholds.item() if one else thresholds,
        seconds=solve.watchers.elapsed,
        solver=type(solve.solver).__name__,
        executor=solve.executor.name,
        notes=solve.solver.notes_of(solve.solver.M),
    )
