"""Preconditioners: operators that approximate an inverse."""

from .base import Preconditioner
from .block_jacobi import BlockJacobi
from .chebyshev import Chebyshev
from .ilu import Ic, Ilu
from .isai import Fsai, Isai
from .jacobi import Jacobi
from .l1jacobi import L1Jacobi
from .multigrid import Amg, Multigrid
from .names import BY_NAME, preconditioner
from .polynomial import Polynomial
from .schwarz import Schwarz
from .sor import Sor, Ssor

__all__ = [
    "BY_NAME",
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
    "preconditioner",
]
