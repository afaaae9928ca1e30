"""Operators that approximate an inverse."""

from .solvers.preconditioners import Jacobi, Polynomial, Preconditioner

__all__ = ["Jacobi", "Polynomial", "Preconditioner"]
