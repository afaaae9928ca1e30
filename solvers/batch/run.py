"""The verdicts on the systems of a batch during one solve."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core.batch import BatchMatrix, BatchResult
from ...core.batch.verdicts import Verdicts
from ...core.errors import ShapeMismatch
from ...core.result import Result
from ...core.status import Stop
from .operands import Operands
from .reasons import Reasons


class BatchRun:
    """One solve of all systems: their solutions and verdicts.

    Parameters
    ----------
    solver : BatchSolver or BatchDirect
        The solver.
    given : Operands
        Right-hand sides, and initial guesses, which are overwritten by the solutions.
    notes : list of str
        Notes of the result.
    """

    def __init__(self, solver: Any, operands: Operands, notes: list[str]) -> None:
        self.solver, self.operands, self.notes = solver, operands, notes
        self.verdicts = Verdicts(operands.count)
        if operands.mask is not None:
            self.verdicts.codes[~np.repeat(operands.mask, operands.width)] = Stop.SKIPPED
        #: Reasons of failures, by index of the matrix.
        self.explained: dict[int, str] = {}

    def take(self, s: int, result: Result) -> None:
        """Store the result of the solver of one matrix."""
        verdicts = self.verdicts
        verdicts.codes[s] = result.stops[0]
        verdicts.iterations[s] = result.iterations
        verdicts.norms[s], verdicts.thresholds[s] = result.residual_norm, result.threshold
        if not result.converged and result.reason != Stop(int(result.stops[0])).sentence:
            self.explained[s // self.operands.width] = result.reason
        self.operands.x[s] = result.x

    def fail(self, s: int, stop: Stop, reason: str) -> None:
        """Store the failure of a system that was not solved."""
        self.verdicts.codes[s] = stop
        self.explained[s // self.operands.width] = reason

    def batch_result(self, began: float) -> BatchResult:
        """Return the result of all systems, for a solve that started at time ``began``."""
        entered, solver = self.operands, self.solver
        return BatchResult(
            x=entered.shaped(entered.x),
            verdicts=self.verdicts,
            seconds=time.perf_counter() - began,
            solver=solver.kind.__name__,
            executor=solver.executor.name,
            batch_shape=solver.batch_shape,
            columns=entered.columns,
            notes=self.notes,
            explained=Reasons(self.explained, self.verdicts, solver.kind, solver.A),
        )


def replacement(solver: Any, A: BatchMatrix) -> BatchMatrix:
    """Return a new batch for a solver, on the solver's executor.

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
