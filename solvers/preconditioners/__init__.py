"""Preconditioners: operators that approximate an inverse."""

from .base import Preconditioner
from .block_jacobi import BlockJacobi
from .ilu import Ic, Ilu
from .jacobi import Jacobi
from .names import BY_NAME, preconditioner
from .polynomial import Polynomial
from .schwarz import Schwarz

__all__ = [
    "BY_NAME",
    "BlockJacobi",
    "Ic",
    "Ilu",
    "Jacobi",
    "Polynomial",
    "Preconditioner",
    "Schwarz",
    "preconditioner",
]
