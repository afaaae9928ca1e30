"""Preconditioners: operators that approximate an inverse."""

from .base import Preconditioner
from .block_jacobi import BlockJacobi
from .block_schwarz import BlockSchwarz
from .chebyshev import Chebyshev
from .composite import Additive, Sequence
from .ilu import Ic, Ilu
from .ilut import Ict, Ilut
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
    "Additive",
    "Amg",
    "BlockJacobi",
    "BlockSchwarz",
    "Chebyshev",
    "Fsai",
    "Ic",
    "Ict",
    "Ilu",
    "Ilut",
    "Isai",
    "Jacobi",
    "L1Jacobi",
    "Multigrid",
    "Polynomial",
    "Preconditioner",
    "Schwarz",
    "Sequence",
    "Sor",
    "Ssor",
    "preconditioner",
]
