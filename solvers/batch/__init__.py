"""Batch solvers: solve many systems with one pattern, with a verdict for each."""

from .preconditioner import BatchPreconditioner
from .solver import BatchSolver

__all__ = ["BatchPreconditioner", "BatchSolver"]
