"""``wl.solve`` for rectangular matrices: least squares."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.errors import InvalidArgument
from ...core.formats import Matrix
from ...core.linop import LinOp
from ...core.operands import as_block, like
from ...core.result import AttemptRecord
from ...core.status import Stop
from ..driver.scaling import column_norms, norms
from ..least_squares.base import COLUMNS
from ..least_squares.lsmr import Lsmr
from ..least_squares.result import LeastSquaresResult
from .candidates import DIRECT
from .least_squares import (
    LARGEST_TOLERANCE,
    LEAST_TOLERANCE,
    TOLERANCE_PART,
    dense_shortest,
    fits_densely,
)
from .methods import RequestedMethod

#: Notes on a solution by dense factors.
OF_DENSE = "orthogonal factors of the dense matrix gave the solution"
DENSE = "x is the shortest of all solutions, by LAPACK in SciPy"


def solve_rectangular(
    A: LinOp,
    b: Any,
    x0: Any,
    *,
    method: RequestedMethod,
    rtol: float,
    atol: float,
    maxiter: int | None,
    callback: Callable[[Any], Any] | None,
    unused: dict[str, Any],
) -> LeastSquaresResult:
    """Minimize ``|A x - b|``; the notes say whether the solution is the shortest one.

    Columns are scaled only if the matrix has more rows than columns: the solution of a scaled
    problem is the shortest one if the columns are independent.

    Raises
    ------
    InvalidArgument
        If an option is given that least squares solvers do not accept.
    """
    unsupported = [name for name, value in unused.items() if value]
    if unsupported:
        raise InvalidArgument(
            f"{', '.join(unsupported)}: least squares solvers do not take it; leave it out"
        )
    kind: Any = Lsmr if method.kind is None else method.kind
    why = "the matrix is not square" if method.is_auto else "as asked"
    notes = [f"{kind.__name__.lower()}: {why}"]
    M = method.M
    if isinstance(M, str) and M == "auto":
        M, about = scaling_of(A)
        notes += about
    block = as_block(A.executor, b, A.shape[0], "b")
    largest = float(np.max(norms(A.executor, block), initial=0.0))
    tolerance = max(rtol, atol / largest if largest > 0 else 0.0)
    options = {"atol": _least(A, rtol), "btol": tolerance, "conlim": 0.0, "maxiter": maxiter}
    result: LeastSquaresResult = kind(A, M, **(options | dict(method.options))).solve(
        b, x0, callback=callback
    )
    if not method.options.get("damp"):
        threshold = np.maximum(rtol * norms(A.executor, block), atol)
        result = judged_as_system(A, result, threshold, x0, M)
    label = COLUMNS if isinstance(M, str) else ""
    tried = [
        AttemptRecord(
            kind.__name__.lower(), label, 0.0, result.iterations, result.seconds,
            result.reason.partition(":")[0],
        )
    ]  # fmt: skip
    free = method.is_open and x0 is None and maxiter is None and A.partition is None
    if free and not result.converged and isinstance(A, Matrix) and fits_densely(A):
        result, factored, notes_of_factors = _by_factors(A, block, b, result, tolerance, atol)
        tried += factored
        notes += notes_of_factors
    return replace(result, notes=notes, attempts=tried, M=tried[-1].M)


def _least(A: LinOp, rtol: float) -> float:
    """Return the tolerance on ``A^H r``; it is tighter for square systems, where |r| decides."""
    square = A.shape[0] == A.shape[1]
    return (
        float(np.clip(TOLERANCE_PART * rtol, LEAST_TOLERANCE, LARGEST_TOLERANCE))
        if square
        else rtol
    )


def judged_as_system(
    A: LinOp, result: LeastSquaresResult, threshold: Any, x0: Any, M: Any
) -> LeastSquaresResult:
    """Return a result on a square matrix with the verdicts of other methods.

    A column with a residual above its threshold is not solved: its verdict is *least squares*
    instead of converged. Results on rectangular matrices are not changed.
    """
    if A.shape[0] != A.shape[1]:
        return result
    is_shortest = x0 is None and (M is None or (isinstance(M, str) and M == "none"))
    stops = [
        Stop.LEAST_SQUARES if stop == Stop.CONVERGED and norm > limit else stop
        for stop, norm, limit in zip(
            result.stops, np.atleast_1d(result.residual_norm), threshold, strict=True
        )
    ]
    return replace(result, stops=stops, is_shortest=is_shortest)


def scaling_of(A: LinOp) -> tuple[str | None, list[str]]:
    """Return the preconditioner for a rectangular matrix, with the notes on it."""
    if A.shape[0] <= A.shape[1] or not isinstance(A, Matrix):
        return None, ["M: none, so that x is the shortest of all solutions"]
    return COLUMNS, [
        "M: the columns are scaled to length one",
        "x is the shortest solution if the columns are independent; M='none' gives the shortest "
        "one in any case",
    ]


def _by_factors(
    A: Matrix, block: Any, b: Any, result: LeastSquaresResult, rtol: float, atol: float
) -> tuple[LeastSquaresResult, list[AttemptRecord], list[str]]:
    """Return the shortest least squares solution by dense factors, after LSMR has failed.

    The result is followed by the attempt and the notes. If a solution is out of the range of its
    dtype, the result of LSMR is returned without an attempt.
    """
    began = time.perf_counter()
    sides = np.asarray(A.executor.to_host(block))
    dtype = np.asarray(A.executor.to_host(result.x)).dtype
    solution = dense_shortest(A, sides, dtype)
    x, norm = solution.x, solution.residual_norm
    if np.any(np.isnan(norm)):
        return result, [], []
    native = A.executor.from_host(np.ascontiguousarray(x))
    residual = A.executor.from_host(np.array(sides, dtype))
    A.astype(dtype)._apply(native, residual, -1.0, 1.0)
    normal = A.executor.zeros((A.shape[1], sides.shape[1]), dtype)
    A.H.astype(dtype)._apply(residual, normal, 1.0, 0.0)
    limit = np.maximum(rtol * column_norms(sides), atol)
    numbers: dict[str, Any] = {
        "residual_norm": norm,
        "damped_norm": norm,
        "normal_residual_norm": norms(A.executor, normal),
        "x_norm": column_norms(x),
    }
    one = np.ndim(b) == 1
    seconds = time.perf_counter() - began
    shortest = replace(
        result,
        x=like(A.executor, native, b),
        stops=[Stop.CONVERGED] * sides.shape[1],
        rules=np.where(norm <= limit, 1, 2),
        seconds=result.seconds + seconds,
        **({name: float(v[0]) for name, v in numbers.items()} if one else numbers),
    )
    notes = [f"lsmr: {result.reason.partition(':')[0]}; {OF_DENSE}", DENSE]
    return shortest, [AttemptRecord(DIRECT, "dense", 0.0, 1, seconds, "converged")], notes
