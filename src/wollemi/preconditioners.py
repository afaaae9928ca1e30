"""Operators that approximate an inverse."""

from .solvers.preconditioners import Jacobi

__all__ = ["Jacobi"]
