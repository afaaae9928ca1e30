"""The solvers with SciPy's names and signatures."""

from typing import TYPE_CHECKING

from .core.formats.norms import norm
from .core.operator import LinearOperator
from .core.operator_conversions import as_linop as aslinearoperator
from .core.sparse.powers import matrix_power
from .core.suggest import without_others
from .solvers.scipy_api.eigen import eigsh, lobpcg, svds
from .solvers.scipy_api.krylov import bicgstab, cg, cgs, gmres
from .solvers.scipy_api.least_squares import lsmr, lsqr
from .solvers.scipy_api.recycling import gcrotmk, lgmres
from .solvers.scipy_api.symmetric import bicg, minres, qmr, tfqmr

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
    "matrix_power",
    "minres",
    "norm",
    "qmr",
    "svds",
    "tfqmr",
]

if not TYPE_CHECKING:  # type checkers would accept any name with it
    __getattr__ = without_others(__name__, __all__)
