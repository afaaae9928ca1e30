"""Operators that approximate an inverse."""

from .solvers.preconditioners import Jacobi, Preconditioner

__all__ = ["Jacobi", "Preconditioner"]
