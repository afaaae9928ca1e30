"""The verdicts on the systems of a batch during one solve."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core.batch import BatchMatrix, BatchResult
from ...core.batch.factors import FactoredSystems
from ...core.batch.systems import UNDECIDED, Systems
from ...core.errors import ShapeMismatch
from ...core.result import Result
from ...core.status import Stop
from .operands import Operands

Numbers = np.ndarray[Any, Any]


class BatchRun:
    """One solve of all systems: their solutions and verdicts.

    Parameters
    ----------
    solver : BatchSolver or BatchDirect
        The solver.
    given : Operands
        Right-hand sides and starts, which become the solutions.
    notes : list of str
        Of the result.
    """

    def __init__(self, solver: Any, given: Operands, notes: list[str]) -> None:
        self.solver, self.given, self.notes = solver, given, notes
        count = given.matrix.size
        self.codes = np.where(given.asked, UNDECIDED, Stop.SKIPPED).astype(np.uint8)
        self.iterations = np.zeros(count, np.int64)
        self.norms, self.thresholds = np.full(count, np.nan), np.full(count, np.nan)
        #: Reasons of failures, by matrix.
        self.explained: dict[int, str] = {}

    def undecided(self) -> list[int]:
        """Return the systems that have no verdict yet."""
        found: list[int] = np.flatnonzero(self.codes == UNDECIDED).tolist()
        return found

    def take_together(self, asked: Numbers, found: Systems | FactoredSystems) -> None:
        """Store the verdicts of the systems that an executor has solved."""
        rows: Any = slice(None) if asked.size == self.codes.size else asked
        self.codes[rows], self.iterations[rows] = found.codes, found.iterations
        self.norms[rows], self.thresholds[rows] = found.norms, found.thresholds

    def take(self, s: int, found: Result) -> None:
        """Store the result of the solver of one matrix."""
        self.codes[s] = found.stops[0]
        self.iterations[s] = found.iterations
        self.norms[s], self.thresholds[s] = found.residual_norm, found.threshold
        if not found.converged and found.reason != Stop(self.codes[s]).sentence:
            self.explained[int(self.given.matrix[s])] = found.reason
        self.given.x[s] = found.x

    def fail(self, s: int, stop: Stop, reason: str) -> None:
        """Store the failure of a system that was not solved."""
        self.codes[s] = stop
        self.explained[int(self.given.matrix[s])] = reason

    def told(self, began: float) -> BatchResult:
        """Return the result of all systems, of a solve that began at a time."""
        given, solver = self.given, self.solver
        return BatchResult(
            x=given.shaped(given.x),
            stops=given.by_solve(self.codes),
            column_iterations=given.by_solve(self.iterations),
            residual_norm=given.by_solve(self.norms),
            threshold=given.by_solve(self.thresholds),
            seconds=time.perf_counter() - began,
            solver=solver.kind.__name__,
            executor=solver.executor.name,
            batch_shape=solver.batch_shape,
            notes=self.notes,
            explained=self.explained,
        )


def replacement(solver: Any, A: BatchMatrix) -> BatchMatrix:
    """Return a batch that replaces the batch of a solver, on the solver's executor.

    Raises
    ------
    ShapeMismatch
        If the shapes differ.
    """
    if (A.shape, A.batch_shape) != (solver.shape, solver.batch_shape):
        raise ShapeMismatch(
            f"update: expected a batch of {solver.batch_shape} matrices {solver.shape}, got "
            f"{A.batch_shape} of {A.shape}"
        )
    return A.to(solver.executor)
