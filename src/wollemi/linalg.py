"""The solvers under SciPy's names and signatures."""

from .core.formats.norms import norm
from .core.operator import LinearOperator
from .core.operator import as_linop as aslinearoperator
from .solvers.eigen_functions import eigsh, lobpcg, svds
from .solvers.functions import bicgstab, cg, cgs, gmres
from .solvers.functions_recycling import gcrotmk, lgmres
from .solvers.functions_symmetric import bicg, minres, qmr, tfqmr
from .solvers.least_squares_functions import lsmr, lsqr

__all__ = [
    "LinearOperator",
    "aslinearoperator",
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "eigsh",
    "gcrotmk",
    "gmres",
    "lgmres",
    "lobpcg",
    "lsmr",
    "lsqr",
    "minres",
    "norm",
    "qmr",
    "svds",
    "tfqmr",
]
