"""Data for executors that solve many systems: programs of one system, and arrays of all."""

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
    """The programs that solve one system, and the arrays that hold the system.

    Each program is recorded once. The systems of a batch differ only in the values of the arrays.

    Attributes
    ----------
    values : array, shape (nnz,)
        Values of the matrix.
    b, x : arrays, shape (n, 1)
        The right-hand side, and the iterate.
    status : Status
        The status, with one column.
    refresh : Replay or None
        Updates the preconditioner to new values; None if it does not depend on them.
    flags : array of int64 or None
        Counts that ``refresh`` sets; it has failed if any is nonzero.
    measure : Replay
        Sets ``status.first`` to the norm of ``b``, and resets the state of an earlier solve.
    restart : Replay
        Computes and checks the true residual of ``x``, and begins a cycle.
    iterate : Iteration
        One iteration of the solver.
    finish : Replay
        Completes ``x`` at the end of a cycle.
    judge : Replay
        Sets ``status.true`` to the norm of the true residual, and ``status.largest`` to the largest
        absolute value of ``x``.
    cycle : int
        Maximum number of iterations in a cycle.
    progress : float
        Another cycle may follow a cycle that ended early only if that cycle reduced the residual by
        this factor.
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
    """The data of many systems, one row per system, and their verdicts.

    Attributes
    ----------
    values : array, shape (v, nnz)
        The native values of the matrices.
    matrix : array of int64, shape (s,), or None
        The matrix of each system, on the host; None if system ``s`` has matrix ``s // width``.
    width : int
        Systems per matrix if ``matrix`` is None.
    b, x : arrays, shape (s, n)
        Native right-hand sides and solutions; ``x`` is overwritten.
    started : bool
        Whether ``x`` contains the initial guesses; otherwise they are zero.
    tolerances : Tolerances
        The tolerances of each system.
    limit : int
        Maximum number of iterations per system.
    least, most : float
        The range of norms of right-hand sides that need no scaling against underflow and overflow.
    least_norm : float
        A norm below this value has lost digits by underflow.
    verdicts : Verdicts
        The verdicts; a system that the executor leaves undecided is solved on its own.
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
        """The number of systems."""
        return int(self.b.shape[0])


def matrix_of_each(systems: Systems | FactoredSystems, chosen: Numbers | None = None) -> Numbers:
    """Return the number of the matrix for each system, or for each chosen one."""
    if systems.matrix is not None:
        return systems.matrix if chosen is None else systems.matrix[chosen]
    asked = np.arange(systems.count, dtype=np.int64) if chosen is None else chosen
    return asked // systems.width
