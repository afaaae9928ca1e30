"""Operators that approximate an inverse."""

from .solvers.preconditioners import Ic, Ilu, Jacobi, Polynomial, Preconditioner

__all__ = ["Ic", "Ilu", "Jacobi", "Polynomial", "Preconditioner"]
