"""``wl.solve`` for matrices that are not square: least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.errors import InvalidArgument
from ...core.formats import Matrix
from ...core.linop import LinOp
from ...core.operands import as_block
from ...core.result import AttemptRecord
from ..driver.scaling import norms
from ..least_squares.base import COLUMNS
from ..least_squares.lsmr import Lsmr
from ..least_squares.result import LeastSquaresResult
from .methods import AskedMethod


def solve_rectangular(
    A: LinOp,
    b: Any,
    x0: Any,
    *,
    asked: AskedMethod,
    rtol: float,
    atol: float,
    maxiter: int | None,
    callback: Callable[[Any], Any] | None,
    unused: dict[str, Any],
) -> LeastSquaresResult:
    """Minimize ``|A x - b|``; of several solutions the shortest one, where the notes say so.

    Columns are scaled only where the matrix has more rows than columns: a scaled solution is the
    shortest one if the columns are independent.

    Raises
    ------
    InvalidArgument
        If an option is given that least squares solvers do not have.
    """
    given = [name for name, value in unused.items() if value]
    if given:
        raise InvalidArgument(
            f"{', '.join(given)}: least squares solvers do not take it; leave it out"
        )
    kind: Any = Lsmr if asked.kind is None else asked.kind
    why = "the matrix is not square" if asked.is_auto else "as asked"
    notes = [f"{kind.__name__.lower()}: {why}"]
    M = asked.M
    if isinstance(M, str) and M == "auto":
        tall = A.shape[0] > A.shape[1]
        M = COLUMNS if tall and isinstance(A, Matrix) else None
        if M:
            notes += [
                "M: the columns are scaled to length one",
                "x is the shortest solution if the columns are independent; M='none' gives the "
                "shortest one in any case",
            ]
        else:
            notes.append("M: none, so that x is the shortest of all solutions")
    block = as_block(A.executor, b, A.shape[0], "b")
    largest = float(np.max(norms(A.executor, block), initial=0.0))
    tolerance = max(rtol, atol / largest if largest > 0 else 0.0)
    options = {"atol": rtol, "btol": tolerance, "conlim": 0.0, "maxiter": maxiter}
    found: LeastSquaresResult = kind(A, M, **(options | dict(asked.options))).solve(
        b, x0, callback=callback
    )
    label = COLUMNS if isinstance(M, str) else ""
    tried = AttemptRecord(
        kind.__name__.lower(), label, 0.0, found.iterations, found.seconds,
        found.reason.partition(":")[0],
    )  # fmt: skip
    return replace(found, notes=notes, attempts=[tried])
