"""The solvers under SciPy's names and signatures."""

from .core.formats.norms import norm
from .core.operator import LinearOperator
from .core.operator import as_linop as aslinearoperator
from .solvers.functions import bicgstab, cg, cgs, gmres
from .solvers.functions_recycling import gcrotmk, lgmres
from .solvers.functions_symmetric import bicg, minres, qmr, tfqmr

__all__ = [
    "LinearOperator",
    "aslinearoperator",
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "gcrotmk",
    "gmres",
    "lgmres",
    "minres",
    "norm",
    "qmr",
    "tfqmr",
]
