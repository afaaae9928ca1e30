"""Many systems as an executor solves them: programs of one system, and the data of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..executor import Array
    from ..iteration import Iteration, Replay
    from ..status import Status
    from .factors import FactoredSystems
    from .tolerances import Tolerances
    from .verdicts import Verdicts

Numbers = np.ndarray[Any, Any]


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
        Native, of the matrices.
    matrix : array of int64, shape (s,), or None
        The matrix of each system, on the host; None if system ``s`` has the matrix ``s // width``.
    width : int
        Systems of each matrix where ``matrix`` is None.
    b, x : arrays, shape (s, n)
        Native; ``x`` becomes the solution.
    started : bool
        Whether ``x`` is the start; zero is the start otherwise.
    tolerances : Tolerances
        Of each system.
    limit : int
        Iterations of each system at most.
    least, most : float
        Norms of right-hand sides, without overflow or underflow.
    least_norm : float
        A norm below has lost digits to underflow.
    verdicts : Verdicts
        A system that an executor leaves undecided is solved by itself.
    """

    values: Array
    matrix: Numbers | None
    width: int
    b: Array
    x: Array
    started: bool
    tolerances: Tolerances
    limit: int
    least: float
    most: float
    least_norm: float
    verdicts: Verdicts

    @property
    def count(self) -> int:
        """How many systems there are."""
        return int(self.b.shape[0])


def matrix_of_each(systems: Systems | FactoredSystems, chosen: Numbers | None = None) -> Numbers:
    """Return the number of the matrix of each system, or of each chosen one."""
    if systems.matrix is not None:
        return systems.matrix if chosen is None else systems.matrix[chosen]
    asked = np.arange(systems.count, dtype=np.int64) if chosen is None else chosen
    return asked // systems.width
