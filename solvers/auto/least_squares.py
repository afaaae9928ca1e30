"""The shortest least squares solution of a square system with a singular matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.formats import Matrix
from ...core.operands import as_block
from ...core.result import Result
from ...core.status import Stop
from ..driver.scaling import norms
from ..least_squares.lsmr import Lsmr

#: The tolerance of the least squares solution in relation to that of the system, and its range.
TIGHTER, LEAST, MOST = 1e-3, 1e-12, 1e-8

#: Iterations for each unknown, and at most.
PER_ROW, AT_MOST = 20, 5000


def shortest(A: Matrix, b: Any, x0: Any, rtol: float, atol: float) -> Result:
    """Minimize ``|A x - b|`` by LSMR, which finds the shortest solution from zero.

    Returns
    -------
    Result
        A column converged if its residual meets the tolerance of the system; it ends as *least
        squares* if the residual is the least there is.
    """
    tolerance = float(np.clip(TIGHTER * rtol, LEAST, MOST))
    solver: Any = Lsmr(
        A,
        atol=tolerance,
        btol=min(rtol, tolerance),
        conlim=0.0,
        maxiter=min(PER_ROW * A.shape[0], AT_MOST),
    )
    found = solver.solve(b, x0)
    size = norms(A.executor, as_block(A.executor, b, A.shape[0], "b"))
    threshold = np.maximum(rtol * size, atol)
    norm = np.atleast_1d(found.residual_norm)
    stops = [
        Stop.CONVERGED if n <= t else Stop.LEAST_SQUARES if s == Stop.CONVERGED else s
        for n, t, s in zip(norm, threshold, found.stops, strict=True)
    ]
    one = np.ndim(b) == 1
    return Result(
        x=found.x,
        stops=stops,
        column_iterations=found.column_iterations,
        residual_norm=found.residual_norm,
        residuals=found.residuals,
        threshold=float(threshold[0]) if one else threshold,
        seconds=found.seconds,
        solver=found.solver,
        executor=found.executor,
    )
