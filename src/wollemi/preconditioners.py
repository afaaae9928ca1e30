"""Operators that approximate an inverse."""

from .solvers.preconditioners import (
    BlockJacobi,
    Ic,
    Ilu,
    Jacobi,
    Polynomial,
    Preconditioner,
    Schwarz,
)

__all__ = ["BlockJacobi", "Ic", "Ilu", "Jacobi", "Polynomial", "Preconditioner", "Schwarz"]
