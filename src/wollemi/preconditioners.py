"""Operators that approximate an inverse."""

from .solvers.preconditioners import (
    Amg,
    BlockJacobi,
    Chebyshev,
    Fsai,
    Ic,
    Ilu,
    Isai,
    Jacobi,
    L1Jacobi,
    Multigrid,
    Polynomial,
    Preconditioner,
    Schwarz,
    Sor,
    Ssor,
)

__all__ = [
    "Amg",
    "BlockJacobi",
    "Chebyshev",
    "Fsai",
    "Ic",
    "Ilu",
    "Isai",
    "Jacobi",
    "L1Jacobi",
    "Multigrid",
    "Polynomial",
    "Preconditioner",
    "Schwarz",
    "Sor",
    "Ssor",
]
