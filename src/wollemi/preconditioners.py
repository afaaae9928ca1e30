"""Operators that approximate an inverse."""

from .solvers.preconditioners import (
    Amg,
    BlockJacobi,
    Chebyshev,
    Ic,
    Ilu,
    Jacobi,
    L1Jacobi,
    Multigrid,
    Polynomial,
    Preconditioner,
    Schwarz,
)

__all__ = [
    "Amg",
    "BlockJacobi",
    "Chebyshev",
    "Ic",
    "Ilu",
    "Jacobi",
    "L1Jacobi",
    "Multigrid",
    "Polynomial",
    "Preconditioner",
    "Schwarz",
]
