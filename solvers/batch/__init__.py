"""Solves of many systems of one pattern, with a verdict for each."""

from .preconditioner import BatchPreconditioner
from .solver import BatchSolver

__all__ = ["BatchPreconditioner", "BatchSolver"]
