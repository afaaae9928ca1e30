"""Many systems as an executor solves them: programs of one system, and the data of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..executor import Array
    from ..iteration import Iteration, Replay
    from ..status import Status

Numbers = np.ndarray[Any, Any]

#: The code of a system that the solver has to look at on its own.
UNDECIDED = 255


@dataclass(eq=False)
class MemberPrograms:
    """The programs that solve one system, and the arrays that a system is put into.

    Each program is recorded once. The systems of a batch differ in the values of arrays alone.

    Attributes
    ----------
    values : array, shape (nnz,)
        Of the matrix.
    b, x : arrays, shape (n, 1)
        The right-hand side, and the iterate.
    status : Status
        Of one column.
    refresh : Replay or None
        Makes the preconditioner of new values; None if it does not depend on them.
    flags : array of int64 or None
        Counts that ``refresh`` leaves; any other than 0 says that it failed.
    measure : Replay
        Sets ``status.first`` to the norm of ``b``, and forgets an earlier solve.
    restart : Replay
        Makes the true residual of ``x``, judges it, and begins a cycle.
    iterate : Iteration
        One iteration.
    finish : Replay
        Completes ``x`` at the end of a cycle.
    judge : Replay
        Sets ``status.true`` to the norm of the true residual, ``status.largest`` to the largest
        absolute value of ``x``.
    cycle : int
        Iterations of a cycle at most.
    progress : float
        A cycle that ended early must bring the residual down by this factor to be followed by
        another.
    """

    values: Array
    b: Array
    x: Array
    status: Status
    refresh: Replay | None
    flags: Array | None
    measure: Replay
    restart: Replay
    iterate: Iteration
    finish: Replay
    judge: Replay
    cycle: int
    progress: float


@dataclass(eq=False)
class Systems:
    """The data of many systems, one row for each, and their verdicts.

    Attributes
    ----------
    values : array, shape (v, nnz)
        Native, of the matrices; system ``s`` has the row ``matrix[s]``.
    matrix : array of int64, shape (s,)
        On the host.
    b, x : arrays, shape (s, n)
        Native; ``x`` is the start and becomes the solution.
    relative, absolute : array of float64, shape (s,)
        Tolerances, on the host.
    limit : int
        Iterations of each system at most.
    least, most : float
        Norms of right-hand sides, without overflow or underflow.
    least_norm : float
        A norm below has lost digits to underflow.
    codes : array of uint8, shape (s,)
        Verdicts, on the host. A system that an executor finds UNDECIDED is solved by itself.
    iterations : array of int64, shape (s,)
        On the host.
    norms, thresholds : array of float64, shape (s,)
        On the host.
    """

    values: Array
    matrix: Numbers
    b: Array
    x: Array
    relative: Numbers
    absolute: Numbers
    limit: int
    least: float
    most: float
    least_norm: float
    codes: Numbers
    iterations: Numbers
    norms: Numbers
    thresholds: Numbers
